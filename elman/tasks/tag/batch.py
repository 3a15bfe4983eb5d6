"""Sentences side by side without padding: packed, all first tokens, then all second ones.

a b c        a d f  b e  c        batch_sizes 3 2 1
d e     ->
f
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elman.text.spelling import Spelled, Speller

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Sentences as the network reads them; rows are packed, the longest sentence first."""

    spelled: Spelled
    """Its `words` are N, packed."""
    batch_sizes: Tensor
    """T: how many sentences have a first token, a second one, ..."""
    rows: Ints
    """N: the packed row of each token, sentence after sentence as they were given."""
    lengths: Ints
    """B: tokens of each sentence, as they were given."""
    tags: Tensor | None = None
    """N: the ids of the right tags, packed."""

    @property
    def packed_lengths(self) -> Tensor:
        """B: tokens of each sentence, the longest first."""
        return torch.from_numpy(-np.sort(-self.lengths))

    def pack(self, values: np.ndarray) -> Tensor:
        """Values of all tokens, sentence after sentence (N x ...), as the network has them."""
        return _packed(torch.from_numpy(values), self.rows)

    def unpack(self, packed: Tensor) -> list[Ints]:
        """Packed values as one array a sentence, in the order in which the sentences were given."""
        values: Ints = packed.numpy()[self.rows]
        return np.split(values, np.cumsum(self.lengths)[:-1])

    def __str__(self) -> str:
        return f"of {len(self.lengths)} sentences, {len(self.rows)} tokens"


def make_batch(speller: Speller, sentences: Sequence[Sequence[str]], tags: Sequence[Ints] | None = None) -> Batch:
    """Pack sentences, and their tags' ids where they are to be learned.

    >>> speller = Speller.fit("a b c d e f".split())
    >>> batch = make_batch(speller, [["d", "e"], ["a", "b", "c"], ["f"]])
    >>> [speller.words.tokens[id] for id in batch.spelled.ids[batch.spelled.words]]
    ['a', 'd', 'f', 'b', 'e', 'c']
    >>> batch.batch_sizes.tolist(), [part.tolist() for part in batch.unpack(torch.arange(6))]
    ([3, 2, 1], [[1, 4], [0, 3, 5], [2]])
    """
    lengths = np.array([len(sentence) for sentence in sentences], np.int64)
    ranks = np.empty_like(lengths)
    ranks[np.argsort(-lengths, kind="stable")] = np.arange(len(lengths))  # B: the place of each among the longest
    starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = np.arange(len(starts)) - starts  # N: each token's place in its sentence
    batch_sizes = np.bincount(steps)
    rows = (np.cumsum(batch_sizes) - batch_sizes)[steps] + np.repeat(ranks, lengths)
    spelled = speller([token for sentence in sentences for token in sentence])
    return Batch(
        spelled._replace(words=_packed(spelled.words, rows)),
        torch.from_numpy(batch_sizes),
        rows,
        lengths,
        None if tags is None else _packed(torch.from_numpy(np.concatenate(tags)), rows),
    )


def _packed(values: Tensor, rows: Ints) -> Tensor:
    packed = torch.empty_like(values)
    packed[torch.from_numpy(rows)] = values
    return packed
