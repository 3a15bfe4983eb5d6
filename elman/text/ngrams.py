"""The character n-grams of words, each with a row of its own or one that it shares by its hash."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray


def word_ngrams(word: str, least: int, most: int) -> list[str]:
    """The n-grams of a word between its edges `<` and `>`; the whole word is none of them.

    >>> word_ngrams("cat", 3, 4)
    ['<ca', 'cat', 'at>', '<cat', 'cat>']
    """
    edged = f"<{word}>"
    sizes = range(least, min(most, len(edged) - 1) + 1)
    return [edged[start : start + size] for size in sizes for start in range(len(edged) - size + 1)]


def fnv_hash(text: str) -> int:
    """The 32-bit hash of fastText: FNV-1a over bytes, which count as signed.

    >>> hex(fnv_hash("a"))
    '0xe40c292c'
    """
    found = 2166136261
    for byte in text.encode():
        found = ((found ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) & 0xFFFFFFFF
    return found


class Ngrams:
    """The rows of n-grams, behind those of the words: with `buckets` by their hash, else each its own.

    In the second case only n-grams of known words have a row.

    >>> ngrams = Ngrams(["cat", "at"], least=3, most=3, buckets=0)
    >>> ngrams.count, ngrams.rows("bat").tolist()
    (4, [2])
    """

    def __init__(self, words: Sequence[str], least: int, most: int, buckets: int) -> None:
        self.least, self.most, self.buckets = least, most, buckets
        self._rows: dict[str, int] = {}
        if not buckets:
            for word in words:
                for ngram in word_ngrams(word, least, most):
                    self._rows.setdefault(ngram, len(self._rows))

    @property
    def count(self) -> int:
        """How many rows they have."""
        return self.buckets or len(self._rows)

    def rows(self, word: str) -> NDArray[np.int64]:
        """The rows of a word's n-grams, from 0."""
        ngrams = word_ngrams(word, self.least, self.most)
        if self.buckets:
            return np.array([fnv_hash(ngram) % self.buckets for ngram in ngrams], np.int64)
        return np.array([self._rows[ngram] for ngram in ngrams if ngram in self._rows], np.int64)

    def bags(self, tokens: Iterable[str], first: int, behind: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """For each token its own row and those of its n-grams, which stand `behind` the tokens'; special ones alone.

        Where each token's begin (V + 1), and all of them.
        """
        parts = [
            np.array([row]) if row < first else np.concatenate([[row], behind + self.rows(token)])
            for row, token in enumerate(tokens)
        ]
        starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        return starts, np.concatenate(parts).astype(np.int32)
