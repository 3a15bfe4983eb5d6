"""Sources that are longer than anything the network has learned from: translated part by part, and said so."""

import re
from collections.abc import Callable

ENDS = re.compile(r"(?<=[.!?…。！？;:])\s+|(?<=[。！？])")
BLANKS = re.compile(r"(?<=\s)(?=\S)")


def windows(text: str, longest: int, count: Callable[[str], int]) -> list[str]:
    """A text in parts of at most `longest` tokens each: at the ends of sentences if that will do, else between words.

    A single word that is longer stays whole. `count` says how many tokens a text has.

    >>> windows("One two. Three four five. Six.", 4, lambda text: len(text.split()))
    ['One two.', 'Three four five. Six.']
    """
    if count(text) <= longest:
        return [text]
    for pattern in (ENDS, BLANKS):
        pieces = [piece.strip() for piece in pattern.split(text) if piece.strip()]
        if len(pieces) > 1:
            break
    else:
        return [text]
    parts: list[str] = []
    for piece in pieces:
        if parts and count(f"{parts[-1]} {piece}") <= longest:
            parts[-1] = f"{parts[-1]} {piece}"
        else:
            parts.append(piece)
    if len(parts) == 1:
        return parts
    return [window for part in parts for window in windows(part, longest, count)]
