"""Texts to predict something for, as `elman predict` is told to read them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from elman.errors import UserError
from elman.records.texts import LABELLED, Format, Layout, texts_in
from elman.tasks.predict import PredictOptions

FORMATS: dict[str, Format] = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "ndjson": "jsonl", "txt": "txt"}


@dataclass(frozen=True, slots=True)
class TextRecord:
    """One text, the line that it stands in (or ends in), and the fields beside it where that is a JSON object."""

    text: str
    line: int
    fields: dict[str, Any] = field(default_factory=dict, repr=False)


def check_texts(texts: Sequence[str]) -> None:
    """Refuse what is no text, and texts of nothing.

    >>> check_texts(["one", " "])
    Traceback (most recent call last):
    elman.errors.UserError: text 2 of 2 is empty: give it at least one character
    """
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise UserError(f"text {number} of {len(texts)} is a {type(text).__name__}: give it as a str")
        if not text.strip():
            raise UserError(f"text {number} of {len(texts)} is empty: give it at least one character")


def read_texts(
    lines: Iterable[str], options: PredictOptions, usual: str | None = None, layout: Layout = LABELLED
) -> Iterator[TextRecord]:
    """The texts in `lines`; `usual` is the column that the model was trained on, by name or by number.

    >>> options = PredictOptions(format="csv")
    >>> list(read_texts(["id,review", '1,"good, really"'], options))
    [TextRecord(text='good, really', line=2)]
    """
    column, trained = (int(name) if name is not None and name.isdecimal() else name for name in (options.column, usual))
    found = texts_in(lines, options.where, _format(options), text=column, usual=trained, layout=layout, bad=options.bad)
    for record, fields in found:
        yield TextRecord(record.text, int(record.where.rpartition(":")[2]), fields)


def _format(options: PredictOptions) -> Format:
    """How the lines are written; a file's ending that says nothing of it is taken for plain text."""
    format = options.format_among(FORMATS, "texts") or "txt"
    if options.column is not None and format == "txt":
        raise UserError(f"{options.where} has no columns: leave --column out, or give --format csv")
    return format
