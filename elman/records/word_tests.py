"""What word vectors are tested with: analogies by section, and pairs of words that people have said the likeness of."""

import csv
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from elman.errors import UserError
from elman.records.running_text import TextFiles


@dataclass(frozen=True)
class Analogies:
    """Questions by section: a is to b as c is to the fourth."""

    name: str
    sections: dict[str, list[tuple[str, str, str, str]]]


@dataclass(frozen=True)
class Similarities:
    """Pairs of words and how alike people find them."""

    name: str
    pairs: list[tuple[str, str, float]]


WordTest = Analogies | Similarities


def read_word_test(path: Path, encoding: str = "utf-8") -> WordTest:
    """A file of analogies as that of word2vec has them (`: section`, then four words a line), or of pairs.

    Pairs are two words and a number, parted by tabs, commas or blanks; the number is the first of a row, and a row
    without one may stand at the top.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "pairs.csv"
    >>> _ = place.write_text("Word 1,Word 2,Human (mean)\\ntiger,cat,7.35\\n")
    >>> read_word_test(place).pairs
    [('tiger', 'cat', 7.35)]
    """
    text = "".join(TextFiles([path], encoding).blocks())
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    lines = [(number, line) for number, line in lines if not line.startswith("#")]
    if not lines:
        raise UserError(f"{path} is empty: give analogies, or pairs of words with a number")
    if lines[0][1].startswith(":"):
        return Analogies(path.name, _sections(path, lines))
    return Similarities(path.name, list(_pairs(path, lines)))


def _sections(path: Path, lines: Sequence[tuple[int, str]]) -> dict[str, list[tuple[str, str, str, str]]]:
    sections: dict[str, list[tuple[str, str, str, str]]] = {}
    name = ""
    for number, line in lines:
        if line.startswith(":"):
            name = line[1:].strip()
            continue
        words = line.split()
        if len(words) != 4:
            raise UserError(f"{path}:{number} has {len(words)} words: an analogy is four")
        sections.setdefault(name, []).append((words[0], words[1], words[2], words[3]))
    if not sections:
        raise UserError(f"{path} has sections and no analogies: give four words a line")
    return sections


def _pairs(path: Path, lines: Sequence[tuple[int, str]]) -> Iterator[tuple[str, str, float]]:
    first = lines[0][1]
    mark = "\t" if "\t" in first else "," if "," in first else None
    for place, (number, line) in enumerate(lines):
        cells = line.split() if mark is None else next(csv.reader([line], delimiter=mark))
        cells = [cell.strip() for cell in cells]
        scores = [score for cell in cells[2:] if (score := _number(cell)) is not None]
        if len(cells) < 3 or not scores or not cells[0] or not cells[1]:
            if place == 0 and len(lines) > 1:
                continue  # a heading
            raise UserError(f"{path}:{number} is not two words and a number: mend it, or give analogies (`: section`)")
        yield cells[0], cells[1], scores[0]


def _number(cell: str) -> float | None:
    with suppress(ValueError):
        return value if math.isfinite(value := float(cell)) else None
    return None
