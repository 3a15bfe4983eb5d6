"""Colours of numbers and of names: safe for colour-blind eyes, and text on each of them is readable.

A number has one of a few levels, so that a page names its colour by a class and a test can look at all of them. The
scales run from the ground of the page to what stands out on it, so there is one for light pages and one for dark ones.
"""

import math
from dataclasses import dataclass

from elman.draw.panels import Scale

LEVELS = 21  # of the sequential and the diverging scale; the middle of the diverging one is 0
BUCKETS = 6  # colours of whole numbers; those above have the last


@dataclass(frozen=True)
class Palette:
    """The colours of a light or of a dark page, as #rrggbb."""

    sequential: tuple[str, ...]
    """Stops that levels lie between, from the ground of the page."""
    diverging: tuple[str, ...]
    buckets: tuple[str, ...]
    """Green, yellow, red and purple, then blue and grey."""
    names: tuple[str, ...]
    """Of curves, groups and states: each at 3 : 1 or better from the ground."""

    def colour(self, scale: Scale, level: int) -> str:
        """The colour of a level.

        >>> LIGHT.colour("diverging", 10)
        '#f7f7f5'
        """
        if scale == "buckets":
            return self.buckets[level]
        stops = self.sequential if scale == "sequential" else self.diverging
        place = level / (LEVELS - 1) * (len(stops) - 1)
        lower = min(int(place), len(stops) - 2)
        share = place - lower
        pairs = zip(_parts(stops[lower]), _parts(stops[lower + 1]), strict=True)
        return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in pairs)


LIGHT = Palette(
    sequential=("#f7f7f5", "#c3dbee", "#6fa8d6", "#2a6fae", "#0b3a6b"),
    diverging=("#1f5fa8", "#7fb0dc", "#f7f7f5", "#ee9d86", "#b3261e"),
    buckets=("#bfe5b4", "#fbe38a", "#f7a799", "#cfb2f2", "#a9d3f5", "#d3d5d8"),
    names=("#0068a8", "#c44e00", "#00795a", "#a3458a", "#8a6d00", "#4a4fb0", "#8f2d2d", "#55606e"),
)
DARK = Palette(
    sequential=("#1d2127", "#1f3f5f", "#2f6fa6", "#6fb1e6", "#cfe6fa"),
    diverging=("#8ec5fb", "#2f6aa3", "#1d2127", "#a8443a", "#ffa694"),
    buckets=("#1c5f33", "#6b5300", "#96302a", "#643c98", "#1d5a8c", "#4b525b"),
    names=("#6db8f2", "#ff9d5c", "#4fcfa5", "#e79ad0", "#e0c14c", "#a9b0fa", "#f09a9a", "#b4bfcc"),
)


def level(value: float | None, scale: Scale, low: float = 0.0, high: float = 1.0) -> int | None:
    """The level of a number whose scale goes from `low` to `high`, or from -high to high; None where it is no number.

    >>> level(0.5, "sequential"), level(-2.0, "diverging"), level(2.0, "buckets"), level(float("nan"), "sequential")
    (10, 0, 2, None)
    """
    if value is None or math.isnan(value):
        return None
    if scale == "buckets":
        return int(min(max(value, 0), BUCKETS - 1))
    if scale == "diverging":
        low = -high
    share = (min(max(value, low), high) - low) / (high - low) if high > low else 0.0
    return round(share * (LEVELS - 1))


def ink(ground: str) -> str:
    """Black or white: what is read more easily on a colour.

    >>> ink("#fbe38a"), ink("#0b3a6b")
    ('#000000', '#ffffff')
    """
    return max("#000000", "#ffffff", key=lambda colour: contrast(colour, ground))


def contrast(one: str, other: str) -> float:
    """How far apart two colours are for the eye, from 1 to 21, as WCAG 2 has it.

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    shares = [part / 255 for part in _parts(colour)]
    linear = [share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _parts(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
