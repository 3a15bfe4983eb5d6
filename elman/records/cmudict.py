"""The format of the CMU pronouncing dictionary: a word a line, then its sounds (`tomato T AH0 M EY1 T OW2`).

A further way to say it stands as `tomato(2)`; what follows a blank and `#` is a comment.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from elman.records.lines import FAIL, BadLines, numbered, read_lines
from elman.records.places import Place, RecordError

ANOTHER = re.compile(r"\(\d+\)$")  # the mark of a further pronunciation
STRESS = re.compile(r"(?<=[A-Z])[0-2](?= |$)")


def iterate_pronunciations(
    path: Path, *, stress: bool = True, encoding: str = "utf-8", bad: BadLines = FAIL
) -> Iterator[tuple[Place, str, str]]:
    """Where each line stands, the word in lower case, and its sounds with blanks between them.

    A further pronunciation comes as a line of its own with the same word. Without `stress` the vowels lose their
    digits (1 main stress, 2 second, 0 none), and some pronunciations become the same.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "small.dict"
    >>> _ = place.write_text("tomato T AH0 M EY1 T OW2\\ntomato(2) T AH0 M AA1 T OW2 # British\\n")
    >>> [(word, sounds) for _, word, sounds in iterate_pronunciations(place, stress=False)]
    [('tomato', 'T AH M EY T OW'), ('tomato', 'T AH M AA T OW')]
    """
    for where, line in numbered(path, read_lines(path, encoding, bad)):
        entry = "" if line.startswith(";;;") else line.partition(" #")[0]
        word, *sounds = entry.split() or [""]
        if not word:
            continue
        if not sounds:
            bad(RecordError(where, f"has no sounds after {word!r}: write them, or remove the line"))
            continue
        said = " ".join(sounds)
        yield where, ANOTHER.sub("", word).lower(), said if stress else STRESS.sub("", said)
