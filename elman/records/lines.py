"""The lines of a text file, one at a time, and what happens to those that cannot be used."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Literal, TypeVar

from elman.errors import UserError
from elman.records.decoding import ENCODING_OPTION, WIDE, check_encoding, raw_chunks, stream_chunks, text_chunks
from elman.records.places import Place, RecordError

X = TypeVar("X")
OnError = Literal["fail", "skip"]


class BadLines:
    """What is done with a line that cannot be used: "fail" raises its error, "skip" counts and reports it.

    A line is counted and reported once, however much is wrong with it: one that cannot be decoded is empty as well.

    >>> bad = BadLines("skip", print)
    >>> where = Place(Path("a.csv"), 7)
    >>> bad(RecordError(where, "is not utf-8")), bad(RecordError(where, "has an empty text")), bad.count
    a.csv:7 is not utf-8
    (None, None, 1)
    """

    def __init__(self, on_error: OnError = "fail", report: Callable[[str], None] | None = None) -> None:
        if on_error not in ("fail", "skip"):
            raise UserError(f"on_error is 'fail' or 'skip', not {on_error!r}")
        self.skips = on_error == "skip"
        self.report = report
        self.count = 0
        self._last: Place | None = None

    def __call__(self, error: UserError) -> None:
        if not self.skips:
            raise error
        where = error.where if isinstance(error, RecordError) else None
        if where is not None and where == self._last:
            return
        self._last = where
        self.count += 1
        if self.report is not None:
            self.report(str(error))


FAIL = BadLines()


def made(makers: Iterable[Callable[[], X | None]], bad: BadLines) -> Iterator[X]:
    """The records that can be made, those that are None left out; one that cannot is a bad line."""
    for make in makers:
        try:
            record = make()
        except RecordError as error:
            bad(error)
        else:
            if record is not None:
                yield record


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
        lines = list(islice((line for line in read_lines(path, encoding, bad) if line.strip()), count))
        if not lines and bad.count:
            raise UserError(f"{path} has no line that can be read: mend it")
        return lines

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


def numbered(path: Path, lines: Iterable[str]) -> Iterator[tuple[Place, str]]:
    """The lines that are not blank, each with where it stands.

    >>> [str(where) for where, _ in numbered(Path("a.txt"), ["one", " ", "three"])]
    ['a.txt:1', 'a.txt:3']
    """
    return ((Place(path, number), line) for number, line in enumerate(lines, 1) if line.strip())


class StreamLines(Iterator[str]):
    """The lines of an open stream such as standard input, each as soon as it is there; read as `read_lines` reads.

    >>> from io import BytesIO
    >>> lines = StreamLines(BytesIO(b"one\\r\\nt\\xffo\\n"), Path("-"), bad=BadLines("skip"))
    >>> next(lines), lines.more(), next(lines), lines.more()
    ('one', True, '', False)
    """

    def __init__(
        self,
        stream: BinaryIO,
        where: Path,
        encoding: str = "utf-8",
        bad: BadLines = FAIL,
        option: str = ENCODING_OPTION,
    ) -> None:
        self._pieces: deque[bytes] = deque()
        self._lines = _lines(where, self._read(stream, where), check_encoding(encoding), bad, option)

    def __next__(self) -> str:
        return next(self._lines)

    def more(self) -> bool:
        """Whether the next line is there already, so that nobody has to wait for it."""
        return bool(self._pieces) and self._pieces[0].endswith(b"\n")

    def _read(self, stream: BinaryIO, where: Path) -> Iterator[bytes]:
        for chunk in stream_chunks(stream, where):
            self._pieces.extend(_cut(chunk))
            while self._pieces:
                yield self._pieces.popleft()


def _cut(chunk: bytes) -> Iterator[bytes]:
    """Pieces that end with LF, and what is left; a CR alone ends none."""
    *whole, rest = chunk.split(b"\n")
    yield from (line + b"\n" for line in whole)
    if rest:
        yield rest


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
            yield _decoded(raw, encoding, Place(where, number), bad, first=number == 1)
    if rest:
        yield _decoded(rest, encoding, Place(where, number + 1), bad, first=number == 0)


def _decoded(raw: bytes, encoding: str, where: Place, bad: BadLines, first: bool) -> str:
    try:
        text = raw.removesuffix(b"\r").decode("utf-8-sig" if first and encoding == "utf-8" else encoding)
    except UnicodeDecodeError as error:
        bad(RecordError(where, f"is not {encoding} (byte 0x{raw[error.start]:02x}): mend the line"))
        return ""
    if "\0" in text:
        bad(RecordError(where, "looks like part of a binary file, not text: mend the line"))
        return ""
    return text
