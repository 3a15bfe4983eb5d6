"""What `elman predict` and a model have to say to each other, whatever the task.

A model that predicts has

    def predict_lines(self, lines: Iterable[str], options: PredictOptions) -> Iterator[str]: ...

It makes records of the lines (one a line, or as many lines as its format takes), gives back one or more lines for
each record in the order in which they came, and holds no more than `options.window` records at a time. A record that
cannot be used goes to `options.bad`, which raises its error or counts and reports it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from elman.errors import UserError, nearest
from elman.records.lines import BadLines, OnError
from elman.records.tables import table_kind

F = TypeVar("F")


@dataclass(frozen=True)
class PredictOptions:
    """How records are to be read and results to be written."""

    where: Path = Path("-")
    """What the lines come from, for messages (`new.csv:7`)."""
    format: str | None = None
    """How the records are written, as `--format` says; else it follows the ending of `where`."""
    column: str | None = None
    """The column or field of the text, by name or by number from 1, in tables and JSON lines."""
    as_json: bool = False
    """One JSON object a record, in place of text for people and other programs."""
    colour: bool = False
    """The output goes to a terminal that shows colours."""
    search: dict[str, Any] = field(default_factory=dict)
    """What a translator is asked for, by the names of its options; empty for other models."""
    bad: BadLines = field(default_factory=BadLines)
    say: Callable[[str], None] = field(default=lambda sentence: None)
    """Tells the user something that is no error."""
    window: int = 4096

    def format_among(self, known: Mapping[str, F], what: str) -> F | None:
        """The one of the `known` formats in which the records are written; None where nothing tells.

        >>> PredictOptions(where=Path("a.CSV.gz")).format_among({"csv": "table", "txt": "lines"}, "texts")
        'table'
        """
        if self.format is not None and self.format not in known:
            raise UserError(f"there is no format {self.format!r} for {what}: {nearest(self.format, known)}")
        ending = (table_kind(self.where) or self.where.suffix.lower()).removeprefix(".")
        return known.get(self.format or ending)


@runtime_checkable
class Predictor(Protocol):
    """A model that `elman predict` can use."""

    def predict_lines(self, lines: Iterable[str], options: PredictOptions) -> Iterator[str]:
        """The lines to print for the records in `lines`."""


def trained_with(recipe: Any, key: str) -> str | None:
    """What the data section of a model's recipe says, None where it says nothing.

    >>> trained_with({"data": {"text_column": "review"}}, "text_column"), trained_with({}, "text_column")
    ('review', None)
    """
    data = recipe.get("data") if isinstance(recipe, dict) else None
    value = data.get(key) if isinstance(data, dict) else None
    return None if value is None else str(value)


class BadRecords(BadLines):
    """Counts and reports a line once, however much is wrong with it: one that cannot be decoded is empty as well.

    >>> bad = BadRecords("skip", print)
    >>> bad(UserError("a.txt:7 is not utf-8")), bad(UserError("a.txt:7 has an empty text")), bad.count
    a.txt:7 is not utf-8
    (None, None, 1)
    """

    def __init__(self, on_error: OnError = "fail", report: Callable[[str], None] | None = None) -> None:
        super().__init__(on_error, report)
        self._last = ""

    def __call__(self, error: UserError) -> None:
        place = re.match(r".*?:\d+\b", str(error))
        if place is None or place.group() != self._last:
            super().__call__(error)
        self._last = place.group() if place is not None else ""
