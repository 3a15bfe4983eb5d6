"""Where Elman keeps what it can make or fetch again."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """The folder that `ELMAN_CACHE` names, else `~/.cache/elman`."""
    named = os.environ.get("ELMAN_CACHE")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "elman"
