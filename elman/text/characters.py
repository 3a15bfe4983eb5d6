"""One id for each character."""

from collections.abc import Iterable
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from elman.files import Stored
from elman.text.settings import TokenizerSettings
from elman.text.tokenizer import TextStream, Tokenizer, by_frequency, id_list, no_room, normaliser, special_counts

CODE_POINTS = 0x110000
ASCII = 128
SURROGATES = (0xD800, 0xE000)
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
        total = _counted(settings, blocks)
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


class CodePointTokenizer(CharacterTokenizer):
    """Characters to their own code points: an id is what `ord` gives.

    The special tokens take the first ids, which are those of control characters that stand in no text. The vocabulary
    goes as far as `size`, or to the highest character of the training text (one seen `min_count` times), and through
    all of ASCII at least; a character beyond it is unknown.

    >>> from elman.text import fit_tokenizer
    >>> tokenizer = fit_tokenizer(TokenizerSettings(kind="codepoints"), ["adylov"])
    >>> tokenizer.encode("adylov").tolist(), tokenizer.size
    ([97, 100, 121, 108, 111, 118], 128)
    >>> tokenizer.encode("né").tolist(), tokenizer.unknown("né")
    ([110, 0], ['é'])
    """

    def __init__(self, settings: TokenizerSettings, counts: ArrayLike) -> None:
        first, size = len(settings.special_tokens), len(np.asarray(counts))
        super().__init__(settings, [chr(point) for point in range(first, size)], counts)
        halves = slice(*np.clip(SURROGATES, 0, size))  # of characters beyond 16 bits: no text has one alone
        self._pieces[halves] = [REPLACEMENT] * (halves.stop - halves.start)
        self._table[halves] = self.unk_id

    @classmethod
    def fit(cls, settings: TokenizerSettings, blocks: Iterable[str], ends: int = 0) -> Self:
        """Count the characters of `blocks`; `ends` is the number of `<eos>` that will end documents."""
        total = _counted(settings, blocks)
        first, frequent = len(settings.special_tokens), np.flatnonzero(total >= settings.min_count)
        if settings.size is not None and settings.size <= first:
            raise no_room(settings)
        size = settings.size or max(ASCII, int(frequent.max(initial=0)) + 1)
        known = total[first:size].copy()
        known[slice(*np.clip(np.array(SURROGATES) - first, 0, len(known)))] = 0
        left = int(total.sum() - known.sum())
        return cls(settings, special_counts(settings, left, ends) + known.tolist())

    def _payload(self) -> dict[str, Any]:
        return {}  # the ids are the characters

    @classmethod
    def _restore(cls, settings: TokenizerSettings, counts: list[int], payload: dict[str, Any]) -> Self:
        if not len(settings.special_tokens) < len(counts) <= CODE_POINTS:
            raise ValueError(f"'counts' has {len(counts)} counts, and there are {CODE_POINTS} code points")
        return cls(settings, counts)


class _Stored(Stored):
    characters: list[Annotated[str, Field(min_length=1, max_length=1)]]


class _PieceStream:
    def __init__(self, pieces: list[str]) -> None:
        self._pieces = pieces

    def push(self, token: int) -> str:
        return self._pieces[token]

    def finish(self) -> str:
        return ""


def _counted(settings: TokenizerSettings, blocks: Iterable[str]) -> NDArray[np.int64]:
    """How often each code point stands in `blocks`."""
    ready = normaliser(settings)
    total = np.zeros(CODE_POINTS, dtype=np.int64)
    for block in blocks:
        counts = np.bincount(code_points(ready(block)))
        total[: len(counts)] += counts
    return total


def code_points(text: str) -> NDArray[Any]:
    """The code points of `text`, without a step of Python for each.

    >>> code_points("aé").tolist()
    [97, 233]
    """
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
