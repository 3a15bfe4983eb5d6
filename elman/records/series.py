"""Numbers over time, from tables: one series or several, with or without a column of times."""

import reprlib
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman.errors import UserError, nearest
from elman.records.decoding import check_encoding
from elman.records.lines import FAIL, BadLines, read_lines
from elman.records.memory import read_items
from elman.records.paths import Paths, expand
from elman.records.places import Place, RecordError
from elman.records.reader import Files
from elman.records.tables import Row, read_rows, table_format

Floats = NDArray[np.float64]
Rows = list[tuple[Place, dict[str, Any]]]
Missing = Literal["refuse", "previous", "interpolate"]
TIMES = ("time", "date", "datetime", "timestamp", "ds", "step", "year", "month", "week", "day", "hour", "quarter")
NOTHING = ("", "na", "n/a", "nan", "null", "none", ".", "?", "-")
LARGEST = 1e100  # a sum of squares of larger ones may be no number
UNEVEN = 0.1  # of the usual step: months and leap years are as even as a calendar gets, missing rows are not


@dataclass(frozen=True, eq=False)
class Series:
    """One series: T steps of numbers to forecast, others beside them, and a number for the whole where it has one."""

    name: str
    values: Floats
    """T x C."""
    covariates: Floats
    """T x K."""
    columns: tuple[str, ...] = ()
    """The names of what is to be forecast, where they have names."""
    label: float | None = None
    where: Place | None = None

    @classmethod
    def of(cls, numbers: ArrayLike, channels: int, width: int) -> "Series":
        """The series of T or T x `width` numbers, of which the first `channels` columns are to be forecast.

        >>> Series.of([1, 2, 3], channels=1, width=1).values.ravel().tolist()
        [1.0, 2.0, 3.0]
        """
        try:
            table = np.asarray(numbers, np.float64)
        except (TypeError, ValueError):
            raise UserError("a series is a list of numbers: give each step as a number, or as a row of them") from None
        if table.ndim == 0:
            raise UserError("a series is a list of numbers, at least one: give each step as one, or as a row of them")
        table = table[:, None] if table.ndim == 1 else table
        if not table.size or table.shape[1:] != (width,) or not (np.abs(table) < LARGEST).all():
            shape = " x ".join(map(str, table.shape))
            raise UserError(f"a series is rows of {width} finite numbers each, at least one: give such, not {shape}")
        return cls("", table[:, :channels], table[:, channels:])

    def __len__(self) -> int:
        return len(self.values)

    def part(self, start: int, stop: int) -> "Series":
        """Some of its steps."""
        kept = slice(max(0, start), stop)
        return replace(self, values=self.values[kept], covariates=self.covariates[kept])


class SeriesReader:
    """Reads series from tables with a heading, from data frames and other rows in memory.

    `target` are the columns to forecast; all columns of numbers that are nothing else where none are named. `time` is
    the column of times, found by its name; `key` tells several series apart; `label` has one number for each series.
    Columns are named, or numbered from 1. What is missing is refused, or taken from the step before, or from between
    its neighbours.

    >>> reader = SeriesReader(missing="interpolate")
    >>> [series.values.ravel().tolist() for series in reader.objects([{"year": 1, "x": 2}, {"year": 2, "x": None},
    ...                                                               {"year": 3, "x": 4}])]
    [[2.0, 3.0, 4.0]]
    """

    def __init__(
        self,
        *,
        target: Sequence[str] = (),
        time: str | None = None,
        key: str | None = None,
        covariates: Sequence[str] = (),
        label: str | None = None,
        missing: Missing = "refuse",
        uneven: bool = False,
        encoding: str = "utf-8",
    ) -> None:
        self.target, self.time, self.key, self.covariates = tuple(target), time, key, tuple(covariates)
        self.label, self.missing, self.uneven, self.encoding = label, missing, uneven, check_encoding(encoding)

    def files(self, paths: Paths) -> Files[Series]:
        """The series of some tables."""
        places = expand(paths)
        return Files(places, "csv", "series", partial(self._read, places))

    def _read(self, paths: list[Path], bad: BadLines) -> Iterator[Series]:
        for path in paths:
            rows = read_rows(path, read_lines(path, self.encoding, bad), table_format(path) or "csv", bad)
            yield from self._series(_with_names(rows), str(path), self.label)

    def lines(
        self,
        lines: Iterable[str],
        where: Path,
        bad: BadLines = FAIL,
        *,
        format: str | None = None,
        column: str | int | None = None,
        live: bool = False,
    ) -> Iterator[Series]:
        """The series in the lines of a table, which are known when the last line is; `column` is another target."""
        kind: Any = format or table_format(where) or "csv"
        reader = copy(self)
        if column is not None:
            reader.target = (str(column),)
        return reader._series(_with_names(read_rows(where, lines, kind, bad)), str(where))

    def objects(self, data: Iterable[Any], name: str = "train") -> Iterator[Series]:
        """The series of data in memory: a data frame, mappings, numbers, or rows of numbers."""
        return self._series(((where, _row(item)) for where, item in read_items(data, name)), name, self.label)

    def given(self, data: Any, channels: int, width: int) -> tuple[list[Series], bool]:
        """What a forecast is asked for: a series as numbers or as a `Series`; or several, as is then said, in a list
        of such, in a data frame or in mappings."""
        first = data[0] if isinstance(data, list) and data else data
        if isinstance(first, Series):
            return (data, True) if isinstance(data, list) else ([data], False)
        if isinstance(first, dict) or hasattr(data, "columns"):
            rows = ((where, _row(item)) for where, item in read_items(data, "the data"))
            return list(self._series(rows, "the data")), True
        return [Series.of(data, channels, width)], False

    def _series(
        self, rows: Iterable[tuple[Place, dict[str, Any]]], source: str, label: str | None = None
    ) -> Iterator[Series]:
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            raise UserError(f"{source} holds no rows: give a heading and at least two")
        named = partial(_column_named, heading=list(first[1]), source=source)
        key, labels = named(self.key), named(label)
        time = named(self.time) or next((name for name in first[1] if name.lower() in TIMES), None)
        beside = tuple(str(named(name)) for name in self.covariates)
        others = {time, key, self.label, labels, *beside}
        target = tuple(str(named(name)) for name in self.target) or tuple(
            name for name, value in first[1].items() if name not in others and _may_be_number(value)
        )
        if not target:
            raise UserError(
                f"{source} has no column of numbers: name one with -s data.target=NAME (elman predict: --column NAME)"
            )
        groups: dict[str, Rows] = {}
        for where, row in chain([first], rows):
            groups.setdefault("" if key is None else str(row.get(key)), []).append((where, row))
        for name, group in groups.items():
            yield self._one(name, group, target, beside, time, labels)

    def _one(
        self,
        name: str,
        rows: Rows,
        target: tuple[str, ...],
        beside: tuple[str, ...],
        time: str | None,
        labels: str | None,
    ) -> Series:
        where = rows[0][0]
        if time is not None and not self.uneven:
            _check_steps([str(row.get(time)) for _, row in rows], rows, name)
        label = None if labels is None else _number(where, labels, rows[0][1].get(labels))
        if label is not None and np.isnan(label):
            raise RecordError(where, f"has no {labels!r}: give each series a number")
        columns = [self._column(column, rows) for column in (*target, *beside)]
        table = np.stack(columns, axis=1)
        return Series(name, table[:, : len(target)], table[:, len(target) :], target, label, where)

    def _column(self, name: str, rows: Rows) -> Floats:
        numbers = np.array([_number(where, name, row.get(name)) for where, row in rows])
        gaps = np.isnan(numbers)
        if not gaps.any():
            return numbers
        where = rows[int(gaps.argmax())][0]
        if self.missing == "refuse":
            raise RecordError(
                where,
                f"has no number in the column {name!r}: write one, or say -s data.missing=interpolate "
                "or previous (elman predict: --missing interpolate)",
            )
        known = np.flatnonzero(~gaps)
        if not len(known):
            raise RecordError(where, f"and all rows of its series have no number in the column {name!r}: give some")
        if self.missing == "interpolate":
            return np.asarray(np.interp(np.arange(len(numbers)), known, numbers[known]))
        before = np.searchsorted(known, np.arange(len(numbers)), side="right") - 1
        return np.asarray(numbers[known[np.maximum(before, 0)]])


def _column_named(name: str | None, heading: Sequence[str], source: str) -> str | None:
    """The column of that name, or of that number."""
    if name is None or name in heading:
        return name
    if name.isdecimal() and 1 <= int(name) <= len(heading):
        return heading[int(name) - 1]
    raise UserError(f"{source} has no column {name!r}: {nearest(name, heading)}")


def _with_names(rows: Iterator[tuple[Place, Row]]) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The rows of a table as mappings, by the names in its heading; those of objects as they are.

    In a table of one column an empty line is a step that is missing, and not nothing, as it is in other tables.
    """
    heading: list[str] | None = None
    last = 0
    for where, row in rows:
        if heading is not None and len(heading) == 1:
            yield from ((Place(where.path, line), {heading[0]: ""}) for line in range(last + 1, where.line))
        last = where.line
        if isinstance(row, dict):
            yield where, row
        elif heading is None:
            heading = [cell.strip() for cell in row]
            if all(_may_be_number(cell) for cell in heading):  # a table of numbers alone
                heading = [str(number) for number in range(1, len(row) + 1)]
                yield where, dict(zip(heading, row, strict=True))
        else:
            yield where, dict(zip(heading, row, strict=True))


def _row(item: Any) -> dict[str, Any]:
    """A row of data in memory by the names of its columns, or by their numbers where they have none."""
    if isinstance(item, dict):
        return item
    cells = item if isinstance(item, list | tuple | np.ndarray) else [item]
    return {str(number): cell for number, cell in enumerate(cells, 1)}


def _may_be_number(value: Any) -> bool:
    try:
        _number(None, "", value)
    except UserError:
        return False
    return True


def _number(where: Place | None, name: str, value: Any) -> float:
    """The number in a cell; NaN where there is none."""
    if value is None or (isinstance(value, str) and value.strip().lower() in NOTHING):
        return float("nan")
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):  # the last one is what a tensor of several numbers says
        number = float("inf")
    except OverflowError:  # an integer of hundreds of digits
        number = LARGEST
    if abs(number) >= LARGEST:
        what = "no number" if np.isinf(number) else "too large a number"
        raise RecordError(
            where or Place("the table", 1),
            f"has {reprlib.repr(value)} in the column {name!r}, which is {what}: mend it, or name other columns with "
            "-s data.target=NAME (elman predict: --column NAME)",
        )
    return number


def _check_steps(times: Sequence[str], rows: Rows, name: str) -> None:
    """Refuse times that do not rise in even steps: a network counts steps, not days."""
    moments = [_moment(text) for text in times]
    of = f" of {name!r}" if name else ""
    if all(moment is None for moment in moments):
        return  # names of times, such as Q1: their order is that of the rows
    for moment, text, (place, _) in zip(moments, times, rows, strict=True):
        if moment is None:
            raise RecordError(
                place,
                f"has {text!r} where the others{of} have a time: mend it, or say -s data.uneven=true to count rows "
                "(elman predict: --uneven)",
            )
    steps = np.diff(np.array(moments, np.float64))
    if not len(steps):
        return
    usual = float(np.median(steps))
    odd = np.abs(steps - usual) > max(UNEVEN * abs(usual), 1e-9)
    if usual <= 0 or odd.any():
        raise RecordError(
            rows[1 + int(odd.argmax())][0],
            f"does not follow the row before it{of} in the usual step: sort and fill the rows, say "
            "-s data.uneven=true (elman predict: --uneven) to count rows and not time, or name the column that tells "
            "several series apart with -s data.key=NAME (elman predict: give a file for each)",
        )


def _moment(text: str) -> float | None:
    """A time as a number; None for one that cannot be read.

    >>> _moment("1958.5"), _moment("1970-01-02"), _moment("19700102"), _moment("Q1")
    (1958.5, 1.0, 1.0, None)
    """
    text = text.strip()
    for read in (_days, float) if len(text) == 8 else (float, _days):
        try:
            moment = read(text)
        except (ValueError, OverflowError):
            continue
        return moment if np.isfinite(moment) else None
    return None


def _days(text: str) -> float:
    """Days since 1970; a time of no zone is one of UTC, in which every day has 24 hours."""
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() / 86_400
