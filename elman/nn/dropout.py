"""Dropout for sequences: one mask for all steps, whole words, recurrent weights."""

from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from elman.nn.steps import sequence_of_rows


def check_probability(p: float, name: str = "dropout") -> float:
    """The probability as a float; ValueError where it is none.

    >>> check_probability(0.5)
    0.5
    """
    if isinstance(p, bool) or not 0 <= p <= 1:
        raise ValueError(f"{name} must be a number from 0 to 1, got {p}")
    return float(p)


def drop_weight(weight: Tensor, p: float, training: bool) -> Tensor:
    """The weight with a fresh mask: DropConnect (Wan et al., 2013; when recurrent: Merity et al., 2018).

    The weight itself is left alone; its gradient comes through the mask.

    >>> import torch
    >>> weight = torch.ones(4)
    >>> drop_weight(weight, 0.5, training=False) is weight
    True
    """
    return dropout(weight, p) if training and p > 0 else weight


def locked_dropout(
    x: Tensor, p: float, training: bool, *, time_dim: int = 0, batch_sizes: Tensor | None = None
) -> Tensor:
    """Dropout with one mask for all steps (Gal and Ghahramani, 2016); packed data need their batch sizes.

    >>> import torch
    >>> x = locked_dropout(torch.ones(7, 2, 3), 0.5, training=True)
    >>> bool((x == x[:1]).all())
    True
    """
    if not training or p == 0:
        return x
    if batch_sizes is None:
        shape = list(x.shape)
        shape[time_dim] = 1
        return x * dropout(x.new_ones(shape), p)
    mask = dropout(x.new_ones(int(batch_sizes[0]), x.size(-1)), p)  # B x H
    return x * mask[sequence_of_rows(PackedSequence(x, batch_sizes))]


class LockedDropout(nn.Module):
    """Dropout with one mask for all steps of a sequence (Gal and Ghahramani, 2016).

    `time_dim` is the dimension of x that counts the steps: 0 for T x B x H, 1 for B x T x H.

    >>> import torch
    >>> drop = LockedDropout(0.5, time_dim=1)
    >>> x = drop(torch.ones(2, 7, 3))
    >>> bool((x == x[:, :1]).all())
    True
    """

    def __init__(self, p: float = 0.5, time_dim: int = 0) -> None:
        super().__init__()
        self.p = check_probability(p)
        self.time_dim = time_dim

    def forward(self, x: Tensor) -> Tensor:
        return locked_dropout(x, self.p, self.training, time_dim=self.time_dim)

    def extra_repr(self) -> str:
        return f"p={self.p}, time_dim={self.time_dim}"


class EmbeddingDropout(nn.Module):
    """Drops whole words: every occurrence of a word in a call is zero, or none is (Gal and Ghahramani, 2016).

    It is what dropping rows of the embedding matrix would be, without a copy of the matrix.

    >>> import torch
    >>> drop, embedding = EmbeddingDropout(0.5), nn.Embedding(10, 3)
    >>> e = drop(torch.tensor([[4, 4, 4]]), embedding)
    >>> bool((e == e[:, :1]).all())
    True
    """

    def __init__(self, p: float = 0.1) -> None:
        super().__init__()
        self.p = check_probability(p)

    def forward(self, ids: Tensor, embedding: nn.Embedding) -> Tensor:
        """The embeddings of the ids (... x E), those of dropped words zero and the others scaled up."""
        embedded: Tensor = embedding(ids)
        if not self.training or self.p == 0:
            return embedded
        mask = dropout(embedding.weight.new_ones(embedding.num_embeddings), self.p)  # V
        return embedded * mask[ids].unsqueeze(-1)

    def extra_repr(self) -> str:
        return f"p={self.p}"
