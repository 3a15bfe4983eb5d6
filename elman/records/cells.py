"""Numbers and times in the cells of a table."""

import re
import reprlib
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np

from elman.records.places import Place, RecordError
from elman.records.tables import is_missing

NOTHING = ("", "na", "n/a", "nan", "null", "none", ".", "?", "-")
LARGEST = 1e100  # a sum of squares of larger ones may be no number
UNEVEN = 0.1  # of the usual step: months and leap years are as even as a calendar gets, missing rows are not
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+([eE][+-]?[0-9]+)?")
DATE = re.compile(r"([0-9]{4})([-/])([0-9]{1,2})(?:\2([0-9]{1,2}))?")
QUARTER = re.compile(r"([0-9]{4})[-/ ]?[Qq]([1-4])")


def number_of(where: Place | None, name: str, value: Any) -> float:
    """The number in a cell of the column `name`; NaN where there is none.

    >>> number_of(None, "x", "1.5"), number_of(None, "x", "NA")
    (1.5, nan)
    """
    if is_missing(value):
        return float("nan")
    if isinstance(value, str):
        value = value.strip()
        if value.lower() in NOTHING:
            return float("nan")
    try:
        number = float(value) if not isinstance(value, str) or NUMBER.fullmatch(value) else float("inf")
    except (TypeError, ValueError, RuntimeError):  # the last one is what a tensor of several numbers says
        number = float("inf")
    except OverflowError:  # an integer of hundreds of digits
        number = LARGEST
    if abs(number) >= LARGEST:
        what = "no number" if np.isinf(number) else "too large a number"
        comma = isinstance(value, str) and DECIMAL_COMMA.fullmatch(value)
        raise RecordError(
            where or Place("the table", 1),
            f"has {reprlib.repr(value)} in the column {name!r}, which is {what}: "
            f"{'write a point in place of the comma' if comma else 'mend it'}, or name other columns with "
            "-s data.target=NAME (elman predict: --column NAME)",
        )
    return number


def may_be_number(value: Any) -> bool:
    """Whether a cell holds a number, or nothing.

    >>> may_be_number("7"), may_be_number(""), may_be_number("1_000"), may_be_number("high")
    (True, True, False, False)
    """
    try:
        number_of(None, "", value)
    except RecordError:
        return False
    return True


def with_point(cell: str) -> str:
    """A cell with the decimal comma of a table whose columns have no commas between them written as a point.

    >>> with_point("1,5"), with_point("late, again")
    ('1.5', 'late, again')
    """
    return cell.replace(",", ".") if DECIMAL_COMMA.fullmatch(cell.strip()) else cell


def check_steps(times: Sequence[str], places: Sequence[Place], name: str) -> None:
    """Refuse times that do not rise in even steps: a network counts steps, not days."""
    moments = [moment_of(text) for text in times]
    of = f" of {name!r}" if name else ""
    if all(moment is None for moment in moments):
        return  # names of times, such as Q1: their order is that of the rows
    for moment, text, place in zip(moments, times, places, strict=True):
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
            places[1 + int(odd.argmax())],
            f"does not follow the row before it{of} in the usual step: sort and fill the rows, say "
            "-s data.uneven=true (elman predict: --uneven) to count rows and not time, or name the column that tells "
            "several series apart with -s data.key=NAME (elman predict: give a file for each)",
        )


def moment_of(text: str) -> float | None:
    """A time as a number, days since 1970 where it is a date; None for one that cannot be read.

    >>> moment_of("1958.5"), moment_of("1970-01-02"), moment_of("19700102"), moment_of("1970/02"), moment_of("1970-Q2")
    (1958.5, 1.0, 1.0, 31.0, 90.0)
    >>> moment_of("Q1") is None
    True
    """
    text = text.strip()
    for read in (_days, _number) if len(text) == 8 else (_number, _days):
        try:
            moment = read(text)
        except (ValueError, OverflowError):
            continue
        return moment if np.isfinite(moment) else None
    return None


def _number(text: str) -> float:
    if not NUMBER.fullmatch(text):
        raise ValueError
    return float(text)


def _days(text: str) -> float:
    """Days since 1970; a time of no zone is one of UTC, in which every day has 24 hours."""
    if (found := DATE.fullmatch(text)) is not None:  # days need not be told, nor zeros be written
        text = date(int(found[1]), int(found[3]), int(found[4] or 1)).isoformat()
    elif (found := QUARTER.fullmatch(text)) is not None:
        text = date(int(found[1]), 3 * int(found[2]) - 2, 1).isoformat()
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp() / 86_400
