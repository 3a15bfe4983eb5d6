"""Files: written whole or not at all, and read with one sentence where they are damaged."""

import errno
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from reprlib import Repr
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from elman.errors import RunError, UserError

COPY_AGAIN = "copy it again from where the model was trained"  # what there is to do about a damaged file
PERMISSIONS = "change its permissions (chmod u+rwX), or name another place"
ANOTHER_FOLDER = "name another folder with --out"
TO_MEND = {
    errno.ENOENT: "check the name",
    errno.ENOTDIR: "check the name",
    errno.EISDIR: "name a file, not a folder",
    errno.EEXIST: "name another place",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.ELOOP: "check its links",
    errno.EACCES: PERMISSIONS,
    errno.EPERM: PERMISSIONS,
    errno.EROFS: "name a place on a disk that can be written to",
}
"""What to do about an error of the system that is the user's to mend."""
ELSEWHERE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ENOTDIR, errno.ELOOP)
"""Where a file cannot be written and another name or folder would do; all else has come over a run that was right."""

_short = Repr()  # a wrong value may be a whole file
_short.maxlevel, _short.maxstring, _short.maxother = 2, 200, 100


class Stored(BaseModel):
    """What a file of Elman's holds, checked as it is read; keys that it does not know are passed over."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)


M = TypeVar("M", bound=BaseModel)


# Errors of the system


def explained(what: str, error: OSError, what_to_do: str | None) -> UserError | RunError:
    """An error of the system as a sentence: the user's to mend where there is something to do about it.

    >>> explained("could not write a.txt", OSError(28, "No space left on device"), None)
    RunError('could not write a.txt: no space left on device')
    """
    sentence = f"{what}: {reason(error)}"
    return RunError(sentence) if what_to_do is None else UserError(f"{sentence}; {what_to_do}")


def advice(error: OSError) -> str | None:
    """What the user can do about an error of the system; None where that is nothing.

    >>> advice(OSError(36, "File name too long"))
    'give a shorter name'
    """
    return TO_MEND.get(error.errno or 0)


def reason(error: OSError) -> str:
    """Why the system refuses, as part of a sentence."""
    said = error.strerror or str(error)
    return f"{said[:1].lower()}{said[1:]}"


@contextmanager
def reading(path: Path, missing: str | None = None) -> Iterator[None]:
    """A file or folder that cannot be read becomes one sentence; `missing` is the one for a file that is not there.

    >>> with reading(Path("a.txt")):
    ...     raise IsADirectoryError(21, "Is a directory")
    Traceback (most recent call last):
    elman.errors.UserError: a.txt cannot be read: is a directory; name a file, not a folder
    """
    try:
        yield
    except FileNotFoundError as error:
        raise UserError(missing or f"no such file: {path}") from error
    except OSError as error:
        raise explained(f"{shortened(path)} cannot be read", error, advice(error) or "name another file") from error


@contextmanager
def writing(path: Path, what_to_do: str | None = None) -> Iterator[None]:
    """A file or folder that cannot be written becomes one sentence; `what_to_do`, where it is given, ends it.

    >>> with writing(Path("a.txt")):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    elman.errors.UserError: could not write a.txt: permission denied; change its permissions (chmod u+rwX), or name ...
    """
    try:
        yield
    except OSError as error:
        elsewhere = advice(error) if error.errno in ELSEWHERE else None
        raise explained(f"could not write {shortened(path)}", error, what_to_do or elsewhere) from error


def check_new_folder(out: Path) -> None:
    """Refuse a folder to write to, the user's `--out`, that is a file or that cannot be one."""
    with writing(out, ANOTHER_FOLDER):
        if out.exists() and not out.is_dir():
            raise UserError(f"{out} is a file: name a folder with --out")


def shortened(path: Path | str) -> str:
    """A name as a sentence has it: nobody reads one of thousands of characters."""
    return str(path)[:200]


# Writing


@contextmanager
def write_aside(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` to write to; on success it takes the place of `path` in one move.

    On failure nothing is left behind and the old file stays as it was. The file is as readable to others as any that
    the user writes, whatever wrote it.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            aside.touch()
            mode = stat.S_IMODE(aside.stat().st_mode)  # what the user's umask leaves
            yield aside
            aside.chmod(mode)
            with aside.open("rb") as written:
                os.fsync(written.fileno())
            aside.replace(path)
    finally:
        with suppress(OSError):
            aside.unlink()


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    with write_aside(path) as aside:
        aside.write_bytes(content)


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


# Reading


def read_text(path: Path) -> str:
    """The text of a file of a model's folder; a UserError says why it cannot be read."""
    try:
        with reading(path, missing=f"no such file: {path}; a model folder holds a {path.name}"):
            return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is damaged: it is not UTF-8 at byte {error.start}; {COPY_AGAIN}") from None


def read_own_text(path: Path, most: int | None = None) -> str:
    """The text of a file that the user names, of at most so many bytes."""
    with reading(path):
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UserError(f"{shortened(path)} is no regular file: name a text file")
        if most is not None and status.st_size > most:
            raise UserError(f"{shortened(path)} has {status.st_size:,} bytes: give a text of at most {most:,}")
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise UserError(f"{shortened(path)} is not UTF-8 at byte {error.start}: convert it to UTF-8") from None


def read_json(path: Path) -> dict[str, Any]:
    """The object that a JSON file of a model's folder holds; a UserError says what is wrong with the file."""
    return parse_json(read_text(path), str(path))


def parse_json(text: str, where: str) -> dict[str, Any]:
    """The object that a text holds in JSON.

    >>> parse_json("[1]", "a.json")
    Traceback (most recent call last):
    elman.errors.UserError: a.json is damaged: it should hold an object, {...}; copy it again from where the model was \
trained
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise UserError(f"{where} is damaged: it is nested too deeply; {COPY_AGAIN}") from None
    except ValueError as error:
        raise UserError(f"{where} is damaged: it is no JSON ({error}); {COPY_AGAIN}") from None
    if not isinstance(value, dict):
        raise UserError(f"{where} is damaged: it should hold an object, {{...}}; {COPY_AGAIN}")
    return value


def checked(kind: type[M], value: Mapping[str, Any], where: str) -> M:
    """What a file holds as the type that it should be; the first mistake becomes one sentence that names the key.

    >>> class Heading(Stored):
    ...     version: int
    >>> checked(Heading, {"version": [2]}, "a.json")
    Traceback (most recent call last):
    elman.errors.UserError: a.json is damaged: 'version' = [2]: should be a valid integer; copy it again from where \
the model was trained
    """
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise UserError(f"{where} is damaged: {mistake(error)}; {COPY_AGAIN}") from None


def mistake(error: ValidationError) -> str:
    """The first thing that is wrong with some settings, in a few words that name the key.

    >>> class Sizes(Stored):
    ...     sizes: tuple[int, ...]
    >>> try:
    ...     Sizes.model_validate({"sizes": 3})
    ... except ValidationError as error:
    ...     mistake(error)
    "'sizes' = 3: should be a list, such as [3]"
    """
    first, *others = error.errors()
    place, said = first["loc"], _said(first)
    if place and place[-1] in ("bool", "int", "float", "str"):  # of a key of several types each says what it wants
        place = place[:-1]
        said = " or ".join([said, *(_said(other) for other in others if other["loc"][:-1] == place)])
    name = ".".join(str(part) for part in place)
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "value_error":  # a validator of ours, whose sentence mostly names the keys
        return message if name in message else f"'{name}': {message}"
    if first["type"] == "missing":
        return f"'{name}' is missing"
    if first["type"] in ("tuple_type", "list_type") and isinstance(first["input"], int | float | str):
        return f"'{name}' = {_short.repr(first['input'])}: should be a list, such as [{_short.repr(first['input'])}]"
    return f"'{name}' = {_short.repr(first['input'])}: {said}"


def _said(error: Mapping[str, Any]) -> str:
    said = _SAID.get(error["type"], error["msg"].replace("Input should be", "should be"))
    return f"{said[:1].lower()}{said[1:]}"


_SAID = {
    "tuple_type": "should be a list",
    "list_type": "should be a list",
    "model_type": "is a section: give its keys, section.key=value",
    "dataclass_type": "should have keys of its own",
    "none_required": "should be left out",
    "bool_parsing": "should be true or false",
    "bool_type": "should be true or false",
    "string_type": 'should be a text: write it in quotes, "..."',
}
