"""The files that a user names: themselves, patterns such as `data/*.csv`, folders, and `-` for standard input."""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from glob import glob, has_magic
from pathlib import Path
from typing import IO, BinaryIO

from elman.errors import UserError
from elman.files import explained, reading

STANDARD_INPUT = Path("-")
Paths = Path | str | Sequence[Path | str]


def named(paths: Paths) -> list[Path]:
    """The files and folders that are named, a pattern replaced by what it matches, sorted.

    >>> named(["absent/*.csv"])
    Traceback (most recent call last):
    elman.errors.UserError: no file matches absent/*.csv: check the pattern
    """
    places: list[Path] = []
    for name in [paths] if isinstance(paths, (str, Path)) else paths:
        path = Path(name)
        with reading(path):
            if path == STANDARD_INPUT and str(name) != str(STANDARD_INPUT):
                path = path.absolute()  # ./- is a file of that name
            if path == STANDARD_INPUT or path.exists():
                places.append(path)
            elif not has_magic(str(name)):
                raise UserError(f"no such file: {path}; check the name")
            elif not (matches := sorted(glob(str(name), recursive=True))):  # noqa: PTH207 (it may begin anywhere)
                raise UserError(f"no file matches {name}: check the pattern")
            else:
                places += map(Path, matches)
    return places


def expand(paths: Paths) -> list[Path]:
    """The files that are named, by patterns too; a folder stands for all in it that are not hidden, sorted.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for name in ("b.txt", "a.txt", ".hidden"): _ = (folder / name).write_text("one")
    >>> [[path.name for path in expand(name)] for name in (folder, f"{folder}/b*", "-")]
    [['a.txt', 'b.txt'], ['b.txt'], ['-']]
    """
    files: list[Path] = []
    for path in named(paths):
        with reading(path):
            within = visible_files(path) if path.is_dir() else [path]
        if not within:
            raise UserError(f"the folder {path} holds no files: name another")
        files += within
    return files


def visible_files(folder: Path) -> list[Path]:
    """All files in a folder and in those below it, sorted; hidden ones and those of hidden folders are left out."""
    return sorted(
        path
        for path in folder.rglob("*")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts) and path.is_file()
    )


def standard_input() -> BinaryIO:
    """The bytes of standard input."""
    if sys.stdin is None:
        raise UserError("standard input is closed: name a file, or give it one with < FILE")
    return sys.stdin.buffer


def on_disk(path: Path) -> Path:
    """The file to open for a path: what comes from standard input is copied, once, since files are read repeatedly."""
    return Path(_copied(standard_input()).name) if path == STANDARD_INPUT else path


@lru_cache(maxsize=1)  # holds the copy, which is removed with it, for as long as standard input is the same
def _copied(stream: BinaryIO) -> IO[bytes]:
    try:
        copy = tempfile.NamedTemporaryFile(prefix="elman-")  # noqa: SIM115
        shutil.copyfileobj(stream, copy)
        copy.flush()
    except OSError as error:
        raise explained("standard input cannot be kept", error, "write it to a file, and name that") from error
    if not copy.tell():
        raise UserError("standard input is empty: pipe the data into it, or name a file")
    return copy
