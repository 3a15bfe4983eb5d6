"""Some tokens of a text side by side: by their numbers, or as the text writes them."""

import re
from collections.abc import Sequence

from elman.errors import UserError

RANGE = re.compile(r"\s*(\d+)\s*:\s*(\d+)\s*")


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
        start, stop = int(matched[1]), int(matched[2])
        if not 1 <= start <= stop <= len(pieces):
            raise UserError(f"the phrase {phrase} is outside: the tokens count from 1 to {len(pieces)}")
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
    raise UserError(f"the phrase {phrase!r} is not in the text: give some of its tokens ({shown}), or START:STOP")
