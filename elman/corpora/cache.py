"""Where Elman keeps what it can make or fetch again."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elman.errors import RunError, UserError


def cache_folder() -> Path:
    """The folder that `ELMAN_CACHE` names, else `~/.cache/elman`."""
    named = os.environ.get("ELMAN_CACHE")
    try:
        return Path(named).expanduser() if named else Path.home() / ".cache" / "elman"
    except RuntimeError as error:  # nobody knows where this user is at home
        raise UserError(f"there is no folder for the cache ({error}): set ELMAN_CACHE to one") from error


@contextmanager
def writing_to_cache() -> Iterator[None]:
    """Names `ELMAN_CACHE` where what is written inside cannot be written.

    >>> with writing_to_cache():
    ...     raise PermissionError(13, "Permission denied", "/cache/ids")
    Traceback (most recent call last):
    elman.errors.UserError: could not write /cache/ids: Permission denied; set ELMAN_CACHE to a folder that can be ...
    """
    try:
        yield
    except (OSError, RunError) as error:
        named = isinstance(error, OSError) and error.filename is not None
        said = f"could not write {error.filename}: {error.strerror}" if named else str(error)  # type: ignore[union-attr]
        raise UserError(f"{said}; set ELMAN_CACHE to a folder that can be written to") from error
