"""What has to be known of text files before they are used, learnt in one pass and remembered."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from elman.errors import RunError, UserError
from elman.files import reading, write_json
from elman.records.decoding import raw_chunks, text_chunks
from elman.records.paths import on_disk

Stamp = list[int]  # size, time of change, inode: a file that keeps all three has not changed


@dataclass(frozen=True)
class FileFacts:
    """What one pass over a file tells; `ends_line` says whether its last character is a line end."""

    digest: str
    characters: int
    lines: int
    ends_line: bool


@dataclass(frozen=True)
class Survey:
    """The facts of some files, in order."""

    files: tuple[FileFacts, ...]

    @property
    def characters(self) -> int:
        """Characters in all files."""
        return sum(facts.characters for facts in self.files)

    @property
    def lines(self) -> int:
        """Lines in all files; a last line without a line end counts."""
        return sum(facts.lines for facts in self.files)


def survey_files(paths: Sequence[Path], encoding: str, memo: Path) -> Survey:
    """Facts of `paths`; a file that `memo` (a folder) knows by path, size, time and inode is not opened."""
    stamps = [_stamp(path) for path in paths]
    names = "\0".join([encoding, *(str(path.resolve()) for path in paths)])
    place = memo / f"{blake2b(names.encode('utf-8', 'surrogateescape'), digest_size=16).hexdigest()}.json"
    known = _read_memo(place, len(paths))
    files = []
    for path, stamp, entry in zip(paths, stamps, known, strict=True):
        if entry is not None and entry["stamp"] == stamp:
            files.append(FileFacts(**entry["facts"]))
        else:
            files.append(_facts(path, encoding))
    entries = [{"stamp": stamp, "facts": asdict(facts)} for stamp, facts in zip(stamps, files, strict=True)]
    if entries != known:
        with suppress(UserError, RunError):  # a memo that cannot be kept costs time, nothing else
            write_json(place, entries)
    return Survey(tuple(files))


def _facts(path: Path, encoding: str) -> FileFacts:
    digest = blake2b(digest_size=32)
    characters, newlines, last = 0, 0, ""
    for text in text_chunks(path, _hashed(raw_chunks(path), digest), encoding):
        characters += len(text)
        newlines += text.count("\n")
        last = text[-1:] or last
    if not characters:
        raise UserError(f"{path} is empty: give a file with text in it")
    return FileFacts(digest.hexdigest(), characters, newlines + (last != "\n"), last == "\n")


def _hashed(chunks: Iterable[bytes], digest: blake2b) -> Iterator[bytes]:
    for chunk in chunks:
        digest.update(chunk)
        yield chunk


def _stamp(path: Path) -> Stamp:
    with reading(path):
        facts = on_disk(path).stat()
    return [facts.st_size, facts.st_mtime_ns, facts.st_ino]


def _read_memo(place: Path, length: int) -> list[dict[str, Any] | None]:
    """What stands in the memo; nothing where it is missing or damaged, it can be made again."""
    try:
        entries = json.loads(place.read_text(encoding="utf-8"))
        checked = [{"stamp": list(e["stamp"]), "facts": asdict(FileFacts(**e["facts"]))} for e in entries]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        checked = []
    return [*checked] if len(checked) == length else [None] * length
