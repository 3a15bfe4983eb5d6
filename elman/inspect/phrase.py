"""Some tokens of a text side by side: by their numbers, or as the text writes them."""

import re
from collections.abc import Sequence

from elman.errors import UserError
from elman.files import shortened

RANGE = re.compile(r"\s*(\d+)\s*:\s*(\d+)\s*")
DIGITS = 9  # of the number of a token, at most


def number(digits: str) -> int | None:
    """A number of a token; None where it has more digits than any has.

    >>> number("12"), number("1" * 5000)
    (12, None)
    """
    return int(digits) if len(digits) <= DIGITS else None


def find_phrase(pieces: Sequence[str], phrase: str, spaced: bool) -> tuple[int, int]:
    """Where a phrase stands among the tokens of a text (from 0, the last excluded).

    It is given as "2:4", the second to the fourth token, or as a part of the text; where that stands several times, the
    first counts. `spaced` tokens are words, which a phrase holds as a whole.

    >>> find_phrase(["a", "fine", "film"], "2:3", spaced=True), find_phrase(list("film"), "il", spaced=False)
    ((1, 3), (1, 3))
    >>> find_phrase(["a", "fine", "film"], "fin", spaced=True)
    Traceback (most recent call last):
    elman.errors.UserError: the phrase 'fin' is not in the text: give some of its tokens (a fine film), or START:STOP
    """
    if matched := RANGE.fullmatch(phrase):
        start, stop = number(matched[1]), number(matched[2])
        if start is None or stop is None or not 1 <= start <= stop <= len(pieces):
            raise UserError(f"the phrase {shortened(phrase)} is outside: the tokens count from 1 to {len(pieces)}")
        return start - 1, stop
    blank = " " if spaced else ""
    starts, text = [], ""
    for piece in pieces:
        starts.append(len(text))
        text += piece + blank
    stops = [start + len(piece) for start, piece in zip(starts, pieces, strict=True)]
    wanted = " ".join(phrase.split()) if spaced else phrase
    for haystack, needle in ((text, wanted), (text.lower(), wanted.lower())):
        at = haystack.find(needle) if needle.strip() else -1
        while at >= 0:
            end = at + len(needle)
            if not spaced or (at in starts and end in stops):
                inside = [n for n in range(len(pieces)) if starts[n] < end and at < stops[n]]
                return inside[0], inside[-1] + 1
            at = haystack.find(needle, at + 1)
    shown = text.strip() if len(text) <= 60 else text[:59] + "…"
    raise UserError(
        f"the phrase {shortened(phrase)!r} is not in the text: give some of its tokens ({shown}), or START:STOP"
    )
