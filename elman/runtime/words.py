"""The vectors of words that were met before: in a running text most words have been."""

from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np

from elman.runtime.weights import Float

KEPT, NUMBERS = 1 << 14, 1 << 24  # words and their numbers at most, unless one call has more: a text without end must
# not end up in memory


class KnownWords:
    """Looks up words, and has those that are new made, W words to W x E, once for all later calls.

    Several threads may ask at the same time; a new word is made by one of them while the others wait.

    >>> words = KnownWords(lambda new: print(new) or np.array([[len(word)] for word in new], np.float32))
    >>> words(["a", "cat", "a"]).tolist()
    ['a', 'cat']
    [[1.0], [3.0], [1.0]]
    >>> words(["cat"]).tolist()
    [[3.0]]
    """

    def __init__(self, make: Callable[[list[str]], Float]) -> None:
        self._make, self._lock = make, Lock()
        self._rows: dict[str, int] = {}
        self._table: Float = np.zeros((0, 0), np.float32)

    def __call__(self, tokens: Sequence[str]) -> Float:
        """The vector of each token, N x E."""
        with self._lock:
            rows = self._rows
            new = [word for word in dict.fromkeys(tokens) if word not in rows]
            if len(rows) + len(new) > min(KEPT, NUMBERS // max(1, self._table.shape[1])):
                rows.clear()
                new = list(dict.fromkeys(tokens))
            if new:
                self._add(new)
            return self._table.take([rows[token] for token in tokens], axis=0)

    def _add(self, new: list[str]) -> None:
        vectors, first = self._make(new), len(self._rows)
        if first + len(new) > len(self._table):
            table = np.zeros((2 * (first + len(new)), vectors.shape[1]), np.float32)
            table[:first] = self._table[:first] if first else 0
            self._table = table
        self._table[first : first + len(new)] = vectors
        self._rows.update(zip(new, range(first, first + len(new)), strict=True))
