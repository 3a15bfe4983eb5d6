"""Contextual string embeddings: the states of character models at the borders of words (Akbik et al., 2018)."""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from elman.nn.inputs import packed_sequence
from elman.nn.recurrent import Recurrent
from elman.ragged import Ragged


class StringEmbedding(nn.Module):
    """One character model without its softmax, which never learns any more.

        e_w = h at the border of w

    with h the states of its topmost layer while it reads the sentence: forwards up to the last character of the word,
    or backwards down to its first. Both see the whole word, and all that stands on their side of it.

    >>> strings = StringEmbedding(nn.Embedding(9, 4), Recurrent("lstm", 4, 5))
    >>> strings(Ragged.of([[1, 3, 2, 5], [1, 7]]), np.array([1, 3, 5])).shape, strings.output_size
    (torch.Size([3, 5]), 5)
    """

    def __init__(self, embedding: nn.Embedding, body: Recurrent) -> None:
        super().__init__()
        self.embedding, self.body, self.output_size = embedding, body, body.output_size
        self.requires_grad_(False)

    def forward(self, ids: Ragged, borders: np.ndarray) -> Tensor:
        """The states after some of the ids (W x H), by their rows among those of all sentences."""
        packed = packed_sequence(ids)
        output, _ = self.body(packed._replace(data=self.embedding(packed.data)))  # N x H, packed
        rows = torch.empty(len(ids.data), dtype=torch.int64)
        rows[torch.from_numpy(ids.packed(np.arange(len(ids.data))))] = torch.arange(len(ids.data))
        return output.data[rows[torch.from_numpy(borders)]]  # type: ignore[no-any-return]


class StringEmbeddings(nn.ModuleList):
    """Several character models side by side."""

    @property
    def output_size(self) -> int:
        """The size of what all of them say of a word."""
        return sum(cast(StringEmbedding, one).output_size for one in self)

    def states(
        self, sentences: Ragged, readers: Sequence[Callable[[list[Any]], tuple[Ragged, np.ndarray]]]
    ) -> np.ndarray:
        """What the models say of each word of some sentences (N x S); each has its own reader."""
        rows = [sentences[number].tolist() for number in range(len(sentences))]
        with torch.no_grad():
            parts = [model(*reader(rows)) for model, reader in zip(self, readers, strict=True)]
        return torch.cat(parts, dim=1).numpy()
