"""Sequences of different length, one after the other: what readers make, networks are given and kernels take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Of a multiplicative hash: 2^64 over the golden ratio (Knuth)."""
NGRAM_SCALE = 10.0
"""How much larger the scores of n-grams are than their weights, as most are met too seldom to grow large."""


class Packing(NamedTuple):
    """How sequences lie side by side without padding: all first steps, then all second ones.

    a b c        a d f  b e  c        batch_sizes 3 2 1
    d e     ->
    f
    """

    order: Ints
    """B: which sequence stands first, second, ...: the longest first, equals as they came."""
    batch_sizes: Ints
    """T: how many sequences have a first step, a second one, ..."""
    rows: Ints
    """N: the packed row of each step, sequence after sequence as they were given."""


@dataclass(frozen=True, eq=False)
class Ragged:
    """B sequences of N steps in all.

    >>> names = Ragged.of([[3, 1], [4, 1, 5], [9]])
    >>> names.data.tolist(), names.lengths.tolist(), names[1].tolist()
    ([3, 1, 4, 1, 5, 9], [2, 3, 1], [4, 1, 5])
    >>> names.packed().tolist(), names.padded().tolist()
    ([4, 3, 9, 1, 1, 5], [[3, 1, 0], [4, 1, 5], [9, 0, 0]])
    """

    data: NDArray[Any]
    """N x ...: the steps of all sequences."""
    lengths: Ints
    """B: how many steps each has."""

    @classmethod
    def of(cls, sequences: Sequence[ArrayLike]) -> "Ragged":
        """Sequences that are at hand one by one; there has to be at least one."""
        arrays = [np.asarray(sequence) for sequence in sequences]
        data = arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
        return cls(data, np.fromiter(map(len, arrays), np.int64, len(arrays)))

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> Ints:
        """B: where each sequence begins among the steps."""
        return np.cumsum(self.lengths) - self.lengths

    def __getitem__(self, place: int) -> NDArray[Any]:
        return self.data[self.starts[place] : self.starts[place] + self.lengths[place]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(np.split(self.data, self.starts[1:]))

    def take(self, places: Ints) -> "Ragged":
        """Some of the sequences, in that order.

        >>> Ragged.of([[3, 1], [4, 1, 5], [9]]).take(np.array([2, 0])).data.tolist()
        [9, 3, 1]
        """
        lengths = self.lengths[places]
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Ragged(self.data[np.repeat(self.starts[places], lengths) + inside], lengths)

    def with_data(self, data: NDArray[Any]) -> "Ragged":
        """Other values of the same steps."""
        return Ragged(data, self.lengths)

    @cached_property
    def packing(self) -> Packing:
        """How they lie side by side; computed once, whatever is packed."""
        if len(self.lengths) == 1:  # the answer to one question should not wait for sorting
            steps = np.arange(self.lengths[0])
            return Packing(np.zeros(1, np.int64), np.ones(len(steps), np.int64), steps)
        order = np.argsort(-self.lengths, kind="stable")
        ranks = np.empty_like(order)
        ranks[order] = np.arange(len(order))
        steps = np.arange(len(self.data)) - np.repeat(self.starts, self.lengths)  # N: each step's place in its sequence
        batch_sizes = np.bincount(steps)
        rows = (np.cumsum(batch_sizes) - batch_sizes)[steps] + np.repeat(ranks, self.lengths)
        return Packing(order, batch_sizes, rows)

    def packed(self, values: NDArray[Any] | None = None) -> NDArray[Any]:
        """The steps, or other values of them (N x ...), in the order of the packing."""
        values = self.data if values is None else values
        packed = np.empty_like(values)
        packed[self.packing.rows] = values
        return packed

    def unpacked(self, packed: NDArray[Any]) -> "Ragged":
        """Values in the order of the packing (N x ...) as sequences again."""
        return self.with_data(packed[self.packing.rows])

    def ngrams(self, order: int, buckets: int) -> tuple[Ints, NDArray[np.float32]]:
        """The n-grams of 1, 2, ... `order` steps that end at each step: their rows in a table, and how much they count.

        Both are N x order. A row is a hash of the ids; all n-grams of a sequence count alike, 1 over the root of their
        number, and those that would begin before it not at all.

        >>> rows, shares = Ragged.of([[3, 1], [3, 1, 5]]).ngrams(2, 1000)
        >>> rows.tolist()
        [[485, 0], [242, 202], [485, 0], [242, 202], [728, 701]]
        >>> shares[:2].round(3)
        array([[0.577, 0.   ],
               [0.577, 0.577]], dtype=float32)
        """
        steps = np.arange(len(self.data)) - np.repeat(self.starts, self.lengths)  # N: each step's place in its sequence
        inside = steps[:, None] >= np.arange(order)  # N x order
        counts = (self.lengths[:, None] - np.arange(order)).clip(min=0).sum(axis=1)  # B
        rows = np.zeros((len(self.data), order), np.int64)
        hashed = np.zeros(len(self.data), np.uint64)
        for n in range(order):
            hashed = np.roll(hashed, 1) * FACTOR + self.data.astype(np.uint64) + np.uint64(1)
            mixed = (hashed ^ (hashed >> np.uint64(29))) * FACTOR  # the low bits of a product know low bits only
            rows[:, n] = np.where(inside[:, n], (mixed >> np.uint64(32)) % np.uint64(buckets), 0)
        return rows, (inside / np.sqrt(np.repeat(counts, self.lengths))[:, None]).astype(np.float32)

    def padded(self, filler: int = 0) -> NDArray[Any]:
        """B x T x ...: the sequences filled up to the longest."""
        most = int(self.lengths.max(initial=0))
        padded = np.full((len(self.lengths), most, *self.data.shape[1:]), filler, self.data.dtype)
        padded[np.arange(most) < self.lengths[:, None]] = self.data
        return padded


class Packed(NamedTuple):
    """Sequences without padding, all first steps, then all second ones; the names are those of PyTorch's.

    >>> packed = pack([[7], [1, 2, 3]])
    >>> packed.data.tolist(), packed.batch_sizes.tolist(), packed.sorted_indices.tolist()
    ([1, 7, 2, 3], [2, 1, 1], [1, 0])
    >>> [sequence.tolist() for sequence in packed.sequences()]
    [[7], [1, 2, 3]]
    """

    data: NDArray[Any]
    """N x ...: the steps."""
    batch_sizes: Ints
    """T: how many sequences have a first step, a second one, ..."""
    sorted_indices: Ints
    """B: which of the given sequences stands first, second, ...: the longest first, equals as they came."""

    def sequences(self) -> Ragged:
        """The sequences again, in the order in which they were given."""
        places = np.arange(len(self.sorted_indices))
        lengths = np.empty(len(places), np.int64)
        lengths[self.sorted_indices] = (self.batch_sizes[:, None] > places).sum(axis=0)
        return Ragged(self.data, lengths).unpacked(self.data)


def pad(sequences: Sequence[ArrayLike], value: int = 0) -> NDArray[Any]:
    """One table of sequences of different length (B x T), those that are shorter filled up with `value`.

    >>> names = ["adylov", "solan", "hard", "san"]
    >>> pad([[ord(letter) for letter in name] for name in names])
    array([[ 97, 100, 121, 108, 111, 118],
           [115, 111, 108,  97, 110,   0],
           [104,  97, 114, 100,   0,   0],
           [115,  97, 110,   0,   0,   0]])
    """
    return _ragged(sequences).padded(value)


def pack(sequences: Sequence[ArrayLike]) -> Packed:
    """Sequences of different length without padding: what `torch.nn.utils.rnn.pack_sequence` makes of tensors.

    >>> packed = pack([list("abc"), list("x")])
    >>> "".join(packed.data), packed.batch_sizes.tolist()
    ('axbc', [2, 1, 1])

    A layer of `elman.nn` reads it as `PackedSequence(*map(torch.from_numpy, pack(vectors)))`.
    """
    ragged = _ragged(sequences)
    order, batch_sizes, _ = ragged.packing
    return Packed(ragged.packed(), batch_sizes, order)


def _ragged(sequences: Sequence[ArrayLike]) -> Ragged:
    arrays = [np.asarray(sequence) for sequence in sequences]
    if not arrays or any(array.ndim == 0 for array in arrays):
        raise ValueError("give at least one sequence, and each as a list or an array of its steps")
    filled = [array for array in arrays if len(array)] or arrays[:1]  # an empty list has no type of its own
    if any(array.shape[1:] != filled[0].shape[1:] for array in filled):
        raise ValueError(f"every step should have the same shape, got {sorted({a.shape[1:] for a in filled})}")
    return Ragged(np.concatenate(filled), np.array([len(array) for array in arrays]))
