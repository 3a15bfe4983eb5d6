"""Standard input and output: where a command reads from and prints to."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from elman.errors import UserError

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 10_000  # columns; nothing that Elman prints is wider


def check_streams() -> None:
    """Refuse to run without a standard output: the next file that is opened would take its place."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123
    if sys.stdout is None:
        raise UserError("standard output is closed: give it a place to go, such as > /dev/null")


@contextmanager
def unheard() -> Iterator[None]:
    """While inside, the work goes on where nobody reads what is printed any more, as after `| head`.

    For commands whose result is a folder: lines that tell of it are dropped once they cannot be written.
    """
    out = _Dropping(sys.stdout, BrokenPipeError)  # a full disk is told of: the scores were to be kept there
    error = _Dropping(sys.stderr, OSError)
    with redirect_stdout(cast(TextIO, out)), redirect_stderr(cast(TextIO, error)):
        yield


class _Dropping:
    """A text stream that writes to nowhere once it cannot be written to any more."""

    def __init__(self, stream: TextIO, dropped: type[OSError]) -> None:
        self._stream, self._dropped = stream, dropped

    def write(self, text: str) -> int:
        """Write, or drop what cannot be written."""
        try:
            return self._stream.write(text)
        except self._dropped:
            silence(self._stream)
            return len(text)

    def flush(self) -> None:
        """Write what is held back, or drop it."""
        try:
            self._stream.flush()
        except self._dropped:
            silence(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def silence(stream: TextIO) -> None:
    """Let a stream write to nowhere: what it could not write it would try again, and complain at the end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def check_arguments(arguments: list[str]) -> None:
    """Refuse what is no text: such a name of a file could be read, and then not be written down anywhere."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            raise UserError(f"the argument {argument!r} is not UTF-8: give the file another name") from None


def console() -> "Console":
    """Where tables are printed: as wide as the terminal, and off a terminal as wide as they are, so nothing is cut."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=WIDE)


def read_prompt(encoding: str) -> str:
    """All of standard input as text."""
    from elman.records.decoding import check_encoding, stream_chunks, text_chunks
    from elman.records.paths import standard_input

    name = Path("standard input")
    return "".join(text_chunks(name, stream_chunks(standard_input(), name), check_encoding(encoding), "--encoding "))
