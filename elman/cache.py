"""Where Elman keeps what it can make or fetch again."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elman.errors import RunError, UserError
from elman.files import explained


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
    elman.errors.UserError: could not write to the cache ...: permission denied; set ELMAN_CACHE to a folder ...
    """
    try:
        yield
    except (OSError, UserError, RunError) as error:
        cause = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(cause, OSError) or (isinstance(error, UserError) and not _is_in_cache(cause)):
            raise  # what was to be written could not be read or made
        advice = "set ELMAN_CACHE to a folder that can be written to"
        raise explained(f"could not write to the cache {cache_folder()}", cause, advice) from error


def _is_in_cache(error: OSError) -> bool:
    return error.filename is not None and cache_folder() in Path(os.fsdecode(error.filename)).parents
