"""Ready tokens (words, characters, affixes) to ids: frequent ones have one each, all others share the unknown one."""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman.errors import UserError
from elman.files import COPY_AGAIN, Stored, checked, read_json, write_text
from elman.text.settings import BOS, EOS, PAD, UNK, Count

FORMAT_VERSION = 1


class Vocabulary:
    """Tokens with ids, in order of falling training frequency behind the unknown one; `counts` is how often each stood.

    >>> vocabulary = Vocabulary.fit(["the", "cat", "the"], min_count=2)
    >>> vocabulary.tokens, vocabulary.counts.tolist()
    (['<unk>', 'the'], [1, 2])
    >>> vocabulary.encode(["the", "dog"]).tolist()
    [1, 0]
    """

    unk_id = 0

    def __init__(self, tokens: list[str], counts: ArrayLike) -> None:
        self.tokens = tokens
        self.counts: NDArray[np.int64] = np.asarray(counts, dtype=np.int64)
        self._ids = {token: place for place, token in enumerate(tokens)}
        if not tokens or tokens[0] != UNK or len(self._ids) != len(tokens) or self.counts.shape != (len(tokens),):
            raise ValueError(f"a vocabulary is {UNK} and distinct tokens behind it, with a count for each")

    @classmethod
    def fit(
        cls,
        tokens: Iterable[str],
        *,
        min_count: int = 1,
        size: int | None = None,
        extra: Iterable[str] = (),
        setting: str | None = None,
    ) -> "Vocabulary":
        """Count tokens; those seen `min_count` times have an id, at most `size` in all with the unknown one.

        `extra` tokens have one however rare they are: they stand last, as those with pre-trained vectors do. With
        the name of the `setting` that `min_count` is, one that leaves nothing is refused.
        """
        counts = Counter(tokens)
        left = counts.pop(UNK, 0)
        ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))  # no vocabulary by chance
        kept = [token for token, count in ordered if count >= min_count][: None if size is None else max(size - 1, 0)]
        kept = [token for token in dict.fromkeys([*kept, *extra]) if token != UNK]
        if setting is not None and counts and not set(kept) - {EOS, BOS, PAD}:
            raise nothing_left(setting, min_count, ordered[0][1])
        left += sum(counts.values()) - sum(counts[token] for token in kept)
        return cls([UNK, *kept], [left, *(counts[token] for token in kept)])

    @property
    def size(self) -> int:
        """V, the number of ids."""
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def id(self, token: str) -> int:
        """The id of one token."""
        return self._ids.get(token, self.unk_id)

    def encode(self, tokens: Iterable[str]) -> NDArray[np.int64]:
        """The ids of several; for characters a text will do."""
        return np.fromiter((self._ids.get(token, 0) for token in tokens), dtype=np.int64)

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return {"tokens": self.tokens, "counts": self.counts.tolist()}

    @classmethod
    def from_dict(cls, value: Any) -> "Vocabulary":
        """What `to_dict` gave; anything else is a ValueError.

        >>> Vocabulary.from_dict(Vocabulary.fit("hello").to_dict()).tokens
        ['<unk>', 'l', 'e', 'h', 'o']
        """
        stored = StoredVocabulary.model_validate(value)
        return cls(stored.tokens, stored.counts)

    def to_json(self) -> str:
        """The whole of it, as a file holds it."""
        return json.dumps({"version": FORMAT_VERSION, **self.to_dict()}) + "\n"

    def save(self, path: Path | str) -> None:
        """Write it as JSON, whole or not at all.

        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "words.json"
        >>> Vocabulary.fit(["yes"]).save(place)
        >>> Vocabulary.load(place).tokens
        ['<unk>', 'yes']
        """
        write_text(Path(path), self.to_json())

    @classmethod
    def load(cls, path: Path | str) -> "Vocabulary":
        """Read what `save` wrote."""
        if not Path(path).exists():
            raise UserError(f"cannot read the vocabulary {path}: there is no such file")
        return checked(StoredVocabulary, read_json(Path(path)), str(path)).vocabulary(str(path))


class StoredVocabulary(Stored):
    """A vocabulary as JSON holds it."""

    tokens: list[str]
    counts: list[Count]

    def vocabulary(self, where: str, key: str = "tokens") -> Vocabulary:
        """The vocabulary itself; `where` and the key name it where it is none."""
        try:
            return Vocabulary(self.tokens, self.counts)
        except ValueError as error:
            raise UserError(f"{where} is damaged: '{key}': {error}; {COPY_AGAIN}") from None


def nothing_left(setting: str, value: int, most: int) -> UserError:
    """What to say of a setting that makes every token unknown; `most` is how often the most frequent one stands.

    >>> print(nothing_left("text.min_count", 100, 7))
    text.min_count=100 leaves no known token, since none stands more than 7 times: say -s text.min_count=7 or less
    """
    return UserError(
        f"{setting}={value} leaves no known token, since none stands more than {most} times: "
        f"say -s {setting}={most} or less"
    )


def warn_unknown_tokens(counts: NDArray[np.int64], what: str, say: Callable[[str], None]) -> None:
    """Warn where most tokens are unknown: scores look good then, and mean little. `counts` begin with the unknown one.

    >>> warn_unknown_tokens(np.array([9, 1, 2]), "training words", print)
    warning: 75% of the training words are unknown: lower text.min_count, or raise text.size
    """
    share = counts[0] / max(counts.sum(), 1)
    if share > 0.5:
        say(f"warning: {share:.0%} of the {what} are unknown: lower text.min_count, or raise text.size")
