"""What every tokenizer can do: text to ids and back, and to a file and back."""

import json
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, Protocol, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ValidationError

from elman.errors import UserError
from elman.files import COPY_AGAIN, Stored, checked, mistake, parse_json, read_text, write_text
from elman.text.settings import BOS, PAD, Count, TokenizerSettings
from elman.text.vocabulary import nothing_left

FORMAT_VERSION = 1


class TextStream(Protocol):
    """Decodes one id at a time, for text that appears while it is made."""

    def push(self, token: int) -> str:
        """The text that is certain now that `token` has come."""
        ...

    def finish(self) -> str:
        """What was held back, as far as it can be read."""
        ...


class Tokenizer(ABC):
    """Text to ids and back; ids follow the special tokens in order of falling training frequency.

    Code points alone have an order of their own.

    `tokens` are for people to read, `counts` is how often each id stood in the training text.

    >>> from elman.text import TokenizerSettings, fit_tokenizer
    >>> tokenizer = fit_tokenizer(TokenizerSettings(), ["hello"])
    >>> tokenizer.tokens
    ['<unk>', '<eos>', 'l', 'e', 'h', 'o']
    >>> tokenizer.encode("hole").tolist()
    [4, 5, 2, 3]
    >>> tokenizer.decode([4, 5, 2, 3])
    'hole'
    >>> tokenizer.unknown("help!")
    ['p', '!']
    """

    unk_id = 0
    eos_id = 1

    def __init__(self, settings: TokenizerSettings, tokens: list[str], counts: ArrayLike) -> None:
        self.settings = settings
        self.tokens = tokens
        self.counts: NDArray[np.int64] = np.asarray(counts, dtype=np.int64)
        if self.counts.shape != (len(tokens),):
            raise ValueError(f"'counts' has {self.counts.size} counts for {len(tokens)} tokens")
        self._ready: Callable[[str], str] = normaliser(settings)

    @property
    def size(self) -> int:
        """V, the number of ids."""
        return len(self.tokens)

    def special_id(self, token: str) -> int:
        """The id of a special token such as `<pad>`."""
        return self.settings.special_tokens.index(token)

    @property
    def start_id(self) -> int:
        """What stands before a text: `<bos>` where there is one, else `<eos>`."""
        return self.special_id(BOS) if self.settings.bos else self.eos_id

    @property
    def pad_id(self) -> int | None:
        """`<pad>`; None where there is none."""
        return self.special_id(PAD) if self.settings.pad else None

    @property
    def unwritten(self) -> set[int]:
        """The special tokens behind `<eos>` that no model writes: start, padding, and what stood in no training text.

        >>> from elman.text import fit_tokenizer
        >>> sorted(fit_tokenizer(TokenizerSettings(bos=True, pad=True), ["hello"]).unwritten)
        [2, 3]
        """
        specials = self.settings.special_tokens
        return {id for id in range(2, len(specials)) if specials[id] in (BOS, PAD) or not self.counts[id]}

    @abstractmethod
    def encode(self, text: str) -> NDArray[np.int64]:
        """The ids of `text`; what has no id becomes `<unk>`."""

    @abstractmethod
    def stream(self) -> TextStream:
        """A decoder that takes one id at a time; its pieces joined are what `decode` gives."""

    @abstractmethod
    def unknown(self, text: str) -> list[str]:
        """The distinct characters or words of `text` that have no id, in order of appearance."""

    def decode(self, ids: ArrayLike) -> str:
        """The text of `ids`."""
        stream = self.stream()
        return "".join(map(stream.push, id_list(ids, self.size))) + stream.finish()

    @abstractmethod
    def _payload(self) -> dict[str, Any]:
        """What `_restore` needs besides settings and counts."""

    @classmethod
    @abstractmethod
    def _restore(cls, settings: TokenizerSettings, counts: list[int], payload: dict[str, Any]) -> Self:
        """The tokenizer that `_payload` was taken from."""

    def to_json(self) -> str:
        """The whole tokenizer as the text of a `tokenizer.json`."""
        value = {
            "format": "elman-tokenizer",
            "version": FORMAT_VERSION,
            "settings": self.settings.stored(),
            "counts": self.counts.tolist(),
            **self._payload(),
        }
        return json.dumps(value, ensure_ascii=True) + "\n"

    def fingerprint(self) -> str:
        """A short hash that differs wherever the ids could."""
        return blake2b(self.to_json().encode(), digest_size=16).hexdigest()

    def save(self, path: Path | str) -> None:
        """Write `tokenizer.json`, whole or not at all."""
        write_text(Path(path), self.to_json())

    @staticmethod
    def from_json(text: str, where: str = "the tokenizer") -> "Tokenizer":
        """The tokenizer of a `to_json`; `where` names it in error messages."""
        from elman.text.kinds import KINDS  # the kinds derive from this class

        value = parse_json(text, where)
        stored = checked(_Stored, value, where)
        if stored.version > FORMAT_VERSION:
            raise UserError(
                f"{where} was written by a newer Elman (tokenizer version {stored.version}, this one reads "
                f"up to {FORMAT_VERSION}): upgrade elman to use it"
            )
        try:
            return KINDS[stored.settings.kind]._restore(stored.settings, stored.counts, value)
        except ValidationError as error:
            raise UserError(f"{where} is damaged: {mistake(error)}; {COPY_AGAIN}") from None
        except ValueError as error:
            raise UserError(f"{where} is damaged: {error}; {COPY_AGAIN}") from None

    @staticmethod
    def load(path: Path | str) -> "Tokenizer":
        """Read a `tokenizer.json`."""
        return Tokenizer.from_json(read_text(Path(path)), where=str(path))


class _Stored(Stored):
    """What every `tokenizer.json` holds; each kind has its own tokens beside it."""

    format: Literal["elman-tokenizer"]
    version: int
    settings: TokenizerSettings
    counts: list[Count]


def id_list(ids: ArrayLike, size: int) -> list[int]:
    """Ids of a vocabulary of `size`, in whatever form they come, as a flat list of Python integers."""
    found = np.asarray(ids).ravel()
    if found.size and found.dtype.kind in "iu" and not 0 <= int(found.min()) <= int(found.max()) < size:
        raise ValueError(f"the ids go from {found.min()} to {found.max()}, and those of the vocabulary to {size - 1}")
    return cast(list[int], found.tolist())


def by_frequency(counts: Iterable[tuple[Any, int]], settings: TokenizerSettings) -> tuple[list[Any], list[int], int]:
    """Units in order of falling count within `min_count` and `size`; their counts; the count of all others.

    Equal counts stand in the order of the units themselves, so that a vocabulary does not depend on chance.
    """
    ordered = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
    room = len(ordered) if settings.size is None else settings.size - len(settings.special_tokens)
    kept = [pair for pair in ordered if pair[1] >= settings.min_count][: max(room, 0)]
    if ordered and not kept:
        if settings.min_count > ordered[0][1]:
            raise nothing_left("text.min_count", settings.min_count, ordered[0][1])
        raise no_room(settings)
    left = sum(count for _, count in ordered) - sum(count for _, count in kept)
    return [unit for unit, _ in kept], [count for _, count in kept], left


def no_room(settings: TokenizerSettings) -> UserError:
    """What to say of a vocabulary that has its special tokens and nothing else."""
    return UserError(
        f"text.size={settings.size} has room for the special tokens only: "
        f"say -s text.size={len(settings.special_tokens) + 1} or more"
    )


def special_counts(settings: TokenizerSettings, unk: int, eos: int) -> list[int]:
    """Training counts of the special tokens; those that only stand before or behind a text are never counted."""
    return [unk, eos, *[0] * (len(settings.special_tokens) - 2)]


def normaliser(settings: TokenizerSettings) -> Callable[[str], str]:
    """What is done to every text before it is cut: Unicode normal form, lower case."""
    return partial(_normalised, settings.normalise, settings.lowercase)  # which can be pickled


def _normalised(form: Any, lowercase: bool, text: str) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a text is a str, not a {type(text).__name__}")
    if form != "none":
        text = unicodedata.normalize(form, text)
    return text.lower() if lowercase else text
