"""What readers of two-part records share: files to learn from, lines to predict for, data in memory."""

import csv
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar, cast, get_args

from elman.errors import UserError, nearest
from elman.records.columns import SAMPLE, Columns, Parts, Roles, Rows
from elman.records.decoding import check_encoding
from elman.records.lines import FAIL, BadLines, first_look, made, read_lines
from elman.records.memory import parts_of, read_items
from elman.records.paths import Paths
from elman.records.places import Place, RecordError
from elman.records.tables import DELIMITERS, Column, Format, empty_text, read_rows, table_format

R = TypeVar("R")

FORMATS: dict[str, Format] = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "json": "json"}


class Files(Generic[R]):
    """The records of some files, read anew each time one goes through them; `guess` is what the user should be told.

    `format` says how they are written, `what` they hold is for messages.
    """

    def __init__(
        self, paths: list[Path], format: str, what: str, read: Callable[[BadLines], Iterator[R]], guess: str = ""
    ) -> None:
        self.paths, self.format, self.what, self.guess, self._read = paths, format, what, guess, read

    def records(self, bad: BadLines = FAIL) -> Iterator[R]:
        """The records in order; what happens to a bad line is for `bad` to say."""
        return self._read(bad)

    def __iter__(self) -> Iterator[R]:
        return self.records()

    def read(self, bad: BadLines = FAIL) -> list[R]:
        """All records, of which there must be at least one."""
        records = list(self.records(bad))
        if not records:
            raise UserError(f"{self.paths[0]} holds no {self.what}: give a file with at least one")
        return records


class TwoPartReader(ABC, Generic[R]):
    """Reads records of a text and what belongs to it, wherever they are: `files`, `lines` and `objects`.

    A reader holds how records are written; the same mistake is refused by the same sentence in all three.
    """

    kind: ClassVar[type]
    """What the records are."""
    roles: Roles
    quotes: ClassVar[bool] = True
    """Whether a .tsv has quotation marks around its cells."""
    strips: ClassVar[bool] = True
    """Whether blanks at the ends of a text to predict for are left out."""

    def __init__(self, format: str | None, known: Sequence[str], told: tuple[Column, Column], encoding: str) -> None:
        if format is not None and format not in known:
            raise UserError(f"there is no format {format!r}: {nearest(format, known)}")
        self.format, self.told, self.encoding = format, told, check_encoding(encoding)

    @abstractmethod
    def files(self, paths: Paths) -> Files[R]:
        """The records of some files."""

    @abstractmethod
    def record(self, parts: Parts, name: Column) -> R | None:
        """The record that two parts make, the second of the column `name`; None where it is to be left out."""

    @abstractmethod
    def question(self, where: Place, text: str, fields: dict[str, Any]) -> R:
        """The record of a text alone."""

    def lines(
        self,
        lines: Iterable[str],
        where: Path,
        bad: BadLines = FAIL,
        *,
        format: str | None = None,
        column: Column = None,
        live: bool = False,
    ) -> Iterator[R]:
        """The texts in `lines` to predict something for, each with the fields beside it where it is one of an object.

        `format` is csv, tsv, jsonl, json or txt, else follows from how `where` ends; `column` is the one of the text,
        else that which the reader was told of where there is one, or one of a usual name. An empty text is a bad line,
        so that nothing is left out unsaid. Where lines are `live` (typed, or from a pipe), none is read ahead.
        """
        if format is not None and format not in (*FORMATS, "txt"):
            raise UserError(f"there is no format {format!r} for texts: {nearest(format, (*FORMATS, 'txt'))}")
        written = table_format(where) if format is None else FORMATS.get(format)
        if written is None:
            if column is not None:
                raise UserError(f"{where} has no columns: leave --column out, or give --format csv")
            parts: Iterator[Parts] = (
                Parts(Place(where, number), line, None, {}) for number, line in enumerate(lines, 1)
            )
        else:
            rows = read_rows(where, lines, written, bad, quotes=self.quotes, live=live)
            parts = self._first_parts(where, rows, column, bad)
        for part in parts:
            try:
                if not part.first.strip():
                    raise empty_text(part.where)
                asked = self.question(part.where, part.first.strip() if self.strips else part.first, part.fields)
            except RecordError as error:
                bad(error)
            else:
                yield asked

    def _first_parts(self, where: Path | str, rows: Rows, column: Column, bad: BadLines) -> Iterator[Parts]:
        first = next(rows, None)
        if first is None:
            raise UserError(f"{where} holds no records: give a {self.roles.first} in each")
        return self.roles.find_first(*first, column, self.told[0]).parts(chain([first], rows), bad)

    def objects(self, data: Iterable[Any], name: str = "train", bad: BadLines = FAIL) -> Iterator[R]:
        """The records of data in memory, which `name` calls in messages.

        Tuples of two parts, mappings, a data frame, a data set of named columns, records as they are; columns have the
        same names, or are guessed as those of files.
        """
        items = read_items(data, name)
        head = list(islice(items, SAMPLE))
        objects = [(where, item) for where, item in head if isinstance(item, dict)]
        columns = self.roles.find(name, iter(objects), self.told) if objects else None
        yield from made((partial(self._object, where, item, columns) for where, item in chain(head, items)), bad)

    def _object(self, where: Place, item: Any, columns: Columns | None) -> R | None:
        if isinstance(item, self.kind):
            return cast(R, item)
        if isinstance(item, dict) and columns is not None:
            return self.record(next(columns.parts(iter([(where, item)]))), columns.second)
        first, second = parts_of(where, item, (self.roles.first, self.roles.second))
        if not isinstance(first, str):
            raise RecordError(where, f"has a {type(first).__name__} as its {self.roles.first}: give it as a str")
        return self.record(Parts(where, first, second, {}), self.roles.second)

    def find_columns(self, path: Path, format: Format) -> Columns:
        """The columns of a file of rows or objects."""
        what = "objects" if format in ("jsonl", "json") else "rows"
        return first_look(lambda bad: self.roles.find(path, self.rows(path, format, bad), self.told, what))

    def rows(self, path: Path, format: Format, bad: BadLines) -> Rows:
        """The rows or objects of a file."""
        return read_rows(path, read_lines(path, self.encoding, bad), format, bad, quotes=self.quotes)

    def read_table(self, paths: Iterable[Path], format: Format, columns: Columns, bad: BadLines) -> Iterator[R]:
        """The records of tables and files of objects."""
        for path in paths:
            yield from self.made(columns.parts(self.rows(path, format, bad), bad), columns.second, bad)

    def made(self, parts: Iterable[Parts], name: Column, bad: BadLines) -> Iterator[R]:
        """The records that parts make, the second of the column `name`; what is wrong with one is a bad line."""
        return made((partial(self.record, part, name) for part in parts), bad)

    def shown_format(self, lines: list[str]) -> Format | None:
        """How rows are written in a file whose name does not tell: objects and headers can be nothing else.

        >>> from elman.records.labelled import LabelledReader
        >>> LabelledReader().shown_format(["text;label", "late, again;bad"])
        'csv'
        """
        if not lines:
            return None
        if lines[0].strip() == "[" or lines[0].lstrip().startswith("[{"):
            return "json"
        if all(_is_object(line) for line in lines):
            return "jsonl"
        cut = {mark: next(csv.reader([lines[0] + "\n"], delimiter=mark), []) for mark in DELIMITERS}
        mark = next((mark for mark, row in cut.items() if self.roles.has_both_names(row)), None)
        return None if mark is None else "tsv" if mark == "\t" else "csv"


def one_format(paths: list[Path], formats: Iterable[str | None]) -> str | None:
    """The one format that the names of files tell."""
    different = set(formats)
    if len(different) > 1:
        raise UserError(f"{paths[0]} and {paths[-1]} are written in different ways: name files of one kind")
    return different.pop()


def is_table(format: str) -> bool:
    """Whether files of a format have rows or objects."""
    return format in get_args(Format)


def _is_object(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
