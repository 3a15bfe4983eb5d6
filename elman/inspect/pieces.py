"""The pieces of a text that a tokenizer's ids stand for, as the text itself writes them."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from elman.text.bytelevel import BytePieces
from elman.text.settings import EOS
from elman.text.tokenizer import Tokenizer
from elman.text.words import WordTokenizer

LINE_END = "⏎"


def pieces_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """What each id of a text stands for, in the letters of the text: with its capitals, known or not.

    Where a tokenizer changes a text's length before it is cut, or cuts through a character, its own letters are shown.

    >>> from elman.text import TokenizerSettings, fit_tokenizer
    >>> words = fit_tokenizer(TokenizerSettings(kind="words", lowercase=True), ["a film"])
    >>> pieces_of(words, "A fine Film")
    ['A', 'fine', 'Film']
    >>> pieces_of(fit_tokenizer(TokenizerSettings(kind="bytes"), ["a"]), "né")
    ['n', '<0xC3>', '<0xA9>']
    """
    ready = tokenizer._ready(text)
    if isinstance(tokenizer, WordTokenizer):
        rows = [_words(text), _words(ready)]
        return rows[0] if len(rows[0]) == len(rows[1]) else rows[1]
    if not isinstance(tokenizer, BytePieces):
        return list(text if len(text) == len(ready) else ready)
    tokens = [tokenizer.tokens[id] for id in tokenizer.encode(text).tolist()]
    sizes = [len(tokenizer._pieces[id]) for id in tokenizer.encode(text).tolist()]
    written = text if len(text) == len(ready) else ready
    return _by_bytes(written, ready.encode("utf-8", "replace"), sizes, tokens)


def _words(text: str) -> list[str]:
    return [LINE_END if word == EOS else word for word in text.replace("\n", f" {EOS} ").split()]


def _by_bytes(written: str, utf8: bytes, sizes: Sequence[int], tokens: Sequence[str]) -> list[str]:
    """The characters that pieces of so many bytes hold; a piece with half a character is shown by its token."""
    begins = (np.frombuffer(utf8, np.uint8) & 0xC0) != 0x80  # of each byte, whether a character begins there
    characters = [0, *np.cumsum(begins).tolist()]  # begun before each byte
    begins_at = [*begins.tolist(), True]
    bounds = list(pairwise(accumulate(sizes, initial=0)))
    if bounds and bounds[-1][1] != len(utf8):
        return list(tokens)
    return [
        written[characters[start] : characters[stop]] if begins_at[start] and begins_at[stop] else token
        for (start, stop), token in zip(bounds, tokens, strict=True)
    ]
