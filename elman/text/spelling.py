"""What words are made of, for the layers of `elman.nn.features`: their ids, characters, case, beginnings and endings.

    speller = Speller.fit(words, prefixes=(2,), suffixes=(2, 3))
    spelled = speller(["the", "cat", "the"])         # words 0 1 0: two distinct ones

The parts of a word are made once, and kept for the next time that it comes.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from elman.errors import UserError
from elman.files import Stored, checked, read_json, write_text
from elman.text.vocabulary import StoredVocabulary, Vocabulary

VERSION = 1
CASES = ("lower", "title", "upper", "mixed", "number", "with digits", "symbols")
DIGITS = re.compile(r"\d")
Ints = NDArray[np.int64]
KEPT = 1 << 17  # words kept at most: a text without end must not end up in memory


class Spelled(NamedTuple):
    """N tokens by the W distinct words among them, whose characters need be computed on once only."""

    words: Ints  # N: which of the distinct words each token is
    ids: Ints  # W: ids of the words
    characters: Ints  # W x C: ids of their characters, 0 behind the last
    lengths: Ints  # W: how many characters each has
    features: Ints  # W x F: case, prefixes, suffixes, an id each


def case_of(word: str) -> int:
    """The shape of a word's case, as a place in `CASES`.

    >>> [CASES[case_of(word)] for word in ("the", "The", "I", "USA", "iPhone", "1,000", "B2B", "--")]
    ['lower', 'title', 'title', 'upper', 'mixed', 'number', 'with digits', 'symbols']
    """
    if DIGITS.search(word):
        return 5 if any(map(str.isalpha, word)) else 4
    if word.islower():
        return 0
    if word.isupper() and len(word) > 1:
        return 2
    if word[:1].isupper() and not any(map(str.isupper, word[1:])):
        return 1
    return 3 if any(map(str.isalpha, word)) else 6


class Speller:
    """From tokens to the parts of their words.

    With `lowercase`, words and affixes are looked up in small letters; characters and case always see the word as it
    is written. Of a word with more than `longest` characters the first and the last are seen. `characters` may
    be None, where nothing is to be computed on them.

    >>> speller = Speller.fit(["the", "cat", "The", "dog"], suffixes=(1,))
    >>> spelled = speller(["The", "cat", "The"])
    >>> spelled.words.tolist(), [speller.words.tokens[id] for id in spelled.ids]
    ([0, 1, 0], ['the', 'cat'])
    >>> spelled.lengths.tolist(), speller.feature_counts
    ([3, 3], [7, 4])
    """

    def __init__(
        self,
        words: Vocabulary,
        characters: Vocabulary | None,
        prefixes: dict[int, Vocabulary] | None = None,
        suffixes: dict[int, Vocabulary] | None = None,
        *,
        lowercase: bool = True,
        longest: int = 32,
    ) -> None:
        self.words, self.characters = words, characters
        self.prefixes, self.suffixes = prefixes or {}, suffixes or {}
        self.lowercase, self.longest = lowercase, longest
        self._known = _Known(self)
        self._lock = Lock()

    def __reduce__(self) -> Any:
        made_of = (self.words, self.characters, self.prefixes, self.suffixes)
        return partial(type(self), lowercase=self.lowercase, longest=self.longest), made_of

    @classmethod
    def fit(
        cls,
        tokens: Iterable[str],
        *,
        min_count: int = 1,
        size: int | None = None,
        extra: Iterable[str] = (),
        characters: bool = True,
        character_count: int = 1,
        prefixes: Sequence[int] = (),
        suffixes: Sequence[int] = (),
        affix_count: int = 1,
        lowercase: bool = True,
        longest: int = 32,
    ) -> "Speller":
        """Count the parts of the words of a training set.

        `prefixes` and `suffixes` are their lengths; a part that occurs less often than its `..._count`
        is unknown. `extra` are words that have an id in any case: those with pre-trained vectors.
        """
        written = list(tokens)
        looked_up = [token.lower() for token in written] if lowercase else written
        return cls(
            Vocabulary.fit(looked_up, min_count=min_count, size=size, extra=extra, setting="text.min_count"),
            Vocabulary.fit(
                (c for token in written for c in token), min_count=character_count, setting="text.character_count"
            )
            if characters
            else None,
            {n: Vocabulary.fit((token[:n] for token in looked_up), min_count=affix_count) for n in prefixes},
            {n: Vocabulary.fit((token[-n:] for token in looked_up), min_count=affix_count) for n in suffixes},
            lowercase=lowercase,
            longest=longest,
        )

    def __call__(self, tokens: Sequence[str]) -> Spelled:
        """The parts of some tokens, at least one; the distinct words stand in the order in which they first come."""
        numbers = {word: number for number, word in enumerate(dict.fromkeys(tokens))}
        words = np.fromiter(map(numbers.__getitem__, tokens), np.int64, len(tokens))
        with self._lock:  # a server's threads share the words that are known
            if len(self._known) + len(numbers) > KEPT:
                self._known = _Known(self)
            known = self._known
            rows = np.fromiter(map(known.__getitem__, numbers), np.int64, len(numbers))
            lengths = known.lengths[rows]
            characters = known.characters[rows, : lengths.max(initial=0)]
            return Spelled(words, known.ids[rows], characters, lengths, known.features[rows])

    @property
    def feature_counts(self) -> list[int]:
        """How many values each feature has: what `WordFeatures` wants to know."""
        return [len(CASES), *(vocabulary.size for vocabulary in self._affixes())]

    def _affixes(self) -> Iterator[Vocabulary]:
        yield from self.prefixes.values()
        yield from self.suffixes.values()

    def word_id(self, token: str) -> int:
        """The id of a token's word."""
        return self.words.id(token.lower() if self.lowercase else token)

    def character_ids(self, token: str) -> list[int]:
        """The ids of a token's characters; none where words are not spelled."""
        if self.characters is None:
            return []
        if len(token) > self.longest:
            half = self.longest // 2
            token = token[: self.longest - half] + token[len(token) - half :]
        return [self.characters.id(character) for character in token]

    def feature_ids(self, token: str) -> list[int]:
        """Case, prefixes, suffixes."""
        small = token.lower() if self.lowercase else token
        return [
            case_of(token),
            *(vocabulary.id(small[:n]) for n, vocabulary in self.prefixes.items()),
            *(vocabulary.id(small[-n:]) for n, vocabulary in self.suffixes.items()),
        ]

    def to_json(self) -> str:
        """The text of a `tokenizer.json`."""
        value = {
            "format": "elman-speller",
            "version": VERSION,
            "lowercase": self.lowercase,
            "longest": self.longest,
            "words": self.words.to_dict(),
            "characters": None if self.characters is None else self.characters.to_dict(),
            # lists, not objects: the order of the features is that of the network's inputs
            "prefixes": [[n, vocabulary.to_dict()] for n, vocabulary in self.prefixes.items()],
            "suffixes": [[n, vocabulary.to_dict()] for n, vocabulary in self.suffixes.items()],
        }
        return json.dumps(value, ensure_ascii=True) + "\n"

    def save(self, path: Path | str) -> None:
        """Write `tokenizer.json`, whole or not at all.

        >>> import tempfile
        >>> place = Path(tempfile.mkdtemp()) / "tokenizer.json"
        >>> speller = Speller.fit(["one", "two"], suffixes=(1,))
        >>> speller.save(place)
        >>> Speller.load(place).feature_ids("ten") == speller.feature_ids("ten")
        True
        """
        write_text(Path(path), self.to_json())

    @classmethod
    def load(cls, path: Path | str) -> "Speller":
        """Read what `save` wrote."""
        stored = checked(_Stored, read_json(Path(path)), str(path))
        if stored.version > VERSION:
            raise UserError(f"{path} was written by a newer Elman: upgrade elman to use it")
        where = str(path)
        return cls(
            stored.words.vocabulary(where, "words"),
            None if stored.characters is None else stored.characters.vocabulary(where, "characters"),
            {n: vocabulary.vocabulary(where, "prefixes") for n, vocabulary in stored.prefixes},
            {n: vocabulary.vocabulary(where, "suffixes") for n, vocabulary in stored.suffixes},
            lowercase=stored.lowercase,
            longest=stored.longest,
        )


class _Stored(Stored):
    """What a speller's `tokenizer.json` holds."""

    format: Literal["elman-speller"]
    version: int
    lowercase: bool
    longest: int = Field(ge=1)
    words: StoredVocabulary
    characters: StoredVocabulary | None
    prefixes: list[tuple[Annotated[int, Field(ge=1)], StoredVocabulary]]
    suffixes: list[tuple[Annotated[int, Field(ge=1)], StoredVocabulary]]


class _Known(dict[str, int]):
    """The words met so far: each has a row in the tables, which grow as words come."""

    def __init__(self, speller: Speller, rows: int = 256) -> None:
        super().__init__()
        self.speller = speller
        width = min(speller.longest, 32) if speller.characters is not None else 0
        self.ids: Ints = np.zeros(rows, np.int64)
        self.lengths: Ints = np.zeros(rows, np.int64)
        self.characters: Ints = np.zeros((rows, width), np.int64)
        self.features: Ints = np.zeros((rows, len(speller.feature_counts)), np.int64)

    def __missing__(self, word: str) -> int:
        row = len(self)
        if row == len(self.ids):
            for name in ("ids", "lengths", "characters", "features"):
                table = getattr(self, name)
                setattr(self, name, np.concatenate([table, np.zeros_like(table)]))
        characters = self.speller.character_ids(word)
        wider = len(characters) - self.characters.shape[1]
        if wider > 0:  # rows of the longest word that was met, not of the longest that may come
            self.characters = np.pad(self.characters, ((0, 0), (0, wider)))
        self.ids[row] = self.speller.word_id(word)
        self.lengths[row] = len(characters)
        self.characters[row, : len(characters)] = characters
        self.features[row] = self.speller.feature_ids(word)
        self[word] = row
        return row
