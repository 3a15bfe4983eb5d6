"""The vectors of words that were met before: in a running text most words have been."""

import mmap
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.runtime.weights import Float

KEPT, NUMBERS = 1 << 14, 1 << 24
"""Words and their numbers that are kept at most: a text without end must not end up in memory."""
TOGETHER = 1 << 10
"""Words that are made in one go."""
NOTHING: Float = np.zeros((0, 0), np.float32)


class KnownWords:
    """Looks up words or their ids, and has those that are new made, W words to W x E, once for all later calls.

    Several threads may ask at the same time; a new word is made by one of them while the others wait.

    >>> words = KnownWords(lambda new: print(new) or np.array([[len(word)] for word in new], np.float32))
    >>> words(["a", "cat", "a"]).tolist()
    ['a', 'cat']
    [[1.0], [3.0], [1.0]]
    >>> words(["cat"]).tolist()
    [[3.0]]
    """

    def __init__(self, make: Callable[[list[Any]], Float]) -> None:
        self._make, self._lock = make, Lock()
        self._rows: dict[Hashable, int] = {}
        self._table = NOTHING

    def __call__(self, words: Sequence[Hashable]) -> Float:
        """The vector of each word, N x E."""
        table, rows = self.find(words)
        return table.take(rows, axis=0)

    def find(self, words: Sequence[Hashable]) -> tuple[Float, NDArray[np.int64]]:
        """A table, and the row of each word in it; these rows do not change any more."""
        with self._lock:
            distinct = dict.fromkeys(words)
            new = [word for word in distinct if word not in self._rows]
            if len(self._rows) + len(new) > len(self._table):
                self._rows, self._table, new = {}, NOTHING, list(distinct)  # others may still read the one that was
            self._add(new)
            found = self._table, np.array([self._rows[word] for word in words], np.int64)
            if len(self._table) > _room(self._table.shape[1]):
                self._rows, self._table = {}, NOTHING
            return found

    def _add(self, new: list[Hashable]) -> None:
        first = len(self._rows)
        for start in range(0, len(new), TOGETHER):
            vectors = self._make(new[start : start + TOGETHER])
            if not len(self._table):
                size = vectors.shape[1]
                self._table = _zeros(max(len(new), _room(size)), size)
            self._table[first + start : first + start + len(vectors)] = vectors
        self._rows.update(zip(new, range(first, first + len(new)), strict=True))


def _room(size: int) -> int:
    """How many words of so many numbers are kept."""
    return min(KEPT, NUMBERS // max(1, size))


def _zeros(rows: int, size: int) -> Float:
    """Zeros that begin at a page; what is never written to takes no memory. Where the system can be asked for it, pages
    are small: to be given a large one takes milliseconds, in which a sentence would wait."""
    private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    try:
        memory = mmap.mmap(-1, max(1, rows * size * 4), **private)
    except (OSError, OverflowError):
        raise MemoryError(f"no room for {rows:,} x {size:,} numbers") from None
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # a system without large ones
            memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float32, rows * size).reshape(rows, size)
