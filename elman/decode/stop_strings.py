"""Ending a streamed text before a given string, although the string may arrive in pieces."""

from collections.abc import Iterable

from elman.errors import UserError


class StopStrings:
    """Passes streamed text on until one of `stops` is complete, and never a character of that one.

    What could be the beginning of a stop string is held back until the next piece decides. The text is cut
    where the stop string that is complete first begins (the longest, if several end there), so the result
    does not depend on how the text was divided.

    >>> stop = StopStrings(["<end>"])
    >>> [stop.push(piece) for piece in ["a <b", "> c <e", "nd> d", "e"]]
    ['a <b', '> c ', '', '']
    >>> stop.stopped
    True

    At the end of the text `flush` gives what was held back in vain:

    >>> stop = StopStrings(["<end>"])
    >>> stop.push("a <en"), stop.flush()
    ('a ', '<en')
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self.stops = (stops,) if isinstance(stops, str) else tuple(stops)
        if not all(isinstance(stop, str) for stop in self.stops):
            raise TypeError(f"stop strings are texts, not {self.stops!r}")
        if "" in self.stops:
            raise UserError("a stop string must have at least one character: leave the empty one out")
        self.stopped = False
        self._held = ""

    def push(self, piece: str) -> str:
        """Take the next piece of the text and give what may be shown by now."""
        if self.stopped:
            return ""
        text = self._held + piece
        found = [(start + len(stop), start) for stop in self.stops if (start := text.find(stop)) >= 0]
        if found:
            self.stopped, self._held = True, ""
            return text[: min(found)[1]]
        shown = len(text) - self._open_suffix(text)
        self._held = text[shown:]
        return text[:shown]

    def flush(self) -> str:
        """Give what is still held back, once the text has ended."""
        rest, self._held = self._held, ""
        return rest

    def _open_suffix(self, text: str) -> int:
        """The length of the longest end of `text` that one of the stop strings begins with."""
        longest = min(len(text), max(map(len, self.stops), default=0))
        return next((n for n in range(longest, 0, -1) if any(s.startswith(text[-n:]) for s in self.stops)), 0)
