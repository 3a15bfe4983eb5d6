"""The source of Python's standard library, which every Python has at hand."""

import sysconfig
from pathlib import Path

from elman.errors import UserError

LEFT_OUT = {"test", "tests", "idlelib", "site-packages", "dist-packages", "__pycache__"}
LIMIT = 8_000_000  # bytes, nearly all of them characters


def python_sources(limit: int = LIMIT) -> list[Path]:
    """Files of the standard library, sorted by path, as many as `limit` bytes hold.

    Tests are left out, and so are files that are empty, made at build time, or not UTF-8.

    >>> files = python_sources(limit=100_000)
    >>> 0 < sum(file.stat().st_size for file in files) <= 100_000
    True
    """
    root = Path(sysconfig.get_paths()["stdlib"])
    sources = sorted(
        (path.relative_to(root).as_posix(), path)
        for path in root.rglob("*.py")
        if LEFT_OUT.isdisjoint(path.relative_to(root).parts) and not path.name.startswith("_sysconfigdata")
    )
    chosen: list[Path] = []
    for _, path in sources:
        size = path.stat().st_size
        if size > limit:
            break
        if size and _is_utf8(path):
            chosen.append(path)
            limit -= size
    if not chosen:
        raise UserError(f"this Python keeps no source of its library in {root}: choose another corpus")
    return chosen


def _is_utf8(path: Path) -> bool:
    try:
        return "\0" not in path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
