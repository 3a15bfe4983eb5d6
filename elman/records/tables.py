"""Rows of tables and JSON objects, from lines, one at a time; each comes with where it stands.

csv     cells with commas between them, or semicolons, tabs, bars: as the first rows show
tsv     cells with tabs between them
jsonl   an object a line
json    one array of objects, or an object a line
"""

import csv
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from elman.errors import UserError, nearest
from elman.records.lines import FAIL, BadLines, numbered
from elman.records.places import Place, RecordError

Format = Literal["csv", "tsv", "jsonl", "json"]
SUFFIXES: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json"}
Column = str | int | None
Row = list[str] | dict[str, Any]  # the cells of a table, or a JSON object
DELIMITERS = ",;\t|"
SNIFFED = 20  # lines of a .csv that are looked at for what separates its columns
LONGEST_CELL = 2**31 - 1  # characters; the csv module refuses more than 131,072 unless told otherwise
csv.field_size_limit(LONGEST_CELL)
NOT_AN_OBJECT = 'is not a JSON object: write one such as {"text": ...}'


def table_format(path: Path) -> Format | None:
    """How a table is written, as the ending of its name says, apart from `.gz`; None for every other file.

    >>> table_format(Path("a.CSV.gz")), table_format(Path("a.txt"))
    ('csv', None)
    """
    return SUFFIXES.get(Path(path.name.lower().removesuffix(".gz")).suffix)


def read_rows(
    path: Path, lines: Iterable[str], format: Format, bad: BadLines = FAIL, *, quotes: bool = True, live: bool = False
) -> Iterator[tuple[Place, Row]]:
    """Where each row or object stands, and its cells or fields.

    Without `quotes`, a quotation mark of a .tsv is a character like any other. Where lines are `live`, none is read
    ahead.

    >>> [row for _, row in read_rows(Path("a.csv"), ['1;"a; b"', "", "2;c"], "csv")]
    [['1', 'a; b'], ['2', 'c']]
    """
    if format in ("jsonl", "json"):
        return read_objects(path, lines, format, bad)
    if format == "tsv":
        return table_rows(path, lines, "\t", bad, quotes=quotes)
    lines = iter(lines)
    head = list(islice(lines, 1))
    if not live and any(mark in line for line in head for mark in DELIMITERS[1:]):
        head += islice(lines, SNIFFED - 1)
    return table_rows(path, chain(head, lines), delimiter_of(head), bad)


def delimiter_of(head: list[str]) -> str:
    """What separates the columns of a .csv: what cuts the first row, and most of the others into as many cells.

    >>> delimiter_of(["text;label", "late, again;bad"]), delimiter_of(["late; again,bad", "fine,good"])
    (';', ',')
    """
    agreeing = {}
    for delimiter in DELIMITERS:
        widths: list[int] = []
        with suppress(csv.Error):  # which is spoken of when the row is read
            widths.extend(len(row) for row in csv.reader((line + "\n" for line in head), delimiter=delimiter) if row)
        if widths and widths[0] > 1:
            agreeing[delimiter] = sum(width == widths[0] for width in widths) / len(widths)
    best = max(agreeing, key=lambda delimiter: agreeing[delimiter], default=",")
    return best if agreeing.get(best, 0) > 0.5 else ","


def table_rows(
    path: Path, lines: Iterable[str], delimiter: str, bad: BadLines = FAIL, *, quotes: bool = True
) -> Iterator[tuple[Place, list[str]]]:
    """Where each row of a table ends, and its cells, as many as in the first row."""
    width = 0
    with_ends = (line + "\n" for line in lines)  # for fields in quotes that go over several lines
    rows = csv.reader(
        with_ends, delimiter=delimiter, strict=True, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    )
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            bad(RecordError(Place(path, rows.line_num), f"cannot be read as a table: {error}"))
            continue
        if row is None:
            return
        width = width or len(row)
        if len(row) == width and row:
            yield Place(path, rows.line_num), row
        elif row:
            problem = f"has {len(row)} columns where the first row has {width}: mend the row"
            bad(RecordError(Place(path, rows.line_num), problem))


def json_objects(path: Path, lines: Iterable[str], bad: BadLines = FAIL) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Where each line of JSON stands, and its object.

    >>> [(str(where), fields) for where, fields in json_objects(Path("a.jsonl"), ['{"text": "a"}'])]
    [('a.jsonl:1', {'text': 'a'})]
    """
    for where, line in numbered(path, lines):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            bad(RecordError(where, f"is not JSON: {error}"))
            continue
        if (problem := _object_problem(value, "\\u" in line)) is None:
            yield where, value
        else:
            bad(RecordError(where, problem))


def read_objects(
    path: Path, lines: Iterable[str], format: str, bad: BadLines = FAIL
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Where each object stands, and its fields: one a line (jsonl), or as a .json file has them."""
    return _json_file(path, iter(lines), bad) if format == "json" else json_objects(path, lines, bad)


def _json_file(path: Path, lines: Iterator[str], bad: BadLines) -> Iterator[tuple[Place, dict[str, Any]]]:
    """An array of objects, or an object a line."""
    head: list[str] = []
    while not (head and head[-1].strip()) and (line := next(lines, None)) is not None:
        head.append(line)
    lines = chain(head, lines)
    first = head[-1].strip() if head else ""
    if not first.startswith("["):
        if first and not (first.startswith("{") and first.endswith("}")):  # an object over several lines
            raise UserError(
                f'{path} is no array of JSON objects, and has no object a line: write [{{"text": ...}}, ...]'
            )
        yield from json_objects(path, lines, bad)
        return
    text = "\n".join(lines)
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} begins as an array of JSON objects, and is not JSON: {error}") from error
    escaped = "\\u" in text
    for number, value in enumerate(values, 1):
        where = Place(str(path), number)  # lines do not tell records apart here
        if (problem := _object_problem(value, escaped)) is None:
            yield where, value
        else:
            bad(RecordError(where, problem))


def _object_problem(value: object, escaped: bool) -> str | None:
    """What is wrong with a JSON value that should be an object; half a surrogate pair can only come in by an escape."""
    if escaped and (half := half_pair(value)) is not None:
        return f"has half a surrogate pair (\\u{half:x}), which is no character: mend the line"
    return None if isinstance(value, dict) else NOT_AN_OBJECT


def half_pair(value: object) -> int | None:
    """Half a surrogate pair in some text of a JSON value: it can be escaped, but is no character to work with."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        return ord(error.object[error.start])
    except RecursionError:  # far too deep for anything that is read from it
        return None
    return None


def check_names(where: Place | str, names: Sequence[str]) -> None:
    """Refuse two columns of one name, of which one would be read for the other.

    >>> check_names("a.csv:1", ["x", "y", "x"])
    Traceback (most recent call last):
    elman.errors.UserError: a.csv:1 has two columns called 'x': give one of them another name
    """
    if (twice := next((name for name, count in Counter(names).items() if count > 1), None)) is not None:
        raise UserError(f"{where} has two columns called {twice!r}: give one of them another name")


def column_index(where: Place, row: list[str], column: str | int) -> int:
    """Where in the first row of a table a column stands, given by its name or by its number from 1.

    >>> column_index(Place(Path("a.csv"), 1), ["id", "text"], "text")
    1
    """
    if isinstance(column, str):
        if column not in row:
            raise RecordError(where, f"has no column called {column!r}: {nearest(column, row)}")
        if row.count(column) > 1:
            raise RecordError(where, f"has two columns called {column!r}: give one of them another name")
        return row.index(column)
    if not 1 <= column <= len(row):
        raise RecordError(where, f"has {len(row)} columns, so there is no column {column}: count from 1")
    return column - 1


def field_of(where: Place, fields: dict[str, Any], name: str) -> Any:
    """The value of a field of an object.

    >>> field_of(Place("train", 3), {"txt": "good"}, "text")
    Traceback (most recent call last):
    elman.records.places.RecordError: record 3 of train has no field 'text': did you mean 'txt'?
    """
    if name not in fields:
        raise RecordError(where, f"has no field {name!r}: {nearest(name, fields)}")
    return fields[name]


def text_of(where: Place, value: Any, name: Column) -> str:
    """A value as a text; numbers as they are written.

    >>> text_of(Place("train", 3), 4, "stars")
    '4'
    """
    if isinstance(value, str):
        return value
    if is_missing(value) or isinstance(value, (dict, list, tuple, set)):
        raise RecordError(where, f"has no text in field {name!r}: write a string")
    return str(value)


def is_missing(value: Any) -> bool:
    """Whether a value is what stands for none: null, and in data frames NaN, NA and NaT.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0)
    (True, True, False)
    """
    nan = isinstance(value, float) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")


def empty_text(where: Place) -> RecordError:
    """What is said of a record without a text, wherever records are read.

    >>> str(empty_text(Place(Path("a.csv"), 7)))
    'a.csv:7 has an empty text: write one, or remove the line'
    """
    return RecordError(where, "has an empty text: write one, or remove the line")
