"""Texts without labels or translations, from lines of whatever kind: plain ones, a table, JSON objects; one at a time.

The lines may come from a pipe, so they are read once. A record that training refuses is refused here too, by the same
sentence.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from elman.errors import UserError
from elman.records.columns import SAMPLE, JsonFields, TableColumns
from elman.records.lines import FAIL, BadLines, first_look, read_lines
from elman.records.sides import Sides
from elman.records.tables import Column, Record, empty_text, json_objects, json_text, table_kind, table_rows

Format = Literal["csv", "tsv", "jsonl", "txt"]
Rows = Iterator[tuple[str, list[str]]]
Objects = Iterator[tuple[str, dict[str, object]]]


@dataclass(frozen=True)
class Layout:
    """How the text is found in a table and among the fields of JSON lines, and whether a .tsv has quotation marks."""

    table: Callable[[Path, Rows, Column, Column], TableColumns | Sides]
    field: Callable[[Path, Objects, Column, Column], str | int]
    quotes: bool


LABELLED = Layout(TableColumns.of_texts, lambda *about: JsonFields.of_texts(*about).text, quotes=True)
PAIRED = Layout(Sides.of_texts, lambda *about: Sides.of_text_objects(*about).source, quotes=False)


def texts_in(
    lines: Iterable[str],
    where: Path,
    format: Format,
    *,
    text: Column = None,
    usual: Column = None,
    layout: Layout = LABELLED,
    bad: BadLines = FAIL,
) -> Iterator[tuple[Record, dict[str, Any]]]:
    """The texts in `lines`, stripped, each with the fields beside it where it is one of a JSON object.

    `text` is the column or field to take; `usual` the one that such files have had before, where it is not given. An
    empty text is a bad line, so that nothing is left out unsaid.

    >>> [record.text for record, _ in texts_in(["id,review", '1,"good, really"'], Path("a.csv"), "csv")]
    ['good, really']
    """
    for place, found, fields in _found(iter(lines), where, format, text, usual, layout, bad):
        if found.strip():
            yield Record(found.strip(), None, place), fields
        else:
            bad(empty_text(place))


def iterate_texts(path: Path, text: Column = None, encoding: str = "utf-8", bad: BadLines = FAIL) -> Iterator[Record]:
    """Texts to be classified, of a file: a column of a table, a field of JSON lines, or the lines themselves.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "new.txt"
    >>> _ = place.write_text("one\\n\\nthree\\n")
    >>> [record.text for record in iterate_texts(place, bad=BadLines("skip"))]
    ['one', 'three']
    """
    formats: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    lines = read_lines(path, encoding, bad)
    return (record for record, _ in texts_in(lines, path, formats.get(table_kind(path), "txt"), text=text, bad=bad))


def _found(
    lines: Iterator[str], where: Path, format: Format, text: Column, usual: Column, layout: Layout, bad: BadLines
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Where each text stands, the text, and the fields beside it."""
    if format == "txt":
        yield from ((f"{where}:{number}", line, {}) for number, line in enumerate(lines, 1))
        return
    head = list(islice(lines, SAMPLE))  # what comes from a pipe cannot be read twice
    lines = chain(head, lines)
    if format == "jsonl":
        name = str(first_look(lambda bad: layout.field(where, json_objects(where, iter(head), bad), text, usual)))
        for place, value in json_objects(where, lines, bad):
            try:
                found = json_text(place, value, name)
            except UserError as error:
                bad(error)
            else:
                yield place, found, {key: other for key, other in value.items() if key != name}
        return

    def rows(some: Iterator[str], bad: BadLines) -> Rows:
        return table_rows(where, some, f".{format}", bad, quotes=layout.quotes or format == "csv")

    columns = first_look(lambda bad: layout.table(where, rows(iter(head), bad), text, usual))
    for place, found, _ in columns.cells(where, rows(lines, bad)):
        yield place, found, {}
