"""Texts with headings (`# Title`, `== Title ==`, `= = Title = =`), as pairs: what stands below one, and the heading."""

import re
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from elman.records.lines import FAIL, BadLines, read_lines
from elman.records.places import Place

MARKED = re.compile(r"#{1,6}\s+(?P<title>.*?)\s*#*$")  # Markdown
BETWEEN = re.compile(r"(?P<marks>=(\s?=)*)\s*(?P<title>[^=\s](.*[^=\s])?)\s*(?P=marks)$")  # MediaWiki, WikiText
FENCE = re.compile(r"```|~~~")
WORDS = 50  # of the paragraph, at most


def heading(line: str) -> str | None:
    """The title where a line is a heading.

    >>> heading("## The run"), heading(" = = Career = = "), heading("a = b")
    ('The run', 'Career', None)
    """
    line = line.strip()
    found = MARKED.match(line) or BETWEEN.match(line)
    return found["title"] if found and found["title"] else None


def iterate_headings(path: Path, encoding: str = "utf-8", bad: BadLines = FAIL) -> Iterator[tuple[Place, str, str]]:
    """Where each heading stands, the first 50 words of the paragraph below it, and the heading.

    Headings with nothing below them are passed over, and so is what is fenced in as code.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "guide.md"
    >>> _ = place.write_text("# Guide\\n\\n## Text\\n\\nFiles or folders,\\ngzip too.\\n\\nMore.\\n")
    >>> [(below, title) for _, below, title in iterate_headings(place)]
    [('Files or folders, gzip too.', 'Text')]
    """
    waiting: tuple[Place, str] | None = None
    for kind, part in groupby(_lines(path, encoding, bad), key=lambda one: one[1]):
        if kind == "heading":
            *_, (where, _, title) = part
            waiting = where, title
        elif kind == "text" and waiting is not None:
            below = " ".join(line for _, _, line in part).split()[:WORDS]
            yield waiting[0], " ".join(below), waiting[1]
            waiting = None


def _lines(path: Path, encoding: str, bad: BadLines) -> Iterator[tuple[Place, str, str]]:
    """Lines with what they are: a heading, text, or a gap."""
    fenced = False
    for number, line in enumerate(read_lines(path, encoding, bad), 1):
        where, line = Place(path, number), line.strip()
        if FENCE.match(line):
            fenced = not fenced
            yield where, "gap", ""
        elif fenced or not line:
            yield where, "gap", ""
        elif (title := heading(line)) is not None:
            yield where, "heading", title
        else:
            yield where, "text", line
