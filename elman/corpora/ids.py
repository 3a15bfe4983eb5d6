"""Text to ids, once: written to the cache folder, found there the next time by what the text holds."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elman.corpora.cache import cache_folder
from elman.corpora.readers import Document, TextFiles
from elman.corpora.stream import IdStream, MappedIds, smallest_dtype
from elman.corpora.tables import Record
from elman.errors import RunError, UserError, nearest
from elman.text import Tokenizer, TokenizerSettings, fit_tokenizer

FORMAT_VERSION = 1


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
    files.survey(memo=cache / "surveys")
    folder = cache / "ids" / _key(files, tokenizer, start, stop)
    found = _open(folder)
    if found is None:
        _make(folder, files, tokenizer, start, stop)
        found = _open(folder)
    if found is None:
        raise RunError(f"the ids in {folder} cannot be read back: check the disk, or set ELMAN_CACHE to another folder")
    return found


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
    dtype = smallest_dtype(tokenizer.size)
    end = np.array([tokenizer.eos_id], dtype=dtype)
    parts: list[NDArray[np.unsignedinteger]] = []
    for record in records:
        parts += [tokenizer.encode(record.text).astype(dtype), end]
    lengths = np.array([len(part) + 1 for part in parts[::2]], dtype=np.int64)
    label_ids, labels = _label_ids(records, labels)
    documents = np.cumsum(lengths) - lengths
    return IdStream(np.concatenate(parts), documents, label_ids), tokenizer, labels


def _label_ids(records: Sequence[Record], labels: list[str] | None) -> tuple[list[int] | None, list[str] | None]:
    if labels is None:
        labels = sorted({record.label for record in records if record.label is not None})
    if not labels:
        return None, None
    index = {label: number for number, label in enumerate(labels)}
    for record in records:
        if record.label not in index:
            what = "has no label" if record.label is None else f"has the unknown label {record.label!r}"
            raise UserError(f"{record.where or repr(record.text)} {what}: {nearest(record.label or '', labels)}")
    return [index[record.label] for record in records if record.label is not None], labels


def _key(files: TextFiles, tokenizer: TokenizerSettings | Tokenizer, start: float, stop: float) -> str:
    made_by = tokenizer.fingerprint() if isinstance(tokenizer, Tokenizer) else tokenizer.model_dump_json()
    digests = [facts.digest for facts in files.survey().files]
    text = json.dumps([FORMAT_VERSION, files.encoding, digests, made_by, start, stop])
    return blake2b(text.encode(), digest_size=20).hexdigest()


def _open(folder: Path) -> tuple[IdStream, Tokenizer] | None:
    """What stands in the cache; none where it is missing or not whole, it can be made again."""
    try:
        tokenizer = Tokenizer.load(folder / "tokenizer.json")
        documents = np.load(folder / "documents.npy", allow_pickle=False)
        length = json.loads((folder / "length.json").read_text(encoding="utf-8"))
        ids = MappedIds(folder / "ids.bin", smallest_dtype(tokenizer.size))
    except (OSError, ValueError, UserError):
        return None
    return (IdStream(ids, documents), tokenizer) if len(ids) == length else None


def _make(folder: Path, files: TextFiles, tokenizer: TokenizerSettings | Tokenizer, start: float, stop: float) -> None:
    """Write the folder aside, then move it into place; whoever comes second finds the first one's work."""
    documents = files.documents(start, stop)
    several = len(files.paths) > 1
    if isinstance(tokenizer, TokenizerSettings):
        ends = sum(several and _needs_eos(document, tokenizer) for document in documents)
        tokenizer = fit_tokenizer(tokenizer, files.blocks(start, stop), ends)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=f".{folder.name[:8]}.", dir=folder.parent))
        try:
            _write(aside, documents, tokenizer, several)
            if folder.exists() and _open(folder) is None:
                shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):  # another process was first, with the same content
                aside.rename(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
    except OSError as error:
        raise RunError(f"could not write the ids to {folder.parent}: {error.strerror or error}") from error


def _write(aside: Path, documents: Sequence[Document], tokenizer: Tokenizer, several: bool) -> None:
    dtype = smallest_dtype(tokenizer.size)
    starts: list[int] = []
    length = 0
    with (aside / "ids.bin").open("wb") as out:
        for document in documents:
            starts.append(length)
            for ids in _document_ids(document, tokenizer, several):
                out.write(ids.astype(dtype).data)
                length += len(ids)
    np.save(aside / "documents.npy", np.array(starts, dtype=np.int64))
    (aside / "length.json").write_text(json.dumps(length), encoding="utf-8")
    tokenizer.save(aside / "tokenizer.json")


def _document_ids(document: Document, tokenizer: Tokenizer, several: bool) -> Iterator[NDArray[np.int64]]:
    for block in document:
        yield tokenizer.encode(block)
    if several and _needs_eos(document, tokenizer.settings):
        yield np.array([tokenizer.eos_id], dtype=np.int64)


def _needs_eos(document: Document, settings: TokenizerSettings) -> bool:
    """A document that is cut off here does not end; with words its last line end is its `<eos>` already."""
    return document.ends and not (settings.kind == "words" and document.facts.ends_line)
