"""Pieces of words, learnt from the text by the `tokenizers` library: byte-pair encoding, the unigram model.

Both work on bytes, so that every text has ids and decodes to itself. A piece never crosses a line end: a text
may be encoded line by line.
"""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from elman.errors import UserError
from elman.files import Stored
from elman.text.bytelevel import BytePieces
from elman.text.settings import SUBWORD_SIZE, TokenizerSettings
from elman.text.tokenizer import normaliser, special_counts

if TYPE_CHECKING:
    import tokenizers

# A word with the blank before it, a number, a run of signs, one line end, or a run of blanks.
UNIT = r" ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\n|[^\S\n]+(?!\S)|[^\S\n]+"
CHUNK = 1 << 16
AFFIXES = ("continuing_subword_prefix", "end_of_word_suffix")


class SubwordTokenizer(BytePieces):
    """Byte-pair encoding (`bpe`) or the unigram language model (`unigram`).

    The library learns a unigram model in parallel, in no fixed order: a second fit may differ in a few pieces.

    >>> from elman.text import fit_tokenizer
    >>> tokenizer = fit_tokenizer(TokenizerSettings(kind="bpe", size=270), ["low lower lowest " * 9])
    >>> tokenizer.decode(tokenizer.encode("slowest ünder\\n"))
    'slowest ünder\\n'
    """

    def __init__(self, settings: TokenizerSettings, model: str, order: list[int], counts: ArrayLike) -> None:
        import tokenizers  # which takes as long to import as some answers take

        self._library = tokenizers.Tokenizer.from_str(model)
        self._model = model
        self._order = order
        size = self._library.get_vocab_size()
        if sorted(order) != list(range(size)):
            raise ValueError("'order' does not fit 'model': it should have the number of each of its pieces once")
        values = _byte_values()
        pieces = [bytes(values[char] for char in self._library.id_to_token(piece) or "") for piece in order]
        super().__init__(settings, pieces, counts)
        self._table = np.zeros(size, dtype=np.int64)
        self._table[order] = np.arange(len(settings.special_tokens), self.size)

    @classmethod
    def fit(cls, settings: TokenizerSettings, blocks: Iterable[str], ends: int = 0) -> Self:
        """Learn the pieces of `blocks`, then count them; `ends` is the number of `<eos>` to come."""
        ready = normaliser(settings)
        texts = list(blocks) if isinstance(blocks, Iterator) else blocks  # they are read twice
        library = _train(settings, (chunk for text in texts for chunk in _chunks(ready(text))))
        total = np.zeros(library.get_vocab_size(), dtype=np.int64)
        for text in texts:
            total += np.bincount(_library_ids(library, ready(text)), minlength=len(total))
        order = np.argsort(-total, kind="stable")
        counts = special_counts(settings, 0, ends) + total[order].tolist()
        return cls(settings, library.to_str(), order.tolist(), counts)

    def encode(self, text: str) -> NDArray[np.int64]:
        """The ids of `text`, one for each piece."""
        return self._table[_library_ids(self._library, self._ready(text))]

    def _payload(self) -> dict[str, Any]:
        return {"order": self._order, "model": json.loads(self._model)}

    @classmethod
    def _restore(cls, settings: TokenizerSettings, counts: list[int], payload: dict[str, Any]) -> Self:
        stored = _Stored.model_validate(payload)
        model = stored.library.get("model")
        if isinstance(model, dict) and any(model.get(key) for key in AFFIXES):  # of which the library may die
            raise ValueError(f"'model' has {' or '.join(AFFIXES)}, and these pieces have none")
        try:
            return cls(settings, json.dumps(stored.library), stored.order, counts)
        except (ValueError, UserError):
            raise
        except KeyError as error:
            raise ValueError(f"'model' has a piece with {error}, which stands for no byte") from None
        except BaseException as error:  # the library raises a bare Exception, or panics, which is none
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            raise ValueError(f"'model' is none of a tokenizer: {str(error)[:200]}") from None


class _Stored(Stored):
    order: list[int]
    library: dict[str, Any] = Field(alias="model")


def _train(settings: TokenizerSettings, chunks: Iterator[str]) -> "tokenizers.Tokenizer":
    import tokenizers
    from tokenizers import models, pre_tokenizers, trainers

    options: dict[str, Any] = {
        "vocab_size": (settings.size or SUBWORD_SIZE) - len(settings.special_tokens),
        "initial_alphabet": pre_tokenizers.ByteLevel.alphabet(),
        "show_progress": False,
    }
    if settings.kind == "bpe":
        library = tokenizers.Tokenizer(models.BPE())
        trainer: Any = trainers.BpeTrainer(min_frequency=max(settings.min_count, 2), **options)
    else:
        library = tokenizers.Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(**options)
    library.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(UNIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    first = next(chunks, None)
    if first is None:
        raise UserError(f"there is no text to learn the pieces of a {settings.kind} tokenizer from")

    def all_chunks() -> Iterator[str]:
        yield first
        yield from chunks

    library.train_from_iterator(all_chunks(), trainer)
    return library


def _library_ids(library: "tokenizers.Tokenizer", text: str) -> NDArray[np.int64]:
    found = [np.array(library.encode(chunk).ids, dtype=np.int64) for chunk in _chunks(text)]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _chunks(text: str) -> Iterator[str]:
    """Whole lines, some tens of thousands of characters at once: the library needs 100 bytes for each."""
    text = text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates are no text to the library
    start = 0
    while start < len(text):
        stop = text.rfind("\n", start, start + CHUNK) + 1 or text.find("\n", start + CHUNK) + 1 or len(text)
        yield text[start:stop]
        start = stop


def _byte_values() -> dict[str, int]:
    """The library writes each byte as one printable character: bytes that print stand for themselves, the
    others follow, in order, from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [value for value in range(256) if value not in printable]
    return {chr(value): value for value in printable} | {chr(0x100 + n): v for n, v in enumerate(others)}
