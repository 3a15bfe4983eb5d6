"""Sentences of words as the characters of a running text, and where each word ends in it: for contextual strings."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from elman.ragged import Ragged
from elman.text.tokenizer import Tokenizer

Ints = NDArray[np.int64]
KEPT = 1 << 16  # words whose ids are kept at most


class StringReader:
    """Reads sentences as a character model does: words with a blank between them, behind the id that begins a text.

    A model that reads backwards reads them from the end. The border of a word is the last character of it that is read:
    its last one, or, backwards, its first.

    >>> from elman.text import TokenizerSettings, fit_tokenizer
    >>> letters = fit_tokenizer(TokenizerSettings(), ["a cab"])
    >>> letters.tokens
    ['<unk>', '<eos>', 'a', ' ', 'b', 'c']
    >>> ids, borders = StringReader(letters, start_id=1)([["a", "cab"], ["b"]])
    >>> ids.data.tolist(), ids.lengths.tolist(), borders.tolist()
    ([1, 2, 3, 5, 2, 4, 1, 4], [6, 2], [1, 5, 7])
    >>> ids, borders = StringReader(letters, start_id=1, backward=True)([["a", "cab"]])
    >>> ids.data.tolist(), borders.tolist()
    ([1, 4, 2, 5, 3, 2], [5, 3])
    """

    def __init__(self, tokenizer: Tokenizer, start_id: int, backward: bool = False) -> None:
        self.tokenizer, self.start_id, self.backward = tokenizer, start_id, backward
        self._blank = tokenizer.encode(" ").tolist()
        self._known: dict[str, list[int]] = {}

    def __call__(self, sentences: Sequence[Sequence[str]]) -> tuple[Ragged, Ints]:
        """The ids of each sentence, and of each word the row of its border among all of them."""
        every: list[int] = []
        lengths: list[int] = []
        borders: list[int] = []
        for sentence in sentences:
            begin, places = len(every), list[int]()
            every.append(self.start_id)
            for number, word in enumerate(reversed(sentence) if self.backward else sentence):
                if number:
                    every.extend(self._blank)
                every.extend(self._ids(word))
                places.append(len(every) - 1)
            lengths.append(len(every) - begin)
            borders.extend(reversed(places) if self.backward else places)
        return Ragged(np.array(every, np.int64), np.array(lengths, np.int64)), np.array(borders, np.int64)

    def _ids(self, word: str) -> list[int]:
        """The ids of a word in the order in which they are read."""
        ids = self._known.get(word)
        if ids is None:
            if len(self._known) >= KEPT:
                self._known = {}
            ids = self.tokenizer.encode(word).tolist()
            self._known[word] = ids = ids[::-1] if self.backward else ids
        return ids
