"""Texts to predict something for, from lines of whatever kind: plain ones, a table, JSON objects; one at a time."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

from elman.corpora.columns import SAMPLE, JsonFields, TableColumns
from elman.corpora.lines import BadLines
from elman.corpora.tables import json_objects, json_text, table_rows
from elman.errors import UserError, nearest
from elman.tasks.predict import PredictOptions

TABLES = ("csv", "tsv", "jsonl")
OTHER_NAMES = {"ndjson": "jsonl"}
PLAIN = "txt"


@dataclass(frozen=True, slots=True)
class TextRecord:
    """One text, the line that it stands in (or ends in), and the fields beside it where that is a JSON object."""

    text: str
    line: int
    fields: dict[str, Any] = field(default_factory=dict, repr=False)


def read_texts(lines: Iterable[str], options: PredictOptions) -> Iterator[TextRecord]:
    """The texts in `lines`; an empty one is a bad line, so that nothing is left out unsaid.

    >>> options = PredictOptions(format="csv")
    >>> list(read_texts(["id,review", '1,"good, really"'], options))
    [TextRecord(text='good, really', line=2)]
    """
    for where, text, fields in _texts(iter(lines), options):
        if text.strip():
            yield TextRecord(text.strip(), int(where.rpartition(":")[2]), fields)
        else:
            options.bad(UserError(f"{where} has an empty text: write one, or leave it out with --on-error skip"))


def _texts(lines: Iterator[str], options: PredictOptions) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Where each text stands, the text, and the fields beside it."""
    where, bad = options.where, options.bad
    format = _format(options)
    if format == PLAIN:
        yield from ((f"{where}:{number}", line, {}) for number, line in enumerate(lines, 1))
        return
    head = list(islice(lines, SAMPLE))  # what comes from a pipe cannot be read twice
    lines = chain(head, lines)
    column = int(options.column) if options.column is not None and options.column.isdecimal() else options.column
    quiet = BadLines("skip")  # a line that is wrong is spoken of when it is read
    if format == "jsonl":
        name = JsonFields.find(where, json_objects(where, iter(head), quiet), column, labelled=False).text
        for place, value in json_objects(where, lines, bad):
            try:
                text = json_text(place, value, name)
            except UserError as error:
                bad(error)
            else:
                yield place, text, {key: other for key, other in value.items() if key != name}
        return
    columns = TableColumns.find(where, table_rows(where, iter(head), f".{format}", quiet), column, labelled=False)
    for place, text, _ in columns.cells(where, table_rows(where, lines, f".{format}", bad)):
        yield place, text, {}


def _format(options: PredictOptions) -> str:
    """How the lines are written; a file's ending that says nothing of it is taken for plain text."""
    given = options.format or PLAIN
    format = OTHER_NAMES.get(given, given)
    if format in (*TABLES, PLAIN):
        if options.column is not None and format == PLAIN:
            raise UserError(f"{options.where} has no columns: leave --column out, or say --format csv")
        return format
    if Path(options.where).suffix.lower() == f".{given}":
        return PLAIN
    raise UserError(f"there is no format {given!r} for texts: {nearest(given, (*TABLES, PLAIN))}")
