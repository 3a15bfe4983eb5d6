"""One id for each word that stands between blanks, and `<eos>` for each line end; what a word of running text is."""

import re
from collections import Counter
from collections.abc import Iterable
from itertools import repeat
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman.files import Stored
from elman.text.settings import EOS, UNK, TokenizerSettings
from elman.text.tokenizer import TextStream, Tokenizer, by_frequency, normaliser, special_counts

TOKEN = re.compile(r"\w+|[^\w\s]")
"""A word of a running text, as taggers cut it: a run of letters and digits, or one other character."""


class WordTokenizer(Tokenizer):
    """Words to ids; a line end is `<eos>`, as the published WikiText figures count.

    Special tokens that stand in the text as words (`<unk>` in WikiText) are taken for what they say. Decoding
    puts one blank between words and a line end for `<eos>`.

    >>> from elman.text import fit_tokenizer
    >>> tokenizer = fit_tokenizer(TokenizerSettings(kind="words"), ["the cat saw the dog\\n"])
    >>> tokenizer.encode("the dog\\nthe <unk> ate\\n").tolist()
    [2, 4, 1, 2, 0, 0, 1]
    >>> tokenizer.decode([2, 4, 1, 2, 0])
    'the dog\\nthe <unk>'
    """

    def __init__(self, settings: TokenizerSettings, words: list[str], counts: ArrayLike) -> None:
        specials = settings.special_tokens
        super().__init__(settings, specials + words, counts)
        self._index = {word: token for token, word in enumerate(self.tokens)}
        if len(self._index) < self.size:
            raise ValueError("a word stands twice in 'words'")
        self._pieces = [UNK, "\n", *[""] * (len(specials) - 2), *words]

    @classmethod
    def fit(cls, settings: TokenizerSettings, blocks: Iterable[str], ends: int = 0) -> Self:
        """Count the words of `blocks`; `ends` is the number of `<eos>` added to those of the line ends."""
        ready = normaliser(settings)
        total: Counter[str] = Counter()
        for block in blocks:
            total.update(_split(ready(block)))
        special = [total.pop(token, 0) for token in settings.special_tokens]
        words, counts, left = by_frequency(total.items(), settings)
        first = special_counts(settings, special[0] + left, special[1] + ends)
        first[2:] = special[2:]
        return cls(settings, words, first + counts)

    def with_words(self, words: Iterable[str]) -> Self:
        """The same, with ids for more words behind its own.

        >>> from elman.text import fit_tokenizer
        >>> fit_tokenizer(TokenizerSettings(kind="words"), ["a cat"]).with_words(["a", "dog"]).tokens
        ['<unk>', '<eos>', 'a', 'cat', 'dog']
        """
        new = [word for word in words if word not in self._index]
        own = self.tokens[len(self.settings.special_tokens) :]
        return type(self)(self.settings, [*own, *new], [*self.counts.tolist(), *[0] * len(new)])

    def encode(self, text: str) -> NDArray[np.int64]:
        """The ids of `text`, one for each word and each line end."""
        words = _split(self._ready(text))
        return np.fromiter(map(self._index.get, words, repeat(self.unk_id)), dtype=np.int64, count=len(words))

    def stream(self) -> TextStream:
        return _WordStream(self._pieces)

    def unknown(self, text: str) -> list[str]:
        return [word for word in dict.fromkeys(_split(self._ready(text))) if word not in self._index]

    def _payload(self) -> dict[str, Any]:
        return {"words": self.tokens[len(self.settings.special_tokens) :]}

    @classmethod
    def _restore(cls, settings: TokenizerSettings, counts: list[int], payload: dict[str, Any]) -> Self:
        return cls(settings, _Stored.model_validate(payload).words, counts)


class _Stored(Stored):
    words: list[str]


class _WordStream:
    """Puts a blank before a word that follows another on the same line."""

    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces
        self._inside = False

    def push(self, token: int) -> str:
        piece = self._pieces[token]
        if not piece:
            return ""
        blank = " " if self._inside and piece != "\n" else ""
        self._inside = piece != "\n"
        return blank + piece

    def finish(self) -> str:
        return ""


def _split(text: str) -> list[str]:
    return text.replace("\n", f" {EOS} ").split()
