"""What a word is made of, beside its own embedding: its characters, its categorical features, its absence."""

from collections.abc import Sequence
from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from elman.nn.cells import Cell
from elman.nn.dropout import check_probability
from elman.nn.pooling import LastPooling
from elman.nn.recurrent import Recurrent


class CharacterEncoder(nn.Module):
    """A word's vector from its characters: the two last states of a bidirectional recurrent layer.

    A word that occurs several times in a batch is computed once.

    >>> encoder = CharacterEncoder(characters=30, embedding_size=4, hidden_size=5)
    >>> spelled, lengths = torch.tensor([[7, 3, 0], [1, 2, 9]]), torch.tensor([2, 3])
    >>> encoder(spelled, lengths, words=torch.tensor([[0, 1, 1, 0]])).shape, encoder.output_size
    (torch.Size([1, 4, 10]), 10)
    """

    def __init__(
        self,
        characters: int,
        embedding_size: int,
        hidden_size: int,
        *,
        cell: str | type[Cell] = "lstm",
        num_layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, embedding_size)
        self.dropout = nn.Dropout(check_probability(dropout))
        self.body = Recurrent(cell, embedding_size, hidden_size, num_layers, bidirectional=True, dropout=dropout)
        self.last = LastPooling(self.body)
        self.output_size = self.last.output_size

    def forward(self, spelled: Tensor, lengths: Tensor, words: Tensor) -> Tensor:
        """The vector of each token (words' shape x 2H).

        `spelled` has the distinct words, W x C ids of characters, `lengths` how many of those each word has (W),
        and `words` which of the W each token is (any shape).
        """
        ids = pack_padded_sequence(spelled, lengths.cpu(), batch_first=True, enforce_sorted=False)
        embedded = self.dropout(self.embedding(ids.data))  # N x E
        packed = PackedSequence(embedded, ids.batch_sizes, ids.sorted_indices, ids.unsorted_indices)
        vectors = self.last(*self.body(packed))  # W x 2H
        return cast(Tensor, vectors.index_select(0, words.flatten()).unflatten(0, words.shape))


class WordFeatures(nn.Module):
    """Categorical features (the shape of a word's case, its prefix, its suffix), each with its own embedding.

    `counts` says how many values each of the F features has, `sizes` how large its vector is; `join` has the
    vectors of a word side by side ("concat") or added up ("sum").

    >>> features = WordFeatures(counts=[4, 1000], sizes=[2, 16])
    >>> features(torch.tensor([[3, 120], [0, 999]])).shape, features.output_size
    (torch.Size([2, 18]), 18)
    """

    def __init__(
        self, counts: Sequence[int], sizes: Sequence[int], *, join: Literal["concat", "sum"] = "concat"
    ) -> None:
        super().__init__()
        if join not in ("concat", "sum"):
            raise ValueError(f"join must be 'concat' or 'sum', got {join!r}")
        if not counts or len(counts) != len(sizes):
            raise ValueError(f"expected a count and a size for each feature, got {list(counts)} and {list(sizes)}")
        if join == "sum" and len(set(sizes)) > 1:
            raise ValueError(f"features that are added up must have one size, got {list(sizes)}")
        self.join = join
        self.embeddings = nn.ModuleList(nn.Embedding(count, size) for count, size in zip(counts, sizes, strict=True))
        self.output_size = sum(sizes) if join == "concat" else sizes[0]

    def forward(self, ids: Tensor) -> Tensor:
        """... x F ids, one for each feature, to ... x `output_size`."""
        if ids.size(-1) != len(self.embeddings):
            raise ValueError(f"expected {len(self.embeddings)} features, got {ids.size(-1)}")
        vectors = [embedding(column) for embedding, column in zip(self.embeddings, ids.unbind(-1), strict=True)]
        return torch.cat(vectors, dim=-1) if self.join == "concat" else torch.stack(vectors).sum(dim=0)


class WordDropout(nn.Module):
    """In training some words are replaced by the unknown one, so that its embedding is learned.

    `p` is the probability of that: one number, or one for each id of the vocabulary (V).

    >>> drop = WordDropout(unknown=1, p=1.0)
    >>> drop(torch.tensor([5, 6])), drop.eval()(torch.tensor([5, 6]))
    (tensor([1, 1]), tensor([5, 6]))
    """

    p: Tensor

    def __init__(self, unknown: int, p: float | Tensor) -> None:
        super().__init__()
        self.unknown = unknown
        table = torch.as_tensor(p, dtype=torch.float32)
        if table.dim() > 1 or not (table.is_meta or bool(((table >= 0) & (table <= 1)).all())):
            raise ValueError(f"p must be a probability or a row of them, got {p}")
        self.register_buffer("p", table, persistent=False)  # nothing that a trained model needs

    @classmethod
    def by_count(cls, unknown: int, counts: Tensor, a: float = 0.25) -> "WordDropout":
        """With probability a / (a + count) for a word seen `count` times (Kiperwasser and Goldberg, 2016).

        What is never to be replaced has an infinite count.

        >>> WordDropout.by_count(0, torch.tensor([0, 1, 3, torch.inf]), a=1.0).p
        tensor([1.0000, 0.5000, 0.2500, 0.0000])
        """
        if a <= 0:
            raise ValueError(f"a must be greater than zero, got {a}")
        return cls(unknown, a / (a + counts))

    def forward(self, ids: Tensor) -> Tensor:
        """The ids, of any shape; each occurrence of a word is replaced or not by itself."""
        if not self.training:
            return ids
        p = self.p[ids] if self.p.dim() else self.p
        return ids.masked_fill(torch.rand(ids.shape, device=ids.device) < p, self.unknown)
