"""One process at a time in a folder: a lock that lives as long as the process that holds it, however it ends.

The lock is the kernel's (`flock` on the file `.lock` in the folder), so a crash or a kill releases it; a file that is
left behind means nothing. Children that a process forks hold its lock too, for as long as they live. Where there are
no such locks (Windows, some network file systems), a run says so and goes on without one: there it is the user's to
keep a second process away.
"""

import errno
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from elman.errors import UserError
from elman.files import ANOTHER_FOLDER, check_new_folder, writing

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


@contextmanager
def locked(folder: Path, say: Callable[[str], None]) -> Iterator[None]:
    """While inside, the folder is this process's; a UserError names the other one where it is taken.

    A folder that was not there is made, and taken away again where nothing came into it.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "run"
    >>> with locked(place, print), locked(place, print):  # doctest: +ELLIPSIS
    ...     pass
    Traceback (most recent call last):
    elman.errors.UserError: ...
    >>> place.exists()
    False
    """
    check_new_folder(folder)
    with writing(folder, ANOTHER_FOLDER):
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
        file = _acquire(folder / LOCK, say)
    try:
        yield
    finally:
        with suppress(OSError):  # before it is released, so that nobody takes a file that is about to go
            (folder / LOCK).unlink()
        os.close(file)
        with suppress(OSError):  # not empty, as it should be
            for path in missing:
                path.rmdir()


def at_work(folder: Path) -> bool | None:
    """Whether a process holds a folder; None where that cannot be known, as of one on another machine.

    It is asked by its number: to try the lock would keep out a run that begins at that moment.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "run"
    >>> with locked(place, print):
    ...     at_work(place)
    True
    >>> at_work(place)
    False
    """
    try:
        number, _, machine = (folder / LOCK).read_text(encoding="utf-8", errors="replace").partition(" on ")
    except OSError:
        return False
    if os.name == "nt" or not number.isdigit() or machine != (platform.node() or "this machine"):
        return None
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _acquire(path: Path, say: Callable[[str], None]) -> int:
    """The lock's open file, held; closing it releases it."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # less what the user's umask takes
        try:
            if not _hold(file):
                say(f"warning: {path.parent} has no locks: do not start another run in it while this one is under way")
            elif not _is_current(file, path):  # the process before this one was just leaving
                os.close(file)
                continue
            os.ftruncate(file, 0)
            os.write(file, f"{os.getpid()} on {platform.node() or 'this machine'}".encode())
            return file
        except BlockingIOError:
            written = os.pread(file, 200, 0).decode("utf-8", "replace")
            os.close(file)
            holder = f"the process {written}" if written else "another process"  # which has not come to write its name
            raise UserError(
                f"{holder} is at work in {path.parent}: wait for it or stop it, or name another folder with --out"
            ) from None
        except OSError:
            os.close(file)
            raise


def _hold(file: int) -> bool:
    """Hold the lock, or False where there are no locks; BlockingIOError where another holds it."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return True


def _is_current(file: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except FileNotFoundError:
        return False
