"""Text to ids, once: written to the cache folder, found there the next time by what the text holds.

A fitted tokenizer is kept by the text and the settings that it was fitted on, ids by the text and the tokenizer: who
brings a tokenizer finds the ids that were made when it was fitted.
"""

import json
import shutil
import tempfile
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elman.batches.stream import IdStream, MappedIds, offset_dtype, smallest_dtype
from elman.cache import cache_folder, writing_to_cache
from elman.errors import RunError, UserError, nearest
from elman.records.records import Part, Record, RecordFiles
from elman.records.running_text import Document, TextFiles
from elman.text import Tokenizer, TokenizerSettings, fit_tokenizer

FORMAT_VERSION = 2
NAMES = ("ids.bin", "documents.bin", "labels.bin")
BLOCK = 1 << 16  # places of documents that are read at once
WAITING = 1 << 18  # ids that are written at once
JOINED = 1 << 10  # records whose characters are counted at once


def stream_ids(
    files: TextFiles,
    tokenizer: TokenizerSettings | Tokenizer,
    *,
    start: float = 0.0,
    stop: float = 1.0,
    cache_dir: Path | None = None,
) -> tuple[IdStream, Tokenizer]:
    """The ids of the part of `files` from `start` to `stop`, and the tokenizer that made them.

    Settings in place of a tokenizer: one is fitted on exactly this part. Where there are several documents
    each is ended by `<eos>`. The same text, part and tokenizer are encoded only once.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("banana")
    >>> ids, tokenizer = stream_ids(TextFiles(folder), TokenizerSettings(), cache_dir=folder / "cache")
    >>> ids.read(0, 6).tolist(), tokenizer.tokens[2:]
    ([4, 2, 3, 2, 3, 2], ['a', 'n', 'b'])
    """
    cache = cache_folder() if cache_dir is None else cache_dir
    survey = files.survey(memo=cache / "surveys")
    text = [files.encoding, [facts.digest for facts in survey.files], start, stop]
    several = len(files.paths) > 1

    def fit(settings: TokenizerSettings) -> Tokenizer:
        ends = sum(several and _needs_eos(document, settings) for document in files.documents(start, stop))
        return fit_tokenizer(settings, files.blocks(start, stop), ends)

    fitted = _fitted(cache, text, tokenizer, fit)

    def write(out: "IdWriter") -> None:
        for document in files.documents(start, stop):
            out.begin(document.stop - document.start)
            for ids in _document_ids(document, fitted, several):
                out.add(ids)
        if not out.length:
            part = "" if (start, stop) == (0.0, 1.0) else f"the part from {start:.3g} to {stop:.3g} of "
            raise UserError(f"{part}{files.paths[0]} holds no tokens: give a text that is more than blanks")

    return cached_ids(cache, text, fitted, write), fitted


def line_stream_ids(
    files: RecordFiles,
    tokenizer: TokenizerSettings | Tokenizer,
    labels: list[str] | None = None,
    *,
    part: Part | None = None,
    cache_dir: Path | None = None,
) -> tuple[IdStream, Tokenizer, list[str] | None]:
    """What `line_ids` gives, for the records of files (or a part of them): written to the cache, never all in memory.

    Without `labels` they are those of all the records, also where only a part is encoded.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("ab,x\\nb,y\\n")
    >>> files = RecordFiles(folder / "a.csv", text=1, label=2)
    >>> ids, tokenizer, labels = line_stream_ids(files, TokenizerSettings(), cache_dir=folder / "cache")
    >>> ids.read(0, 5).tolist(), ids.documents.tolist(), ids.labels.tolist(), labels
    ([3, 2, 1, 2, 1], [0, 3], [0, 1], ['x', 'y'])
    """
    cache = cache_folder() if cache_dir is None else cache_dir
    files.files.survey(memo=cache / "surveys")
    facts = files.facts(memo=cache / "records")
    if labels is None:
        labels = facts.labels or None
    place = None if part is None else [part.held, part.seed, part.inside]
    count = facts.count if part is None else part.held if part.inside else facts.count - part.held
    fitted = _fitted(
        cache,
        ["lines", files.identity(), place],
        tokenizer,
        lambda settings: fit_tokenizer(settings, _Texts(files, part, settings), ends=count),
    )

    def write(out: "IdWriter") -> None:
        end = np.array([fitted.eos_id], dtype=np.int64)
        for record, label in _with_label_ids(files.records(part), labels):
            out.begin(len(record.text) + 1, label)
            out.add(fitted.encode(record.text))
            out.add(end)

    return (
        cached_ids(cache, ["lines", files.identity(), place, labels], fitted, write, len(labels or ())),
        fitted,
        labels,
    )


def line_ids(
    records: Sequence[Record], tokenizer: TokenizerSettings | Tokenizer, labels: list[str] | None = None
) -> tuple[IdStream, Tokenizer, list[str] | None]:
    """The ids of `records`, each a document ended by `<eos>`; the tokenizer; the names of the labels.

    Without `labels` they are those that the records have, sorted; none where no record has one.

    >>> records = [Record("ab", "x"), Record("b", "y")]
    >>> ids, tokenizer, labels = line_ids(records, TokenizerSettings())
    >>> ids.read(0, 5).tolist(), ids.documents.tolist(), ids.labels.tolist(), labels
    ([3, 2, 1, 2, 1], [0, 3], [0, 1], ['x', 'y'])
    """
    if not records:
        raise UserError("there are no records to encode: give at least one")
    if isinstance(tokenizer, TokenizerSettings):
        tokenizer = fit_tokenizer(tokenizer, [record.text for record in records], ends=len(records))
    if labels is None:
        labels = sorted({record.label for record in records if record.label is not None}) or None
    label_ids = [label for _, label in _with_label_ids(records, labels) if label is not None]
    end = np.array([tokenizer.eos_id], dtype=np.int64)
    parts = [np.append(tokenizer.encode(record.text), end) for record in records]
    lengths = np.array([len(part) for part in parts], dtype=np.int64)
    ids = np.concatenate(parts).astype(smallest_dtype(tokenizer.size))
    characters = sum(len(record.text) + 1 for record in records)
    starts = np.cumsum(lengths) - lengths
    return IdStream(ids, starts, label_ids if labels else None, characters=characters), tokenizer, labels


def _with_label_ids(records: Iterable[Record], labels: list[str] | None) -> Iterator[tuple[Record, int | None]]:
    """Each record with the id of its label; None where there are no labels."""
    if not labels:
        for record in records:
            yield record, None
        return
    index = {label: number for number, label in enumerate(labels)}
    for record in records:
        if record.label is None or record.label not in index:
            what = "has no label" if record.label is None else f"has the unknown label {record.label!r}"
            raise UserError(f"{record.where or repr(record.text)} {what}: {nearest(record.label or '', labels)}")
        yield record, index[record.label]


@dataclass(frozen=True)
class _Texts:
    """The texts of records; sub-words go through them twice.

    Where only characters are counted, many records are handed over as one: a count costs as much as the highest
    character has a number, however short the text.
    """

    files: RecordFiles
    part: Part | None
    settings: TokenizerSettings

    def __iter__(self) -> Iterator[str]:
        texts = (record.text for record in self.files.records(self.part))
        settings = self.settings
        if (
            settings.kind not in ("characters", "codepoints", "bytes")
            or settings.normalise != "none"
            or settings.lowercase
        ):
            return texts  # what stands at the end of one text may change what the next one begins with
        return map("".join, iter(lambda: list(islice(texts, JOINED)), []))


def _document_ids(document: Document, tokenizer: Tokenizer, several: bool) -> Iterator[NDArray[np.int64]]:
    for block in document:
        yield tokenizer.encode(block)
    if several and _needs_eos(document, tokenizer.settings):
        yield np.array([tokenizer.eos_id], dtype=np.int64)


def _needs_eos(document: Document, settings: TokenizerSettings) -> bool:
    """A document that is cut off here does not end; with words its last line end is its `<eos>` already."""
    return document.ends and not (settings.kind == "words" and document.facts.ends_line)


def _key(*parts: Any) -> str:
    return blake2b(json.dumps([FORMAT_VERSION, *parts]).encode(), digest_size=20).hexdigest()


def _fitted(
    cache: Path,
    text: list[Any],
    tokenizer: TokenizerSettings | Tokenizer,
    fit: Callable[[TokenizerSettings], Tokenizer],
) -> Tokenizer:
    """The tokenizer itself, or the one that was fitted on this text before, or a new one."""
    if isinstance(tokenizer, Tokenizer):
        return tokenizer
    place = cache / "tokenizers" / f"{_key(text, tokenizer.model_dump_json())}.json"
    with suppress(UserError):  # missing, or damaged: it can be made again
        return Tokenizer.load(place)
    fitted = fit(tokenizer)
    with writing_to_cache():
        fitted.save(place)
    return fitted


def cached_ids(
    cache: Path, text: list[Any], tokenizer: Tokenizer, write: Callable[["IdWriter"], None], labels: int = 0
) -> IdStream:
    """The ids in the cache; made by `write` where they are missing or not whole."""
    folder = cache / "ids" / _key(text, tokenizer.fingerprint())
    dtype = smallest_dtype(tokenizer.size)
    ids = _open(folder, dtype)
    if ids is None:
        _make(folder, dtype, write, labels)
        ids = _open(folder, dtype)
    if ids is None:
        raise RunError(f"the ids in {folder} cannot be read back: check the disk, or set ELMAN_CACHE to another folder")
    return ids


def _open(folder: Path, dtype: np.dtype[np.unsignedinteger]) -> IdStream | None:
    """What stands in the cache; none where it is missing or not whole, it can be made again."""
    try:
        facts = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
        count, length, characters = (int(facts[name]) for name in ("documents", "length", "characters"))
        documents = _numbers(folder / "documents.bin", count, offset_dtype(length))
        label_dtype = smallest_dtype(int(facts["labels"]))
        labels = _numbers(folder / "labels.bin", count, label_dtype) if facts["labels"] else None
        ids = MappedIds(folder / "ids.bin", dtype)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    return IdStream(ids, documents, labels, characters=characters) if len(ids) == length else None


def _numbers(path: Path, count: int, dtype: np.dtype[np.integer]) -> NDArray[np.integer]:
    """The 64-bit numbers in a file, made narrower a block at a time."""
    if path.stat().st_size != count * 8:
        raise ValueError(f"{path} is not whole")
    numbers = np.empty(count, dtype=dtype)
    with path.open("rb") as file:
        for first in range(0, count, BLOCK):
            numbers[first : first + BLOCK] = np.fromfile(file, dtype=np.int64, count=min(BLOCK, count - first))
    return numbers


def _make(folder: Path, dtype: np.dtype[np.unsignedinteger], write: Callable[["IdWriter"], None], labels: int) -> None:
    """Write the folder aside, then move it into place; whoever comes second finds the first one's work."""
    with writing_to_cache():
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:8]}.", dir=folder.parent))
        try:
            made = aside / "ids"  # a folder that others may read as well, unlike the one around it
            made.mkdir()
            _write(made, dtype, write, labels)
            if folder.exists() and _open(folder, dtype) is None:
                shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # another process was first, with the same content
                made.rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def _write(aside: Path, dtype: np.dtype[np.unsignedinteger], write: Callable[["IdWriter"], None], labels: int) -> None:
    with ExitStack() as files:
        ids, documents, label_ids = (files.enter_context((aside / name).open("wb")) for name in NAMES)
        out = IdWriter(ids, documents, label_ids, dtype)
        write(out)
        out.flush()
    facts = {"documents": out.documents, "length": out.length, "characters": out.characters, "labels": labels}
    (aside / "facts.json").write_text(json.dumps(facts), encoding="utf-8")


class IdWriter:
    """Ids, the places of their documents and the labels of these, written as they come."""

    def __init__(
        self, ids: BinaryIO, documents: BinaryIO, labels: BinaryIO, dtype: np.dtype[np.unsignedinteger]
    ) -> None:
        self._files, self._dtype = (ids, documents, labels), dtype
        self.documents = self.length = self.characters = 0
        self._ids: list[NDArray[np.int64]] = []
        self._starts, self._labels = array("q"), array("q")
        self._written = 0

    def begin(self, characters: int, label: int | None = None) -> None:
        """A document of so many characters begins here."""
        self._starts.append(self.length)
        if label is not None:
            self._labels.append(label)
        self.documents += 1
        self.characters += characters

    def add(self, ids: NDArray[np.int64]) -> None:
        """More ids of the document; written together with others, since those of a line are few."""
        self._ids.append(ids)
        self.length += len(ids)
        if self.length - self._written >= WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what is waiting."""
        if self._ids:
            self._files[0].write(np.concatenate(self._ids).astype(self._dtype).data)
        for file, waiting in zip(self._files[1:], (self._starts, self._labels), strict=True):
            file.write(waiting)
            del waiting[:]
        self._ids.clear()
        self._written = self.length
