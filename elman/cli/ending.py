"""How a command ends that fails: the sentence that is printed, and the exit code."""

import errno
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from elman.errors import ElmanError, Interrupted, RunError, UserError

TO_MEND = {
    errno.ENOENT: "check the name",
    errno.ENOTDIR: "check the name",
    errno.EISDIR: "name a file, not a folder",
    errno.EEXIST: "name another one",
    errno.ENAMETOOLONG: "give a shorter one",
    errno.ELOOP: "check its links",
    errno.EACCES: "change its permissions (chmod u+rwX), or name another one",
    errno.EPERM: "change its permissions (chmod u+rwX), or name another one",
    errno.EROFS: "name one on a disk that can be written to",
}
"""What to do about an error of the system that is the user's to mend."""
UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of a stream that is written to: a full disk, a limit, a terminal that is gone."""
TOO_LARGE = (
    "can't allocate memory",
    "Cannot allocate memory",
    "calculation overflowed",
    "unpacking long",
    "invalid for input of size",
)
"""What PyTorch says of a size that no memory has, or that no number of 64 bits can tell."""
_interrupts: list[int] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Remember an interrupt, which a library that is being imported may turn into an error of its own."""
    before = None

    def note(number: int, frame: FrameType | None) -> None:
        _interrupts.append(number)
        raise KeyboardInterrupt

    with suppress(ValueError):  # outside of the main thread there are no signals
        before = signal.signal(signal.SIGINT, note)
    try:
        yield
    except Exception as error:
        if _interrupts and not isinstance(error, ElmanError):
            raise KeyboardInterrupt from error
        raise
    finally:
        _interrupts.clear()
        if before is not None:
            signal.signal(signal.SIGINT, before)


def explain(error: BaseException) -> int:
    """One sentence on standard error; returns the exit code."""
    _silence_output()
    if isinstance(error, BrokenPipeError):  # whoever read our output has had enough
        return 0
    if isinstance(error, KeyboardInterrupt):
        print("elman: interrupted", file=sys.stderr)
        return 130
    told = error if isinstance(error, ElmanError) else _told(error)
    if told is None:  # a mistake of Elman's own
        said = " ".join(str(error).split())
        print(f"elman: {type(error).__name__}: {said}; --debug shows where this happened", file=sys.stderr)
        return 1
    print(f"elman: {' '.join(str(told).splitlines())}", file=sys.stderr)  # a file's name may have several lines
    if isinstance(told, UserError):
        return 2
    return 130 if isinstance(told, Interrupted) else 1


def _told(error: BaseException) -> ElmanError | None:
    """An error that is not of Elman's own making, as a sentence; None for all others.

    >>> str(_told(OSError(36, "File name too long", "aaa")))
    "'aaa': file name too long; give a shorter one"
    """
    if isinstance(error, MemoryError) or any(words in str(error) for words in TOO_LARGE):
        return UserError("there is not enough memory for this: take smaller sizes, or give it less at a time")
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, OverflowError):
        return UserError(f"a number that was given is too large ({error}): take a smaller one")
    if isinstance(error, RecursionError):
        return UserError("something that was given is nested too deep to be read: make it flatter")
    if isinstance(error, UnicodeEncodeError):
        return _of_encoding(error)
    if isinstance(error, UnicodeDecodeError):
        byte = error.object[error.start]
        return UserError(
            f"a file that was given is not {error.encoding} (byte 0x{byte:02x}): write it in {error.encoding}"
        )
    return None


def _of_system(error: OSError) -> ElmanError:
    reason = error.strerror or str(error)
    said = f"{reason[:1].lower()}{reason[1:]}"
    if error.filename is None and error.errno in UNWRITTEN:
        return RunError(f"output cannot be written: {said}; make room for it, or send it elsewhere")
    if error.filename is None:
        return RunError(f"the system refuses to go on: {said}")
    said = f"{str(error.filename)[:200]!r}: {said}"
    if error.errno in TO_MEND:
        return UserError(f"{said}; {TO_MEND[error.errno]}")
    return RunError(said)


def _of_encoding(error: UnicodeEncodeError) -> UserError:
    character = error.object[error.start]
    if "surrogates" in error.reason:
        return UserError(f"a text that was given has {character!r} in it, which is no character: write it in utf-8")
    return UserError(
        f"standard output is {error.encoding}, which has no {character!r}: set PYTHONIOENCODING=utf-8, or another one"
    )


def _silence_output() -> None:
    """What could not be written must not be tried again when the interpreter ends, which would complain."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
