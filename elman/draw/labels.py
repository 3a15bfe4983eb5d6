"""Texts and numbers as they are written on a page, in a picture or in a terminal."""

import math
import re
import unicodedata
from collections.abc import Sequence

_UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


def clean(text: str) -> str:
    r"""A text that every file and every terminal can hold: control characters are drawn, halves of characters replaced.

    >>> clean("a\x00b\r\n\ud800")
    'a␀b␍\n�'
    """
    return _UNWRITABLE.sub(_drawn, text)


def _drawn(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "�"


def label(text: str, longest: int = 0) -> str:
    r"""A token as a label: on one line, what cannot be seen drawn, cut after `longest` characters if given.

    >>> label(" the"), label("a b\n"), label(""), label("internationalisation", 8)
    ('·the', 'a b⏎', '∅', 'interna…')
    """
    text = clean(text).replace("\n", "⏎").replace("\t", "⇥")
    inner = text.strip()
    before = len(text) - len(text.lstrip())
    text = "·" * before + inner + "·" * (len(text) - before - len(inner)) or "∅"
    return text[: longest - 1] + "…" if 0 < longest < len(text) else text


def cells(text: str) -> int:
    """How many places of a fixed width a text takes: two for a Chinese character, none for an accent.

    >>> cells("犬 dog")
    6
    """
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(sign) in "WF" for sign in text)
    return len(text) + wide - sum(unicodedata.combining(sign) > 0 for sign in text)


def number(value: float | None) -> str:
    """A number in three digits, as short as can be.

    >>> number(0.25), number(1234567.0), number(-0.000012345), number(None)
    ('0.25', '1.23e+06', '-1.23e-05', '–')
    """
    if value is None or math.isnan(value):
        return "–"
    if 1000 <= abs(value) < 1e6:
        return f"{value:.0f}"
    return f"{value:.3g}"


def number_columns(rows: Sequence[Sequence[str]], columns: int) -> list[bool]:
    """Which columns of a table hold numbers, and nothing else but blanks and dashes.

    >>> number_columns([["LSTM", "1.48 ± 0.02", "12%"], ["GRU", "1.50", ""]], 3)
    [False, True, True]
    """
    told = [[row[column].strip() for row in rows if row[column].strip()] for column in range(columns)]
    return [bool(texts) and all(_NUMBER.match(text) or text in "–-" for text in texts) for texts in told]


_NUMBER = re.compile(r"[+\-−]?[\d,]*\.?\d+(e[+-]?\d+)?( ?%)?( ?[±x(/].*)?$|inf$|nan$")
