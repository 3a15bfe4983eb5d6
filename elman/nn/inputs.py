"""Sequences of ids or words as networks read them: packed, so that padding is neither made nor computed on."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from elman.ragged import Ragged


def packed_sequence(ragged: Ragged) -> PackedSequence:
    """Sequences as PyTorch's layers take them.

    >>> packed_sequence(Ragged.of([[7], [8, 9]])).data.tolist()
    [8, 7, 9]
    """
    order, batch_sizes, _ = ragged.packing
    data, sizes = torch.from_numpy(ragged.packed()), torch.from_numpy(batch_sizes)
    if len(ragged) == 1:
        return PackedSequence(data, sizes)
    indices = torch.from_numpy(order)
    unsorted = torch.empty_like(indices).scatter_(0, indices, torch.arange(len(indices)))
    return PackedSequence(data, sizes, indices, unsorted)


class Inputs(NamedTuple):
    """Some texts, packed (N tokens in all, W distinct words)."""

    tokens: PackedSequence  # N ids; where words are spelled, N places among the distinct words
    ids: Tensor | None = None  # W: ids of the distinct words
    characters: Tensor | None = None  # W x C: ids of their characters
    lengths: Tensor | None = None  # W: how many characters each has
    features: Tensor | None = None  # W x F: case and affixes
    strings: Tensor | None = None  # N x S: states of character models at the borders of the words

    @classmethod
    def of(cls, tokens: Ragged, spelled: Any = None) -> "Inputs":
        """Ids of tokens, or places among the distinct words that a speller has `spelled`."""
        if spelled is None:
            return cls(packed_sequence(tokens))
        parts = (spelled.ids, spelled.characters, spelled.lengths, spelled.features)
        return cls(packed_sequence(tokens), *(torch.as_tensor(part) for part in parts))
