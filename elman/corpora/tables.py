"""Records of one text each, with or without a label: CSV, TSV, JSON lines, plain lines."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elman.corpora.decoding import check_encoding, raw_chunks, text_chunks
from elman.errors import UserError, nearest

Column = str | int | None


@dataclass(frozen=True)
class Record:
    """One text, its label if it has one, and where it stands (`file:line`)."""

    text: str
    label: str | None = None
    where: str = ""


def read_records(path: Path | str, text: Column = None, label: Column = None, encoding: str = "utf-8") -> list[Record]:
    """The records of a `.csv`, `.tsv`, `.jsonl` (each perhaps `.gz`) or plain file, one a line.

    `text` and `label` name a column: by its name in the header or in the JSON object, or by its number from
    1. Without them the text is the column called `text`, else the first; the label is the column called
    `label`, else the second of two. A table has a header where its first row holds such a name.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "names.csv"
    >>> _ = place.write_text('"Adsit","Czech"\\n"Fabian","Polish"\\n')
    >>> read_records(place, text=1, label=2)[1].label
    'Polish'
    """
    path = Path(path)
    lines = _lines(path, check_encoding(encoding))
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    if kind in (".csv", ".tsv"):
        records = _table(path, lines, "," if kind == ".csv" else "\t", text, label)
    elif kind in (".jsonl", ".ndjson"):
        records = _json_lines(path, lines, text, label)
    else:
        records = [Record(line, None, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not records:
        raise UserError(f"{path} holds no records: give a file with at least one line of text")
    return records


def _lines(path: Path, encoding: str) -> Iterator[str]:
    """Lines without their ends; only LF and CRLF end one."""
    rest = ""
    for text in text_chunks(path, raw_chunks(path), encoding):
        *whole, rest = (rest + text).split("\n")
        yield from whole
    if rest:
        yield rest


def _with_ends(lines: Iterator[str]) -> Iterator[str]:
    """The table reader wants the line ends, for fields in quotes that go over several lines."""
    for line in lines:
        yield line + "\n"


def _table(path: Path, lines: Iterator[str], delimiter: str, text: Column, label: Column) -> list[Record]:
    records: list[Record] = []
    columns: tuple[int, int | None] | None = None
    width = 0
    rows = csv.reader(_with_ends(lines), delimiter=delimiter, strict=True)
    try:
        for row in rows:
            where = f"{path}:{rows.line_num}"
            if not row:
                continue
            if columns is None:
                width, header = len(row), _is_header(row, text, label)
                columns = _columns(path, row, header, text, label)
                if header:
                    continue
            if len(row) != width:
                raise UserError(f"{where} has {len(row)} columns where the first row has {width}: mend the row")
            records.append(Record(row[columns[0]], None if columns[1] is None else row[columns[1]], where))
    except csv.Error as error:
        raise UserError(f"{path}:{rows.line_num} cannot be read as a table: {error}") from error
    return records


def _is_header(row: list[str], text: Column, label: Column) -> bool:
    names = {column for column in (text, label) if isinstance(column, str)} or {"text", "label"}
    return any(name in row for name in names)


def _columns(path: Path, row: list[str], header: bool, text: Column, label: Column) -> tuple[int, int | None]:
    names = row if header else []
    if text is None:
        text = "text" if "text" in names else 1
    if label is None:
        label = "label" if "label" in names else 2 if len(row) == 2 else None
    return _column(path, row, text), None if label is None else _column(path, row, label)


def _column(path: Path, row: list[str], column: str | int) -> int:
    if isinstance(column, str):
        if column not in row:
            raise UserError(f"{path}:1 has no column called {column!r}: {nearest(column, row)}")
        return row.index(column)
    if not 1 <= column <= len(row):
        raise UserError(f"{path}:1 has {len(row)} columns, so there is no column {column}: count from 1")
    return column - 1


def _json_lines(path: Path, lines: Iterator[str], text: Column, label: Column) -> list[Record]:
    records = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
        except ValueError as error:
            raise UserError(f"{where} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise UserError(f'{where} is not a JSON object: write one such as {{"text": ...}}')
        found = _field(where, value, "text" if text is None else str(text))
        name = "label" if label is None and "label" in value else label
        records.append(Record(found, None if name is None else _field(where, value, str(name)), where))
    return records


def _field(where: str, value: dict[str, object], name: str) -> str:
    if name not in value:
        raise UserError(f"{where} has no field {name!r}: {nearest(name, value)}")
    found = value[name]
    if isinstance(found, (dict, list)) or found is None:
        raise UserError(f"{where} has no text in field {name!r}: write a string")
    return str(found)
