"""One id for each character."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from elman.files import Stored
from elman.text.settings import TokenizerSettings
from elman.text.tokenizer import TextStream, Tokenizer, by_frequency, id_list, normaliser, special_counts

CODE_POINTS = 0x110000
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class CharacterTokenizer(Tokenizer):
    """Characters (Unicode code points) to ids by one table look-up.

    `<eos>` and the further special tokens decode to nothing, `<unk>` to the replacement character.
    """

    def __init__(self, settings: TokenizerSettings, characters: list[str], counts: ArrayLike) -> None:
        specials = settings.special_tokens
        super().__init__(settings, specials + characters, counts)
        self._pieces = [REPLACEMENT, *[""] * (len(specials) - 1), *characters]
        self._table = np.zeros(CODE_POINTS, dtype=np.int32)
        self._table[code_points("".join(characters))] = np.arange(len(specials), self.size)

    @classmethod
    def fit(cls, settings: TokenizerSettings, blocks: Iterable[str], ends: int = 0) -> Self:
        """Count the characters of `blocks`; `ends` is the number of `<eos>` that will end documents."""
        ready = normaliser(settings)
        total = np.zeros(CODE_POINTS, dtype=np.int64)
        for block in blocks:
            counts = np.bincount(code_points(ready(block)))
            total[: len(counts)] += counts
        seen = np.flatnonzero(total)
        units, counts_kept, left = by_frequency(zip(seen.tolist(), total[seen].tolist(), strict=True), settings)
        return cls(settings, [chr(unit) for unit in units], special_counts(settings, left, ends) + counts_kept)

    def encode(self, text: str) -> NDArray[np.int64]:
        """The ids of `text`, one for each character."""
        ids: NDArray[np.int64] = np.take(self._table, code_points(self._ready(text))).astype(np.int64)
        return ids

    def decode(self, ids: ArrayLike) -> str:
        return "".join([self._pieces[token] for token in id_list(ids, self.size)])

    def stream(self) -> TextStream:
        """A decoder for one id at a time; nothing is ever held back."""
        return _PieceStream(self._pieces)

    def unknown(self, text: str) -> list[str]:
        return [char for char in dict.fromkeys(self._ready(text)) if not self._table[ord(char)]]

    def _payload(self) -> dict[str, Any]:
        return {"characters": self.tokens[len(self.settings.special_tokens) :]}

    @classmethod
    def _restore(cls, settings: TokenizerSettings, counts: list[int], payload: dict[str, Any]) -> Self:
        return cls(settings, _Stored.model_validate(payload).characters, counts)


class _Stored(Stored):
    characters: list[Annotated[str, Field(min_length=1, max_length=1)]]


class _PieceStream:
    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    def push(self, token: int) -> str:
        return self._pieces[token]

    def finish(self) -> str:
        return ""


def code_points(text: str) -> NDArray[Any]:
    """The code points of `text`, without a step of Python for each.

    >>> code_points("aé").tolist()
    [97, 233]
    """
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
