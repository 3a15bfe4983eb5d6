"""Pre-trained word vectors in the text formats of word2vec and GloVe: a word and its numbers a line.

word2vec's files begin with a line of two numbers, how many words and how many dimensions; GloVe's do not.
"""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError
from elman.files import reading


class WordVectors(NamedTuple):
    """Words and a row of numbers for each."""

    words: list[str]
    matrix: NDArray[np.float32]


def read_vectors(
    path: Path | str, *, first: int | None = None, wanted: Collection[str] = (), lowercase: bool = False
) -> WordVectors:
    """The vectors of the first so many words of a file (all where `first` is None), and of the `wanted` ones.

    Files begin with the frequent words, so `first` is a way to keep memory small. With `lowercase`, words are taken
    in small letters, and of several spellings the first counts.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = place.write_text("3 2\\nthe 0.5 1\\ncat -1 2\\nThe 0 0\\n")
    >>> read_vectors(place, first=1, wanted={"cat"}).words
    ['the', 'cat']
    >>> read_vectors(place, lowercase=True).matrix.tolist()
    [[0.5, 1.0], [-1.0, 2.0]]
    """
    path = Path(path)
    rows: dict[str, NDArray[np.float32]] = {}
    size = taken = 0
    for number, line in _lines(path):
        word, _, rest = line.partition(" ")
        size = size or len(rest.split())
        taken += 1
        if lowercase:
            word = word.lower()
        if first is not None and taken > first and word not in wanted:
            continue
        found, vector = _parse(path, number, line, size)
        rows.setdefault(found.lower() if lowercase else found, vector)
    if not rows:
        raise UserError(f"{path} has none of the words that are looked for: give a file of word vectors as text")
    return WordVectors(list(rows), np.stack(list(rows.values())))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that hold a word, with their numbers."""
    try:
        with (
            reading(path, missing=f"no word vectors at {path}: name a file with text.vectors"),
            path.open(encoding="utf-8", errors="replace", newline="\n") as file,
        ):
            for number, raw in enumerate(file, 1):
                line = raw.rstrip(" \r\n")
                if line and not (number == 1 and _is_heading(line)):
                    yield number, line
    except ValueError as error:  # a name with a NUL in it
        raise UserError(f"cannot read the word vectors {str(path)!r}: {error}; name a file with text.vectors") from None


def _is_heading(line: str) -> bool:
    parts = line.split()
    return len(parts) == 2 and all(part.isdecimal() for part in parts)


def _parse(path: Path, number: int, line: str, size: int) -> tuple[str, NDArray[np.float32]]:
    """The word, which may hold blanks, and its vector."""
    word, *numbers = line.rsplit(" ", size)
    try:
        vector = np.array(numbers, dtype=np.float32)
    except ValueError:
        vector = np.zeros(0, np.float32)
    if not size or len(vector) != size or not np.isfinite(vector).all():
        raise UserError(f"{path}:{number} is not a word with {size or 'some'} numbers behind it: mend or remove it")
    return word, vector
