"""Tokens that stand for strings of bytes: nothing is ever unknown to them."""

from codecs import getincrementaldecoder
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from elman.files import Stored
from elman.text.settings import BYTES, TokenizerSettings
from elman.text.tokenizer import TextStream, Tokenizer, id_list, normaliser, special_counts


class BytePieces(Tokenizer):
    """Base of tokenizers whose ids decode to bytes of UTF-8; `<eos>` and its like decode to nothing."""

    def __init__(self, settings: TokenizerSettings, pieces: list[bytes], counts: ArrayLike) -> None:
        specials = settings.special_tokens
        super().__init__(settings, specials + [_readable(piece) for piece in pieces], counts)
        self._pieces = ["\N{REPLACEMENT CHARACTER}".encode(), *[b""] * (len(specials) - 1), *pieces]

    def decode(self, ids: ArrayLike) -> str:
        """The text of `ids`; bytes that are not UTF-8 become replacement characters."""
        return b"".join([self._pieces[token] for token in id_list(ids, self.size)]).decode("utf-8", "replace")

    def stream(self) -> TextStream:
        """A decoder for one id at a time; it holds back the bytes of a character that is not complete."""
        return _ByteStream(self._pieces)

    def unknown(self, text: str) -> list[str]:
        """Nothing is unknown."""
        self._ready(text)  # which takes texts only
        return []


class ByteTokenizer(BytePieces):
    """One id for each of the 256 bytes of UTF-8.

    >>> from elman.text import fit_tokenizer
    >>> tokenizer = fit_tokenizer(TokenizerSettings(kind="bytes"), ["aab"])
    >>> tokenizer.size, tokenizer.encode("ab").tolist()
    (258, [2, 3])
    >>> tokenizer.decode(tokenizer.encode("né"))
    'né'
    """

    def __init__(self, settings: TokenizerSettings, values: list[int], counts: ArrayLike) -> None:
        if sorted(values) != list(range(BYTES)):
            raise ValueError("'bytes' should have every byte once")
        super().__init__(settings, [bytes([value]) for value in values], counts)
        self._values = values
        self._table = np.zeros(BYTES, dtype=np.int64)
        self._table[values] = np.arange(len(settings.special_tokens), self.size)

    @classmethod
    def fit(cls, settings: TokenizerSettings, blocks: Iterable[str], ends: int = 0) -> Self:
        """Count the bytes of `blocks`; `ends` is the number of `<eos>` that will end documents."""
        ready = normaliser(settings)
        total = np.zeros(BYTES, dtype=np.int64)
        for block in blocks:
            total += np.bincount(_utf8(ready(block)), minlength=BYTES)
        order = np.argsort(-total, kind="stable")
        return cls(settings, order.tolist(), special_counts(settings, 0, ends) + total[order].tolist())

    def encode(self, text: str) -> NDArray[np.int64]:
        """The ids of `text`, one for each byte of its UTF-8."""
        return self._table[_utf8(self._ready(text))]

    def _payload(self) -> dict[str, Any]:
        return {"bytes": self._values}

    @classmethod
    def _restore(cls, settings: TokenizerSettings, counts: list[int], payload: dict[str, Any]) -> Self:
        return cls(settings, _Stored.model_validate(payload).values, counts)


class _Stored(Stored):
    values: list[int] = Field(alias="bytes")


class _ByteStream:
    def __init__(self, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")

    def push(self, token: int) -> str:
        return self._decoder.decode(self._pieces[token])

    def finish(self) -> str:
        return self._decoder.decode(b"", final=True)


def _utf8(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)


def _readable(piece: bytes) -> str:
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(value) if value < 0x80 else f"<0x{value:02X}>" for value in piece)
