"""From whole texts to the sequences that a network reads: ids of tokens, or words that are spelled as well."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from elman.ragged import Ragged
from elman.text.settings import BOS, EOS, PAD, TokenizerSettings
from elman.text.spelling import Spelled, Speller
from elman.text.tokenizer import Tokenizer, normaliser


class TokenEncoder:
    """Texts as ids of characters, bytes, words or sub-words; with `edges`, an end token before and behind each.

    Where the tokenizer has a start token, that stands before them. Another id may stand at both ends: `edge`.

    >>> from elman.text import fit_tokenizer
    >>> encoder = TokenEncoder(fit_tokenizer(TokenizerSettings(kind="characters"), ["abba"]), edges=True)
    >>> encoder.encode(["ab", ""]).data.tolist()
    [1, 2, 3, 1, 1, 1]
    """

    def __init__(self, tokenizer: Tokenizer, *, edges: bool, longest: int = 2000, edge: int | None = None) -> None:
        self.tokenizer, self.edges, self.longest = tokenizer, edges, longest
        self.ends = (tokenizer.start_id, tokenizer.eos_id) if edge is None else (edge, edge)
        self.to_json, self.save = tokenizer.to_json, tokenizer.save

    @property
    def size(self) -> int:
        """V, the number of ids."""
        return self.tokenizer.size

    @property
    def counts(self) -> np.ndarray:
        """How often each id stood in the training texts."""
        return self.tokenizer.counts

    def encode(self, texts: Sequence[str]) -> Ragged:
        """The ids of some texts; of one that is too long, its beginning."""
        ids = [self.tokenizer.encode(text)[: self.longest] for text in texts]
        start, end = (np.array([id]) for id in self.ends)
        return Ragged.of([np.concatenate((start, row, end)) if self.edges or not len(row) else row for row in ids])

    def spelled(self, tokens: Ragged) -> tuple[Ragged, None]:
        """Encoded texts as a network reads them: the ids themselves."""
        return tokens, None


class WordEncoder:
    """Texts as words, read as a whole and by their characters.

    >>> encoder = WordEncoder(Speller.fit(["a", "cat", EOS]), TokenizerSettings(kind="words"), edges=False)
    >>> places, spelled = encoder.spelled(encoder.encode(["a cat", "cat"]))
    >>> places.data.tolist(), spelled.lengths.tolist()
    ([0, 1, 1], [1, 3])
    """

    def __init__(self, speller: Speller, settings: TokenizerSettings, *, edges: bool, longest: int = 2000) -> None:
        self.speller, self.edges, self.longest = speller, edges, longest
        self.start = BOS if settings.bos else EOS
        self._ready = normaliser(settings.model_copy(update={"lowercase": False}))  # the speller looks at both
        self.to_json, self.save = speller.to_json, speller.save

    @classmethod
    def fit(
        cls, texts: Iterable[str], settings: TokenizerSettings, extra: Iterable[str] = (), **options: Any
    ) -> "WordEncoder":
        """An encoder for the words of training texts, and for those that are `extra`."""
        ready = normaliser(settings.model_copy(update={"lowercase": False}))
        speller = Speller.fit(
            (word for line in texts for word in ready(line).split()),
            min_count=settings.min_count,
            size=settings.size,
            extra=[EOS, *[BOS] * settings.bos, *[PAD] * settings.pad, *extra],
            lowercase=settings.lowercase,
        )
        return cls(speller, settings, **options)

    @classmethod
    def load(cls, path: Path, settings: TokenizerSettings, **options: Any) -> "WordEncoder":
        """Read a `tokenizer.json`."""
        return cls(Speller.load(path), settings, **options)

    @property
    def size(self) -> int:
        """V, the number of words."""
        return self.speller.words.size

    @property
    def counts(self) -> np.ndarray:
        """How often each word stood in the training texts."""
        return self.speller.words.counts

    def encode(self, texts: Sequence[str]) -> Ragged:
        """The words of some texts; of one that is too long, its beginning."""
        rows = [self._ready(text).split()[: self.longest] for text in texts]
        return words([[self.start, *row, EOS] if self.edges or not row else row for row in rows])

    def spelled(self, tokens: Ragged) -> tuple[Ragged, Spelled]:
        """Encoded texts as a network reads them: places among the distinct words, and how those are spelled."""
        return spelled(self.speller, tokens)


def words(sentences: Sequence[Sequence[str]]) -> Ragged:
    """Sentences of ready words as one ragged batch.

    >>> words([["a", "cat"], ["b"]]).lengths.tolist()
    [2, 1]
    """
    every = [word for sentence in sentences for word in sentence]
    data = np.empty(len(every), object)
    data[:] = every
    return Ragged(data, np.fromiter(map(len, sentences), np.int64, len(sentences)))


def spelled(speller: Speller, tokens: Ragged) -> tuple[Ragged, Spelled]:
    """Places among the distinct words of a batch, and how those are spelled: each need be computed on once only."""
    found = speller(tokens.data.tolist())
    return tokens.with_data(np.asarray(found.words)), found
