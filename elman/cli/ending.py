"""How a command ends that fails: the sentence that is printed, and the exit code."""

import atexit
import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

from elman.cli.streams import silence
from elman.errors import INTERRUPTED, ElmanError, Interrupted, RunError, UserError, is_out_of_memory

UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Errors of a stream that is written to: a full disk, a limit, a terminal that is gone."""
_interrupts: list[int] = []


@contextmanager
def interruptible() -> Iterator[None]:
    """Remember an interrupt, which a library that is being imported may turn into an error of its own.

    Where interrupts are ignored, as those of a command that a script starts in the background, they stay so.
    """
    before = None

    def note(number: int, frame: FrameType | None) -> None:
        _interrupts.append(number)
        raise KeyboardInterrupt

    with suppress(ValueError):  # outside of the main thread there are no signals
        if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
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


def leave(code: int) -> NoReturn:
    """End the process as Python does, other threads first, then what was to be done at exit, but for its modules."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # it is gone, or closed
            stream.flush()
    os._exit(code)


def explain(error: BaseException) -> int:
    """One sentence on standard error; returns the exit code."""
    _silence_output()
    if isinstance(error, BrokenPipeError):  # whoever read our output has had enough
        return 0
    if isinstance(error, KeyboardInterrupt):
        _say("elman: interrupted")
        return INTERRUPTED
    told = error if isinstance(error, ElmanError) else _as_sentence(error)
    if told is None:  # a mistake of Elman's own
        said = " ".join(str(error).split())
        _say(f"elman: {type(error).__name__}: {said}; --debug shows where this happened")
        return 1
    _say(f"elman: {' '.join(str(told).splitlines())}")  # a file's name may have several lines
    if isinstance(told, UserError):
        return 2
    return INTERRUPTED if isinstance(told, Interrupted) else 1


def _say(line: str) -> None:
    with suppress(OSError):  # whoever read this has left as well; the exit code tells
        print(line, file=sys.stderr, flush=True)


def _as_sentence(error: BaseException) -> ElmanError | None:
    """An error that is not of Elman's own making, as a sentence; None for all others.

    >>> str(_as_sentence(OSError(36, "File name too long", "aaa")))
    "'aaa': file name too long; give a shorter name"
    """
    if is_out_of_memory(error):
        return UserError("there is not enough memory for this: take smaller sizes, or give it less at a time")
    if isinstance(error, OSError):
        return _of_system(error)
    if isinstance(error, UnicodeEncodeError):
        return _of_encoding(error)
    return None


def _of_system(error: OSError) -> ElmanError | None:
    from elman.files import advice, explained, reason, shortened

    if error.filename is not None:
        return explained(repr(shortened(error.filename)), error, advice(error))
    if error.errno in UNWRITTEN:
        return RunError(f"output cannot be written: {reason(error)}; make room for it, or send it elsewhere")
    return None


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
        silence(sys.stdout)
