"""From texts to what the network reads: ids of tokens, or words and their characters; packed, without padding.

A reader is made once from the training texts, lives in the model folder's `tokenizer.json`, and encodes every text
after that in the same way.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from elman.batches.examples import pad
from elman.tasks.classify.settings import ModelSettings, TextSettings
from elman.text import EOS, Tokenizer, fit_tokenizer
from elman.text.spelling import Spelled, Speller
from elman.text.tokenizer import normaliser


class Inputs(NamedTuple):
    """Some texts, packed (N tokens in all)."""

    tokens: PackedSequence
    """N ids; where words are spelled, N places among the distinct words."""
    spelled: Spelled | None = None
    """The distinct words."""


class Reader(Protocol):
    """Encodes texts; `size` and `counts` are those of its vocabulary."""

    longest: int

    @property
    def size(self) -> int: ...

    @property
    def counts(self) -> np.ndarray: ...

    def encode(self, text: str) -> Any:
        """One text as a sequence of tokens, its beginning if it is too long."""

    def pack(self, encoded: Sequence[Any]) -> Inputs:
        """Some encoded texts as the network reads them."""

    def to_json(self) -> str: ...

    def save(self, path: Path | str) -> None: ...


class TokenReader:
    """Reads ids of characters, bytes, words or sub-words.

    >>> reader = TokenReader(fit_tokenizer(TextSettings(kind="characters"), ["abba"]), edges=True)
    >>> reader.encode("ab").tolist(), reader.pack([reader.encode("ab"), reader.encode("b")]).tokens.data.tolist()
    ([1, 2, 3, 1], [1, 1, 2, 3, 3, 1, 1])
    """

    def __init__(self, tokenizer: Tokenizer, *, edges: bool, longest: int = 2000) -> None:
        self.tokenizer, self.edges, self.longest = tokenizer, edges, longest
        self.to_json, self.save = tokenizer.to_json, tokenizer.save

    @property
    def size(self) -> int:
        """V, the number of ids."""
        return self.tokenizer.size

    @property
    def counts(self) -> np.ndarray:
        """How often each id stood in the training texts."""
        return self.tokenizer.counts

    def encode(self, text: str) -> np.ndarray:
        """The ids of one text."""
        ids = self.tokenizer.encode(text)[: self.longest]
        return np.pad(ids, 1, constant_values=self.tokenizer.eos_id) if self.edges or not len(ids) else ids

    def pack(self, encoded: Sequence[np.ndarray]) -> Inputs:
        """Ids of several texts, packed."""
        return Inputs(_packed(encoded))


class WordReader:
    """Reads words as a whole and by their characters.

    >>> reader = WordReader(Speller.fit(["a", "cat", EOS]), TextSettings(kind="words"), edges=False)
    >>> inputs = reader.pack([reader.encode("a cat"), reader.encode("cat")])
    >>> inputs.tokens.data.tolist(), inputs.spelled.lengths.tolist()
    ([0, 1, 1], [1, 3])
    """

    def __init__(self, speller: Speller, settings: TextSettings, *, edges: bool, longest: int = 2000) -> None:
        self.speller, self.edges, self.longest = speller, edges, longest
        self._ready = normaliser(settings.model_copy(update={"lowercase": False}))  # the speller looks at both
        self.to_json, self.save = speller.to_json, speller.save

    @property
    def size(self) -> int:
        """V, the number of words."""
        return self.speller.words.size

    @property
    def counts(self) -> np.ndarray:
        """How often each word stood in the training texts."""
        return self.speller.words.counts

    def encode(self, text: str) -> list[str]:
        """The words of one text."""
        words = self._ready(text).split()[: self.longest]
        return [EOS, *words, EOS] if self.edges or not words else words

    def pack(self, encoded: Sequence[list[str]]) -> Inputs:
        """Words of several texts, packed, each distinct one spelled once."""
        spelled = self.speller([word for words in encoded for word in words])
        ends = np.cumsum([len(words) for words in encoded])[:-1]
        return Inputs(_packed(np.split(spelled.words.numpy(), ends)), spelled)


def _packed(rows: Sequence[np.ndarray]) -> PackedSequence:
    if len(rows) == 1:  # the answer to one question should not wait for sorting
        ids = torch.from_numpy(np.ascontiguousarray(rows[0], np.int64))
        return PackedSequence(ids, torch.ones(len(ids), dtype=torch.int64))
    ids, lengths = pad(rows)
    return pack_padded_sequence(ids, lengths, batch_first=True, enforce_sorted=False)


def fit_reader(texts: Iterable[str], text: TextSettings, model: ModelSettings) -> Reader:
    """A reader for the vocabulary of the training texts."""
    texts = list(texts)
    if not model.characters:
        tokenizer = fit_tokenizer(text, texts)
        return TokenReader(tokenizer, edges=model.edges, longest=model.longest)
    ready = normaliser(text.model_copy(update={"lowercase": False}))
    speller = Speller.fit(
        (word for line in texts for word in ready(line).split()),
        min_count=text.min_count,
        size=text.size,
        extra=[EOS],
        lowercase=text.lowercase,
    )
    return WordReader(speller, text, edges=model.edges, longest=model.longest)


def load_reader(path: Path, text: TextSettings, model: ModelSettings) -> Reader:
    """The reader of a model folder."""
    if model.characters:
        return WordReader(Speller.load(path), text, edges=model.edges, longest=model.longest)
    return TokenReader(Tokenizer.load(path), edges=model.edges, longest=model.longest)
