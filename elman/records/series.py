"""Numbers over time, from tables: one series or several, with or without a column of times."""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman.errors import UserError, nearest
from elman.records.cells import LARGEST, check_steps, may_be_number, number_of, with_point
from elman.records.decoding import check_encoding
from elman.records.lines import FAIL, BadLines, read_lines
from elman.records.memory import read_items
from elman.records.paths import Paths, expand
from elman.records.places import Place, RecordError
from elman.records.reader import Files
from elman.records.tables import SNIFFED, Row, check_names, delimiter_of, is_missing, read_rows, table_format

Floats = NDArray[np.float64]
Rows = list[tuple[Place, dict[str, Any]]]
Missing = Literal["refuse", "previous", "interpolate"]
TIMES = ("time", "date", "datetime", "timestamp", "ds", "step", "year", "month", "week", "day", "hour", "quarter")
TARGET_OPTION = "-s data.target=NAME (elman predict: --column NAME)"


class SeriesColumns(NamedTuple):
    """Which columns of a table are what, by their names; `named` where they have names, and not their numbers alone."""

    target: tuple[str, ...] = ()
    covariates: tuple[str, ...] = ()
    time: str | None = None
    key: str | None = None
    label: str | None = None
    left_out: tuple[str, ...] = ()
    """Those of text, where what is forecast was found and not told."""
    named: bool = True

    def kept(self, *, time: bool) -> dict[str, Any]:
        """What other tables are read by: these names, that of the time where it was told; nothing without names."""
        names = {"target": self.target, "covariates": self.covariates, "key": self.key, "label": self.label}
        return (names | ({"time": self.time} if time else {})) if self.named and self.target else {}


@dataclass(frozen=True, eq=False)
class Series:
    """One series: T steps of numbers to forecast, others beside them, and a number for the whole where it has one."""

    name: str
    values: Floats
    """T x C."""
    covariates: Floats
    """T x K."""
    columns: SeriesColumns = field(default_factory=SeriesColumns)
    """Those of the table that it comes from."""
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
        except (TypeError, ValueError, OverflowError):
            raise UserError("a series is a list of numbers: give each step as a number, or as a row of them") from None
        if table.ndim == 0:
            raise UserError("a series is a list of numbers, at least one: give each step as one, or as a row of them")
        table = table[:, None] if table.ndim == 1 else table
        if not table.size or table.shape[1:] != (width,):
            shape = " x ".join(map(str, table.shape))
            raise UserError(f"a series is rows of {width} finite numbers each, at least one: give such, not {shape}")
        wrong = ~(np.abs(table) < LARGEST)
        if wrong.any():
            step = int(wrong.any(axis=1).argmax())
            value = table[step][wrong[step]][0]
            raise UserError(
                f"a series is finite numbers, and step {step + 1} of {len(table)} is {value:g}: put one there"
            )
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
        self.option = TARGET_OPTION

    def files(self, paths: Paths) -> Files[Series]:
        """The series of some tables."""
        places = expand(paths)
        return Files(places, "csv", "series", partial(self._read, places))

    def _read(self, paths: list[Path], bad: BadLines) -> Iterator[Series]:
        reader, names = self, set[str]()
        for path in paths:
            lines = read_lines(path, self.encoding, bad)
            rows = _rows(path, lines, table_format(path) or "csv", bad)
            for one in reader._series(rows, str(path), reader.label):
                reader = reader._knowing(one.columns)  # other files are read by the names of the first
                name = one.name or Path(path.name.removesuffix(".gz")).stem
                others = (f"{name} ({number})" for number in range(2, len(names) + 3))
                name = next(other for other in chain([name], others) if other not in names)
                names.add(name)
                yield replace(one, name=name)

    def _knowing(self, columns: SeriesColumns) -> "SeriesReader":
        reader = copy(self)
        reader.__dict__ |= columns.kept(time=self.time is not None)
        return reader

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
        if bad.skips:
            raise UserError("a row of a series cannot be left out, as all after it would move: leave --on-error out")
        reader = copy(self)
        reader.option = "--column NAME" if len(self.target) < 2 else "its own name in the table"
        if column is not None:
            reader.target = (str(column),)
        return reader._series(_rows(where, lines, format or table_format(where) or "csv", bad), str(where))

    def objects(self, data: Iterable[Any], name: str = "train") -> Iterator[Series]:
        """The series of data in memory: a data frame, mappings, numbers, or rows of numbers."""
        return self._series(_items(data, self.time, name), name, self.label)

    def given(self, data: Any, channels: int, width: int) -> tuple[list[Series], bool]:
        """What a forecast is asked for: a series as numbers or as a `Series`; or several, as is then said, in a list
        of such, in a data frame or in mappings."""
        first = data[0] if isinstance(data, list) and data else data
        if isinstance(first, Series):
            return (data, True) if isinstance(data, list) else ([data], False)
        if isinstance(first, dict) or hasattr(data, "columns"):
            reader = copy(self)
            reader.option = "its own name, or give its numbers alone"
            return list(reader._series(_items(data, self.time, "the data"), "the data")), True
        return [Series.of(data, channels, width)], False

    def _series(
        self, rows: Iterable[tuple[Place, dict[str, Any]]], source: str, label: str | None = None
    ) -> Iterator[Series]:
        rows = iter(rows)
        first = next(rows, None)
        if first is None:
            raise UserError(f"{source} holds no rows: give a heading and at least two")
        columns = self._columns(first[1], source, label)
        groups: dict[str, Rows] = {}
        for where, row in chain([first], rows):
            name = "" if columns.key is None else row.get(columns.key)
            if columns.key is not None and (is_missing(name) or not str(name).strip()):
                raise RecordError(where, f"has no {columns.key!r}, which tells series apart: write it in every row")
            groups.setdefault(str(name), []).append((where, row))
        for name, group in groups.items():
            yield self._one(name, group, columns)

    def _columns(self, first: dict[str, Any], source: str, label: str | None) -> SeriesColumns:
        """Which columns are what, as told, else as the first row shows."""
        heading, told = list(first), [*self.target, *self.covariates]
        if _is_numbered(heading) and len(heading) == len(told) and not {*told} & {*heading} and not (self.key or label):
            count = len(self.target)  # a table without names, of as many columns: they are those, in this order
            return SeriesColumns(tuple(heading[:count]), tuple(heading[count:]), named=False)
        named = partial(_column_named, heading=heading, source=source)
        key, labels = named(self.key), named(label)
        beside = tuple(str(named(name)) for name in self.covariates)
        target = tuple(str(named(name, option=self.option)) for name in self.target)
        others = {key, labels or _found(self.label, heading), *beside}
        time = named(self.time) or next(
            (name for name in heading if name.lower() in TIMES and name not in {*target, *others}), None
        )
        free = [name for name in heading if name not in others and name != time]
        left_out = () if target else tuple(name for name in free if not may_be_number(first[name]))
        target = target or tuple(name for name in free if name not in left_out)
        if not target:
            raise UserError(f"{source} has no column of numbers: name one with {TARGET_OPTION}")
        roles = [name for name in (*target, *beside, time, key, labels) if name is not None]
        if (twice := next((name for name in roles if roles.count(name) > 1), None)) is not None:
            raise UserError(
                f"{source}: the column {twice!r} is two things at once (data.target, data.covariates, data.time, "
                "data.key, data.label): name another for one of them"
            )
        named_ones = not _is_numbered([name for name in heading if name != time])
        return SeriesColumns(target, beside, time, key, labels, left_out, named_ones)

    def _one(self, name: str, rows: Rows, columns: SeriesColumns) -> Series:
        where = rows[0][0]
        if columns.time is not None and not self.uneven:
            check_steps([str(row.get(columns.time)) for _, row in rows], [place for place, _ in rows], name)
        label = None
        if (labels := columns.label) is not None:
            numbers = (number_of(place, labels, row.get(labels)) for place, row in rows)
            label = next((number for number in numbers if not np.isnan(number)), None)
            if label is None:
                raise RecordError(where, f"has no {labels!r}, nor has another row of its series: give each a number")
        table = np.stack([self._column(column, rows) for column in (*columns.target, *columns.covariates)], axis=1)
        channels = len(columns.target)
        return Series(name, table[:, :channels], table[:, channels:], columns, label, where)

    def _column(self, name: str, rows: Rows) -> Floats:
        numbers = np.array([number_of(where, name, row.get(name)) for where, row in rows])
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


def _column_named(name: str | None, heading: Sequence[str], source: str, option: str = "") -> str | None:
    """The column of that name, or of that number; `option` is how another is named."""
    if name is None:
        return None
    found = _found(name, heading)
    if found is None:
        another = f"; name the one that is meant: {option}" if option else ""
        raise UserError(f"{source} has no column {name!r}: {nearest(name, heading)}{another}")
    return found


def _found(name: str | None, heading: Sequence[str]) -> str | None:
    """The column of that name, or of that number, where there is one."""
    if name is None or name in heading:
        return name
    place = int(name) if name.isascii() and name.isdecimal() and len(name) < 10 else 0
    return heading[place - 1] if 1 <= place <= len(heading) else None


def _is_numbered(heading: Sequence[str]) -> bool:
    """Whether columns have their numbers for names, since they have none of their own."""
    return list(heading) == [str(number) for number in range(1, len(heading) + 1)]


def _rows(path: Path, lines: Iterable[str], format: Any, bad: BadLines) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The rows of a table by the names of their columns; between columns without commas, these are decimal ones."""
    lines = iter(lines)
    head = list(islice(lines, SNIFFED))
    commas = format == "tsv" or (format == "csv" and delimiter_of(head) != ",")
    return _with_names(read_rows(path, chain(head, lines), format, bad), commas)


def _with_names(rows: Iterator[tuple[Place, Row]], commas: bool) -> Iterator[tuple[Place, dict[str, Any]]]:
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
            continue
        row = [with_point(cell) for cell in row] if commas else row
        if heading is None:
            numbers = [str(number) for number in range(1, len(row) + 1)]
            if not all(map(may_be_number, row)):
                heading = [cell.strip() or number for cell, number in zip(row, numbers, strict=True)]
                check_names(str(where), heading)
                continue
            heading = numbers  # a table of numbers alone
        yield where, dict(zip(heading, row, strict=True))


def _items(data: Any, time: str | None, name: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    """The rows of data in memory; times that are the index of a data frame are a column of it."""
    index = getattr(data, "index", None)
    if type(index).__name__ in ("DatetimeIndex", "PeriodIndex"):  # pandas'
        data = data if hasattr(data, "columns") else data.to_frame("1" if data.name is None else data.name)
        known = {str(column) for column in data.columns}
        if time not in known and not {column.lower() for column in known} & {*TIMES}:
            data = data.reset_index(names="time" if time is None else time)
    return ((where, _row(item)) for where, item in read_items(data, name))


def _row(item: Any) -> dict[str, Any]:
    """A row of data in memory by the names of its columns, or by their numbers where they have none."""
    if isinstance(item, dict):
        return {str(name): cell for name, cell in item.items()}
    cells = item if isinstance(item, list | tuple | np.ndarray) else [item]
    return {str(number): cell for number, cell in enumerate(cells, 1)}
