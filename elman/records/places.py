"""Where a record stands: a value that is carried along, and written out only for people."""

from pathlib import Path
from typing import NamedTuple

from elman.errors import UserError


class Place(NamedTuple):
    """A line of a file or, where `path` is no path but a name, a record of data in memory; both count from 1.

    >>> print(Place(Path("train.csv"), 1041), "and", Place("train", 3))
    train.csv:1041 and record 3 of train
    """

    path: Path | str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}" if isinstance(self.path, Path) else f"record {self.line} of {self.path}"


class RecordError(UserError):
    """What is wrong with a record, and where that stands.

    >>> str(RecordError(Place(Path("a.csv"), 7), "has an empty text: write one, or remove the line"))
    'a.csv:7 has an empty text: write one, or remove the line'
    """

    def __init__(self, where: Place, problem: str) -> None:
        super().__init__(where, problem)
        self.where, self.problem = where, problem

    def __str__(self) -> str:
        return f"{self.where} {self.problem}"


def source_of(where: Place | None) -> str:
    """The file or the data in memory that a record is of."""
    return "the data" if where is None else str(where.path)
