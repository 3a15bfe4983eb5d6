"""Transcripts, turn by turn, written in one of three ways.

blocks    a name and a colon on a line of their own, then what is said, then an empty line, as plays are written
names     `Ann: Where to?` a line; an empty line between conversations
lines     what is said alone, a turn a line; an empty line between conversations
"""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from pathlib import Path

from elman.records.lines import FAIL, BadLines, first_lines, read_lines
from elman.records.places import Place

NAME_ALONE = re.compile(r"[^\s:][^:]{0,39}:$")
NAME = re.compile(r"[^\s:][^:]{0,39}:\s+(?=\S)")
FIRST = 20  # lines that show how a file is written
Turn = tuple[Place, str]


def iterate_replies(path: Path, encoding: str = "utf-8", bad: BadLines = FAIL) -> Iterator[tuple[Place, str, str]]:
    """Where each turn stands, what is said, and what is said after it in the same conversation; no names.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "talk.txt"
    >>> _ = place.write_text("Ann: Where to?\\nBob: Home.\\nAnn: So soon?\\n\\nBob: Good morning.\\nAnn: Is it?\\n")
    >>> [(said, reply) for _, said, reply in iterate_replies(place)]
    [('Where to?', 'Home.'), ('Home.', 'So soon?'), ('Good morning.', 'Is it?')]
    """
    for conversation in _conversations(path, encoding, bad):
        for (where, said), (_, reply) in pairwise(conversation):
            yield where, said, reply


def _conversations(path: Path, encoding: str, bad: BadLines) -> Iterator[Iterator[Turn]]:
    head = first_lines(path, encoding, FIRST)
    lines = ((Place(path, number), line.strip()) for number, line in enumerate(read_lines(path, encoding, bad), 1))
    parts = (list(part) for filled, part in groupby(lines, key=lambda one: bool(one[1])) if filled)
    if head and NAME_ALONE.match(head[0].strip()):
        yield _blocks(parts)
        return
    names = all(NAME.match(line.strip()) for line in head)
    for part in parts:
        yield ((where, NAME.sub("", line, count=1) if names and NAME.match(line) else line) for where, line in part)


def _blocks(parts: Iterable[list[Turn]]) -> Iterator[Turn]:
    """Turns of several lines without the names above them; what follows a gap without a name belongs to the same turn.

    A name under which nothing is said is no turn.
    """
    where, said = None, list[str]()
    for part in parts:
        if NAME_ALONE.match(part[0][1]):
            if where is not None and said:
                yield where, " ".join(said)
            where, said, part = part[0][0], [], part[1:]
        said += [line for _, line in part]
    if where is not None and said:
        yield where, " ".join(said)
