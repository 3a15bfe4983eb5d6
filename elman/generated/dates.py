"""Dates as they are written in many languages, and their ISO form: `16. November 2026` becomes `2026-11-16`.

The wording is that of Babel (the extra `demo`), nothing is downloaded. Left out are ways of writing without the whole
year, and those in which numbers could be read as another date: 3/4/2026 is in March here and in April there.
"""

import random
import re
from collections import defaultdict
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from elman.errors import UserError
from elman.records.pairs import Pair
from elman.records.places import Place
from elman.records.splits import split_pairs

if TYPE_CHECKING:
    from babel import Locale
    from babel.dates import DateTimePattern

LOCALE_NAMES = """
    af ar az be bg bn ca cs cy da de el en_GB en_US es et eu fa fi fr ga gl he hi hr hu hy id is it ja ka kk ko lt lv
    mk ms mt nb nl pl pt ro ru sk sl sq sr sv sw ta th tr uk ur uz vi zh
"""
LOCALES = LOCALE_NAMES.split()
SKELETON = re.compile(r"yM+[Ec]*d+")  # the fields that a way of writing has to have, as Babel names its own
QUOTED = re.compile(r"'[^']*'")
DAY_AND_MONTH = re.compile(r"(d+)([^dMLy]*)([ML]+)|([ML]+)([^dMLy]*)(d+)")
DIRECTION_MARKS = str.maketrans("", "", "\u200e\u200f")
FIRST, LAST = date(1900, 1, 1), date(2099, 12, 31)
SIZE = 20_000
MOST = 1_000_000
SHARES = {"dev": 0.05, "test": 0.1}


@dataclass(frozen=True)
class Wording:
    """One way to write a date in one language; `fields` is Babel's pattern, such as `d. MMMM y`."""

    locale: str
    fields: str

    def write(self, day: date) -> str:
        """The date in this wording, with single blanks.

        >>> Wording("de", "EEEE, d. MMMM y").write(date(2026, 11, 16))
        'Montag, 16. November 2026'
        """
        pattern, locale = _parsed(self.locale, self.fields)
        return " ".join(pattern.apply(day, locale).split())


@cache
def wordings() -> tuple[Wording, ...]:
    """The ways of writing a date that can be read in one way only, whatever the language.

    >>> Wording("de", "d. MMMM y") in wordings(), Wording("en_US", "M/d/y") in wordings()
    (True, False)
    """
    every = [Wording(locale, fields) for locale in LOCALES for fields in _patterns(locale)]
    orders: defaultdict[tuple[str, bool], set[str]] = defaultdict(set)
    for wording in every:
        if numeric := _numeric_order(wording.fields):
            orders[numeric[0]].add(numeric[1])
    clear = [w for w in every if not (numeric := _numeric_order(w.fields)) or len(orders[numeric[0]]) == 1]
    return tuple(_unlike(clear))


def date_pairs(count: int = SIZE, seed: int = 0) -> list[Pair]:
    """So many different texts with their dates, of 1900 to 2099; the same arguments give the same pairs.

    >>> import re
    >>> all(re.fullmatch(r"\\d{4}-\\d\\d-\\d\\d", pair.target) for pair in date_pairs(5))
    True
    """
    if not 0 <= count <= MOST:
        raise UserError(f"{count} dates cannot be made: choose up to {MOST:,}")
    generator = random.Random(f"dates {seed}")
    by_language = [list(group) for _, group in groupby(wordings(), key=lambda wording: wording.locale)]
    pairs: dict[str, Pair] = {}
    while len(pairs) < count:
        day = FIRST + timedelta(generator.randint(0, (LAST - FIRST).days))
        wording = generator.choice(generator.choice(by_language))
        text = wording.write(day)
        pairs.setdefault(text, Pair(text, day.isoformat(), Place(f"Babel's {wording.locale} dates", len(pairs) + 1)))
    return list(pairs.values())


def date_parts(count: int = SIZE, seed: int = 0) -> dict[str, list[Pair]]:
    """The pairs as "train", "dev" and "test"; no date of a held-out part stands in training, in any wording."""
    return split_pairs(date_pairs(count, seed), SHARES, by="target", seed=seed)


def _patterns(name: str) -> list[str]:
    """Babel's patterns of a language that have day, month and the whole year, each once, sorted."""
    locale = _locale(name)
    known = [pattern.pattern for pattern in locale.date_formats.values()]
    known += [pattern.pattern for key, pattern in locale.datetime_skeletons.items() if SKELETON.fullmatch(key)]
    return sorted({pattern for pattern in known if _is_whole(pattern)})


def _is_whole(pattern: str) -> bool:
    fields = {"".join(run) for letter, run in groupby(QUOTED.sub("", pattern)) if letter.isascii()}
    return bool(fields & {"y", "yyyy"}) and bool(fields & {"d", "dd"}) and any(f[0] in "ML" for f in fields)


def _numeric_order(pattern: str) -> tuple[tuple[str, bool], str] | None:
    """How a date in figures looks (the mark between day and month, whether the year comes first), and which of day and
    month comes first; None where the month is a word.
    """
    pattern = QUOTED.sub("", pattern).translate(DIRECTION_MARKS)
    match = DAY_AND_MONTH.search(pattern)
    if match is None:
        return None
    month, mark = (match[3], match[2]) if match[1] else (match[4], match[5])
    year_first = pattern.find("y") < min(pattern.find("d"), pattern.find(month[0]))
    return ((mark, year_first), "day" if match[1] else "month") if len(month) < 3 else None


def _unlike(wordings: list[Wording]) -> list[Wording]:
    """Without the wordings that name a month as another wording names another month."""
    months: defaultdict[str, set[int]] = defaultdict(set)
    texts: dict[Wording, list[str]] = {}
    for wording in wordings:
        texts[wording] = [wording.write(date(2026, month, 16)) for month in range(1, 13)]
        for month, text in enumerate(texts[wording], 1):
            months[text].add(month)
    return [wording for wording in wordings if all(len(months[text]) == 1 for text in texts[wording])]


@cache
def _parsed(locale: str, fields: str) -> "tuple[DateTimePattern, Locale]":
    from babel.dates import parse_pattern

    return parse_pattern(fields), _locale(locale)


def _locale(name: str) -> "Locale":
    try:
        from babel import Locale
    except ImportError as error:
        raise UserError("the dates are worded by Babel, which is not installed: pip install elman[demo]") from error
    return Locale.parse(name)
