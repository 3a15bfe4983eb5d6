"""The corpora that Elman knows by name (`catalogue.toml`): where they are, and having them where they are not."""

import filecmp
import os
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elman.cache import cache_folder, writing_to_cache
from elman.corpora.download import Progress, copy_whole, download
from elman.errors import UserError, nearest
from elman.generated.builtin import can_make, make_files
from elman.generated.sources import python_sources
from elman.records.paths import visible_files
from elman.records.running_text import TextFiles


@dataclass(frozen=True)
class CorpusFile:
    """One file: its name, size and checksum once unpacked, and its public address if it has one.

    A name that ends in / is a folder: size and checksum are those of its files one behind the other, by their names.
    """

    name: str
    bytes: int
    sha256: str
    address: str | None = None


@dataclass(frozen=True)
class Corpus:
    """A corpus: facts for people, and its files by split. One without files is made on the spot."""

    name: str
    description: str
    tasks: tuple[str, ...]
    licence: str
    home: str
    splits: dict[str, tuple[str, ...]]
    notes: str
    files: tuple[CorpusFile, ...] = ()
    encoding: str = "utf-8"


def _corpus(name: str, entry: dict[str, Any]) -> Corpus:
    splits = {split: tuple(files) for split, files in entry.pop("splits").items()}
    files = tuple(CorpusFile(**file) for file in entry.pop("files", ()))
    return Corpus(name, tasks=tuple(entry.pop("tasks")), splits=splits, files=files, **entry)


ENTRIES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CATALOGUE: dict[str, Corpus] = {name: _corpus(name, entry) for name, entry in ENTRIES.items()}


def corpus(name: str) -> Corpus:
    """The entry called `name`.

    >>> corpus("names").splits["test"]
    ('names_test.csv',)
    """
    if name not in CATALOGUE:
        raise UserError(f"no corpus is called {name!r}: {nearest(name, CATALOGUE)}")
    return CATALOGUE[name]


def locate(name: str, data_dir: Path | str | None = None, progress: Progress | None = None) -> dict[str, list[Path]]:
    """The files of each split: from `data_dir`, `ELMAN_DATA` or the cache folder, else downloaded to the last.

    Built-in corpora are made on the spot.

    >>> locate("python")["train"][0].name
    '__future__.py'
    """
    entry = corpus(name)
    if name == "python":
        return {"train": python_sources()}
    if not entry.files:
        return make_files(name)
    places = {file.name: find_file(entry, file, data_dir) or _fetch(entry, file, progress) for file in entry.files}
    return {split: [places[file] for file in files] for split, files in entry.splits.items()}


def is_here(entry: Corpus, data_dir: Path | str | None = None) -> bool:
    """Whether a corpus can be had without fetching or installing anything."""
    if not entry.files:
        return can_make(entry.name)
    return all(find_file(entry, file, data_dir) for file in entry.files)


def find_file(entry: Corpus, file: CorpusFile, data_dir: Path | str | None = None) -> Path | None:
    """Where on this machine `file` is, if it is anywhere."""
    roots = [data_dir, os.environ.get("ELMAN_DATA"), cache_folder() / "corpora"]
    for root in roots:
        place = Path(root).expanduser() / entry.name / file.name if root else None
        if place is None or not (place.is_dir() if file.name.endswith("/") else place.is_file()):
            continue
        if (size := _bytes([place])) != file.bytes:
            raise UserError(
                f"{place} is not the {entry.name} that Elman knows ({size} bytes, not {file.bytes}): "
                "remove it to have it fetched, or name it as a file of your own"
            )
        return place
    return None


def export(name: str, out: Path | str, data_dir: Path | str | None = None) -> list[Path]:
    """Copy the files of a corpus into the folder `out`; the files written. Others that are there stay as they are."""
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is no folder: name another place with --out")
    copies: list[tuple[Path, Path]] = []
    for paths in locate(name, data_dir).values():
        base = Path(os.path.commonpath([path.parent for path in paths]))
        copies += [(file, out / file.relative_to(base)) for path in paths for file in files_of(path)]
    for path, target in copies:
        if target.exists() and not (target.is_file() and filecmp.cmp(path, target, shallow=False)):
            raise UserError(f"{target} is there already, and is not that of {name}: name another folder with --out")
    for path, target in copies:
        copy_whole(path, target)
    return [target for _, target in copies]


def info(name: str, data_dir: Path | str | None = None) -> dict[str, Any]:
    """What is known of a corpus; sizes are counted where its files are on this machine, nothing is fetched.

    >>> info("names")["tasks"]
    ['lm', 'classify']
    """
    entry = corpus(name)
    here = is_here(entry, data_dir)
    facts: dict[str, Any] = {
        "name": entry.name,
        "description": entry.description,
        "tasks": list(entry.tasks),
        "licence": entry.licence,
        "home": entry.home,
        "notes": entry.notes,
        "encoding": entry.encoding,
        "here": here,
        "splits": {split: {"files": list(files)} for split, files in entry.splits.items()},
    }
    if here:
        for split, paths in locate(name, data_dir).items():
            survey = TextFiles(paths, entry.encoding).survey()
            facts["splits"][split] = {
                "files": [str(file) for path in paths for file in files_of(path)],
                "bytes": _bytes(paths),
                "characters": survey.characters,
                "lines": survey.lines,
            }
    return facts


def files_of(path: Path) -> list[Path]:
    """A file itself, or the files of a folder by their names."""
    return visible_files(path) if path.is_dir() else [path]


def _bytes(paths: Iterable[Path]) -> int:
    return sum(file.stat().st_size for path in paths for file in files_of(path))


def _fetch(entry: Corpus, file: CorpusFile, progress: Progress | None) -> Path:
    target = cache_folder() / "corpora" / entry.name / file.name
    if file.address is None:
        raise UserError(
            f"{entry.name} has no address to download from: put {file.name} ({file.bytes} bytes, sha256 "
            f"{file.sha256[:12]}...) at {target}"
        )
    with writing_to_cache():
        return download(file.address, target, file.sha256, progress)
