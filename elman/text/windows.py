"""Texts that are longer than anything a network has learned from, cut into parts that it is used to."""

import re
from collections.abc import Callable

ENDS = re.compile(r"[.!?…;:]+\s+|[。！？]+\s*")
BLANKS = re.compile(r"\s+")


def windows(text: str, longest: int, count: Callable[[str], int], *, inside: bool = False) -> list[str]:
    """A text in parts of at most `longest` tokens each: at the ends of sentences if that will do, else between words.

    A single word that is longer stays whole, unless it may be cut `inside` too. `count` says how many tokens a text
    has.

    >>> windows("One two. Three four five. Six.", 4, lambda text: len(text.split()))
    ['One two.', 'Three four five. Six.']
    >>> windows("abcdefg hi", 4, len), windows("abcdefg hi", 4, len, inside=True)
    (['abcdefg', 'hi'], ['abc', 'defg', 'hi'])
    """
    text = text.strip()
    tokens = count(text)
    if tokens <= longest:
        return [text]
    for pattern in (ENDS, BLANKS):
        cuts = [found.end() for found in pattern.finditer(text) if found.end() < len(text)]
        if cuts:
            break
    else:
        if not inside or len(text) < 2:
            return [text]
        cuts = [len(text) // 2]
    even = -(-tokens // -(-tokens // longest))  # so that the last part is not a word or two
    parts = _filled(text, cuts, longest if pattern is ENDS else even, count)
    return [window for part in parts for window in windows(part, longest, count, inside=inside)]


def _filled(text: str, cuts: list[int], most: int, count: Callable[[str], int]) -> list[str]:
    """A text that is too long, cut at some of the places: as many pieces in a part as make `most` tokens."""
    parts, first, last = [], 0, cuts[0]
    for cut in [*cuts[1:], len(text)]:
        if count(text[first:cut].strip()) > most:
            parts.append(text[first:last])
            first = last
        last = cut
    return [*parts, text[first:]]
