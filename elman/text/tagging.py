"""A text and its tokens, where they stand, their tags, and the spans that tags write: what a tagger answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from elman.text.spans import Span
from elman.text.words import TOKEN


@dataclass(frozen=True, slots=True)
class TextSpan:
    """One name, date, ...: what it is, the text of it, where that stands (characters), and which tokens it has."""

    type: str
    text: str
    start: int
    end: int
    tokens: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tagging:
    """A text, its tokens, where each of them stands, its tags, and the spans that they write, if they write any.

    >>> tagging = join(["Ask", "Ada", "Lovelace"]).tagged(["O", "B-PERSON", "I-PERSON"], [Span(1, 3, "PERSON")])
    >>> tagging.spans
    (TextSpan(type='PERSON', text='Ada Lovelace', start=4, end=16, tokens=(1, 3)),)
    """

    text: str
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    tags: tuple[str, ...] = ()
    spans: tuple[TextSpan, ...] = ()

    def tagged(self, tags: Sequence[str], spans: Sequence[Span]) -> "Tagging":
        """With tags, and with spans of tokens as spans of the text."""
        text, offsets, found = self.text, self.offsets, []
        for first, last, kind in spans:
            start, end = offsets[first][0], offsets[last - 1][1]
            found.append(TextSpan(kind, text[start:end], start, end, (first, last)))
        return Tagging(text, self.tokens, offsets, tuple(tags), tuple(found))

    def to_dict(self) -> dict[str, Any]:
        """As one line of JSON has it."""
        spans = [{"type": s.type, "text": s.text, "start": s.start, "end": s.end} for s in self.spans]
        return {"text": self.text, "tokens": self.tokens, "offsets": self.offsets, "tags": self.tags, "spans": spans}


def cut(text: str) -> Tagging:
    """A raw text as tokens that know their places: runs of letters and digits, and single other characters.

    >>> cut("Ask Ada.").tokens, cut("Ask Ada.").offsets
    (('Ask', 'Ada', '.'), ((0, 3), (4, 7), (7, 8)))
    """
    offsets = tuple(match.span() for match in TOKEN.finditer(text))
    return Tagging(text, tuple(text[start:end] for start, end in offsets), offsets)


def join(tokens: Sequence[str]) -> Tagging:
    """Ready tokens as a text with blanks between them.

    >>> join(["Ask", "Ada"]).text, join(["Ask", "Ada"]).offsets
    ('Ask Ada', ((0, 3), (4, 7)))
    """
    offsets, start = [], 0
    for token in tokens:
        offsets.append((start, start + len(token)))
        start += len(token) + 1
    return Tagging(" ".join(tokens), tuple(tokens), tuple(offsets))
