"""The lines of a text file, one at a time, and what happens to those that cannot be used."""

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

from elman.errors import UserError
from elman.records.decoding import ENCODING_OPTION, check_encoding, raw_chunks, stream_chunks, text_chunks

X = TypeVar("X")
OnError = Literal["fail", "skip"]
WIDE = ("utf-16", "utf-32")


class BadLines:
    """What is done with a line that cannot be used: "fail" raises its error, "skip" counts and reports it.

    >>> told = []
    >>> bad = BadLines("skip", told.append)
    >>> bad(UserError("a.csv:7 has 3 columns where the first row has 2: mend the row"))
    >>> bad.count, told[0][:7]
    (1, 'a.csv:7')
    """

    def __init__(self, on_error: OnError = "fail", report: Callable[[str], None] | None = None) -> None:
        if on_error not in ("fail", "skip"):
            raise UserError(f"on_error is 'fail' or 'skip', not {on_error!r}")
        self.skips = on_error == "skip"
        self.report = report
        self.count = 0

    def __call__(self, error: UserError) -> None:
        if not self.skips:
            raise error
        self.count += 1
        if self.report is not None:
            self.report(str(error))


FAIL = BadLines()


def first_look(find: Callable[[BadLines], X]) -> X:
    """What `find` finds in lines of which it passes over the bad ones; where that is too little, they are spoken of.

    A bad line is otherwise spoken of when it is read.
    """
    quiet = BadLines("skip")
    try:
        return find(quiet)
    except UserError:
        if quiet.count:
            find(FAIL)
        raise


def first_lines(path: Path, encoding: str, count: int) -> list[str]:
    """Some lines at the beginning of a file, empty ones left out, and bad ones where there are others.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = place.write_bytes(b"\\xff\\n\\none\\n")
    >>> first_lines(place, "utf-8", 20)
    ['one']
    """

    def find(bad: BadLines) -> list[str]:
        found = list(islice((line for line in read_lines(path, encoding, bad) if line.strip()), count))
        if not found and bad.count:
            raise UserError(f"{path} has no line that can be read: mend it")
        return found

    return first_look(find)


def read_lines(
    path: Path, encoding: str = "utf-8", bad: BadLines = FAIL, option: str = ENCODING_OPTION
) -> Iterator[str]:
    """Lines without their ends; only LF and CRLF end one.

    Where bad lines are skipped, one that is not in the encoding comes as an empty line, so that the others keep
    their numbers. `option` is what the user types before the name of another encoding.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = place.write_bytes(b"one\\r\\nt\\xffo\\nthree")
    >>> list(read_lines(place, bad=BadLines("skip")))
    ['one', '', 'three']
    """
    return _lines(path, raw_chunks(path), check_encoding(encoding), bad, option)


def stream_lines(
    stream: BinaryIO, where: Path, encoding: str = "utf-8", bad: BadLines = FAIL, option: str = ENCODING_OPTION
) -> Iterator[str]:
    """What `read_lines` gives, of an open stream such as standard input; each line as soon as it is there.

    >>> from io import BytesIO
    >>> list(stream_lines(BytesIO(b"one\\r\\nt\\xffo\\n"), Path("-"), bad=BadLines("skip")))
    ['one', '']
    """
    return _lines(where, stream_chunks(stream, where), check_encoding(encoding), bad, option)


def _lines(where: Path, chunks: Iterator[bytes], encoding: str, bad: BadLines, option: str) -> Iterator[str]:
    if bad.skips and not encoding.startswith(WIDE):  # in the wide ones a line end is more than one byte
        yield from _one_by_one(where, chunks, encoding, bad)
        return
    rest = ""
    for text in text_chunks(where, chunks, encoding, option):
        *whole, rest = (rest + text).split("\n")
        yield from whole
    if rest:
        yield rest


def _one_by_one(where: Path, chunks: Iterator[bytes], encoding: str, bad: BadLines) -> Iterator[str]:
    """Every line decoded for itself, so that one that cannot be does not end the file."""
    number, rest = 0, b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for raw in whole:
            number += 1
            yield _decoded(raw, encoding, f"{where}:{number}", bad, first=number == 1)
    if rest:
        yield _decoded(rest, encoding, f"{where}:{number + 1}", bad, first=number == 0)


def _decoded(raw: bytes, encoding: str, where: str, bad: BadLines, first: bool) -> str:
    try:
        text = raw.removesuffix(b"\r").decode("utf-8-sig" if first and encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        bad(UserError(f"{where} is not {encoding} (byte 0x{raw[error.start]:02x}): mend the line"))
        return ""
    if "\0" in text:
        bad(UserError(f"{where} looks like part of a binary file, not text: mend the line"))
        return ""
    return text
