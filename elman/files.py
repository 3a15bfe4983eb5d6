"""Writing files so that they appear whole or not at all."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from elman.errors import RunError


@contextmanager
def write_aside(path: Path) -> Iterator[Path]:
    """Yield a name beside `path` to write to; on success it takes the place of `path` in one move.

    On failure nothing is left behind and the old file stays as it was.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        with aside.open("rb") as written:
            os.fsync(written.fileno())
        aside.replace(path)
    except OSError as error:
        raise RunError(f"could not write {path}: {error.strerror or error}") from error
    finally:
        with suppress(OSError):
            aside.unlink()


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path`, whole or not at all."""
    with write_aside(path) as aside:
        aside.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write `value` as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
