"""Lines with the lines that they become (a sentence and its translation, a word and its sounds), one pair at a time.

parallel   two files, line i of one belongs to line i of the other     train.de train.en
tsv        two columns with a tab between them, quotes are characters  fra.txt
csv        two columns of a table                                      pairs.csv
jsonl      two fields                                                  pairs.jsonl
cmudict    a word and its sounds                                       cmudict.dict
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Literal, get_args

from elman.errors import UserError, nearest
from elman.files import write_aside
from elman.records.cmudict import iterate_pronunciations
from elman.records.decoding import check_encoding
from elman.records.lines import FAIL, BadLines, first_lines, first_look, read_lines
from elman.records.sides import Sides
from elman.records.tables import Column, json_objects, json_text, table_kind, table_rows

Format = Literal["parallel", "tsv", "csv", "jsonl", "cmudict"]
SUFFIXES: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
FIRST = 20  # lines that are looked at where the name of a file does not tell how it is written


@dataclass(frozen=True, slots=True)
class Pair:
    """A line and the line that it becomes; where they stand (`file:line`) does not make two pairs different.

    >>> Pair("Go.", "Va !", "fra.txt:1") == Pair("Go.", "Va !", "fra.txt:9")
    True
    """

    source: str
    target: str
    where: str = field(default="", compare=False)


@dataclass(frozen=True)
class Pairs:
    """The pairs of some files, and how many were met that are not among them or among them twice.

    `empty` pairs lack a side and are left out; `duplicates` repeat an earlier pair, and are left out where `dropped`.
    """

    pairs: list[Pair]
    empty: int = 0
    duplicates: int = 0
    dropped: bool = False
    where: str = ""

    @property
    def said(self) -> list[str]:
        """What the user should be told, a sentence each.

        >>> Pairs([], empty=1, duplicates=2, where="train.tsv").said
        ['train.tsv: 1 pair with an empty side is left out', 'train.tsv: 2 pairs repeat earlier ones, and are kept']
        """
        sentences = []
        if self.empty:
            verb = "is" if self.empty == 1 else "are"
            sentences.append(f"{self.where}: {_count(self.empty)} with an empty side {verb} left out")
        if self.duplicates:
            repeat = "repeats an earlier one, and is" if self.duplicates == 1 else "repeat earlier ones, and are"
            done = "left out" if self.dropped else "kept"
            sentences.append(f"{self.where}: {_count(self.duplicates)} {repeat} {done}")
        return sentences


class PairFiles:
    """The pairs of one file, of several, or of two parallel files; read anew each time, in order.

    `format` is guessed from the names and the first lines where it is not given. `source` and `target` choose the
    sides, and so the direction: columns by name or by number from 1, fields of JSON lines by name, parallel files by
    number or by how they end (`de`, `en`). Where they are missing they are guessed, and `guess` is the sentence that
    says so; of parallel files the first is the source. `stress=False` takes the stress digits from the sounds of a
    pronouncing dictionary.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.de").write_text("Ein Hund.\\nZwei Katzen.\\n")
    >>> _ = (folder / "train.en").write_text("A dog.\\nTwo cats.\\n")
    >>> files = PairFiles([folder / "train.de", folder / "train.en"], source="en", target="de")
    >>> [(pair.source, pair.target) for pair in files.records()]
    [('A dog.', 'Ein Hund.'), ('Two cats.', 'Zwei Katzen.')]
    """

    def __init__(
        self,
        paths: Path | str | Sequence[Path | str],
        *,
        format: Format | None = None,
        source: Column = None,
        target: Column = None,
        stress: bool = True,
        encoding: str = "utf-8",
    ) -> None:
        named = [paths] if isinstance(paths, (str, Path)) else list(paths)
        self.paths = [Path(name) for name in named]
        self.encoding, self.stress = check_encoding(encoding), stress
        self.format = _checked_format(self.paths, format, self.encoding)
        if not stress and self.format != "cmudict":
            raise UserError(
                f"-s data.stress=false is for pronouncing dictionaries, and {self.paths[0]} is none: leave it out"
            )
        self.sides = self._find_sides(source, target)

    @property
    def guess(self) -> str:
        """What was guessed about the sides, as a sentence for the user; empty where nothing was."""
        return self.sides.guess

    def records(self, bad: BadLines = FAIL) -> Iterator[Pair]:
        """All pairs, those with an empty side too; what happens to a line that cannot be read is for `bad` to say."""
        for where, source, target in self._read(bad):
            yield Pair(source.strip(), target.strip(), where)

    def _find_sides(self, source: Column, target: Column) -> Sides:
        first = self.paths[0]
        if self.format == "parallel":
            return Sides.of_files(self.paths[:2], source, target)
        if self.format == "jsonl":
            return first_look(
                lambda bad: Sides.of_objects(first, json_objects(first, self._lines(first, bad), bad), source, target)
            )
        if self.format in ("csv", "tsv"):
            return first_look(lambda bad: Sides.of_table(first, self._rows(first, bad), source, target))
        if (source, target) in ((None, None), (1, 2)):
            return Sides(1, 2)
        if (source, target) == (2, 1):
            return Sides(2, 1)
        raise UserError(
            f"{first} has words in column 1 and sounds in column 2: "
            "give -s data.source=1 -s data.target=2, or the other way round"
        )

    def _lines(self, path: Path, bad: BadLines) -> Iterator[str]:
        return read_lines(path, self.encoding, bad)

    def _rows(self, path: Path, bad: BadLines) -> Iterator[tuple[str, list[str]]]:
        lines = self._lines(path, bad)
        return table_rows(path, lines, f".{self.format}", bad, quotes=self.format == "csv")

    def _read(self, bad: BadLines) -> Iterator[tuple[str, str, str]]:
        """Where each pair stands, its source and its target."""
        if self.format == "parallel":
            for two in zip(self.paths[::2], self.paths[1::2], strict=True):
                yield from self._read_parallel(two, bad)
            return
        for path in self.paths:
            if self.format == "cmudict":
                found = iterate_pronunciations(path, stress=self.stress, encoding=self.encoding, bad=bad)
                backwards = self.sides.source == 2
                yield from ((where, said, word) if backwards else (where, word, said) for where, word, said in found)
            elif self.format == "jsonl":
                yield from self._read_objects(path, bad)
            else:
                yield from self.sides.cells(path, self._rows(path, bad))

    def _read_parallel(self, two: tuple[Path, Path], bad: BadLines) -> Iterator[tuple[str, str, str]]:
        source, target = two if self.sides.source == 1 else two[::-1]
        lines = zip_longest(self._lines(source, bad), self._lines(target, bad))
        for number, (one, other) in enumerate(lines, 1):
            if one is None or other is None:
                _refuse_lengths((source, target), number - 1, 1 + sum(1 for _ in lines), longer=one is None)
            yield f"{source}:{number}", one, other

    def _read_objects(self, path: Path, bad: BadLines) -> Iterator[tuple[str, str, str]]:
        source, target = str(self.sides.source), str(self.sides.target)
        for where, value in json_objects(path, self._lines(path, bad), bad):
            try:
                found = json_text(where, value, source), json_text(where, value, target)
            except UserError as error:
                bad(error)
            else:
                yield where, *found


def read_pairs(files: PairFiles, bad: BadLines = FAIL, *, drop_duplicates: bool = False) -> Pairs:
    """All pairs of some files that have both sides, of which there must be at least one.

    A pair that repeats an earlier one is counted, and left out where `drop_duplicates` says so.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "fra.txt"
    >>> _ = place.write_text("Go.\\tVa !\\nGo.\\tVa !\\nRun!\\t\\n")
    >>> found = read_pairs(PairFiles(place), drop_duplicates=True)
    >>> len(found.pairs), found.duplicates, found.empty
    (1, 1, 1)
    """
    pairs: list[Pair] = []
    met: set[Pair] = set()
    empty = duplicates = 0
    for pair in files.records(bad):
        if not pair.source or not pair.target:
            empty += 1
            continue
        again = pair in met
        duplicates += again
        met.add(pair)
        if not (again and drop_duplicates):
            pairs.append(pair)
    if not pairs:
        raise UserError(f"{files.paths[0]} holds no pairs: give a file with at least one that has both sides")
    return Pairs(pairs, empty, duplicates, drop_duplicates, files.paths[0].name)


def references(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    """Each source once, in the order of the pairs, with all its different targets: one to read, several to be right.

    >>> references([Pair("tomato", "T EY"), Pair("go", "G OW"), Pair("tomato", "T AA")])
    {'tomato': ['T EY', 'T AA'], 'go': ['G OW']}
    """
    found: dict[str, dict[str, None]] = {}
    for pair in pairs:
        found.setdefault(pair.source, {})[pair.target] = None
    return {source: list(targets) for source, targets in found.items()}


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as a table that `PairFiles` reads: a header, then source, tab, target."""
    with write_aside(path) as aside, aside.open("w", encoding="utf-8", newline="") as out:
        out.write("source\ttarget\n")
        for pair in pairs:
            if any(mark in pair.source + pair.target for mark in "\t\n\r"):
                raise UserError(f"the pair {pair.source!r} has a tab or a line end in it: replace it by a blank")
            out.write(f"{pair.source}\t{pair.target}\n")


def _refuse_lengths(two: tuple[Path, Path], common: int, more: int, longer: bool) -> None:
    """`longer`: whether it is the second of the two that goes on."""
    long, short = two[longer], two[not longer]
    raise UserError(
        f"{long} is longer than {short} by {more} line{'s' * (more > 1)} ({common + more} and {common}): "
        "line i of one belongs to line i of the other, so add what is missing or remove what is too much"
    )


def _checked_format(paths: list[Path], format: Format | None, encoding: str) -> Format:
    if not paths:
        raise UserError("no file of pairs was named: give two parallel files, or one with a pair a line")
    if format is not None and format not in get_args(Format):
        raise UserError(f"there is no format {format!r}: {nearest(format, get_args(Format))}")
    for path in paths:
        if path.is_dir():
            raise UserError(f"{path} is a folder: name the files of pairs in it")
        if not path.exists():
            raise UserError(f"no such file: {path}")
    found = format or _guess_format(paths, encoding)
    if found == "parallel" and len(paths) % 2:
        raise UserError(f"{paths[-1]} has no file beside it: parallel files come in twos, the sources and the targets")
    return found


def _guess_format(paths: list[Path], encoding: str) -> Format:
    formats = {_named_format(path) for path in paths}
    if len(formats) > 1:
        raise UserError(f"{paths[0]} and {paths[-1]} are written in different ways: name files of one kind")
    (format,) = formats
    if format is not None:
        return format
    if all(_has_tabs(path, encoding) for path in paths):
        return "tsv"
    if len(paths) == 1:
        raise UserError(
            f"{paths[0]} does not show its pairs: name two parallel files, or put a tab between the sides of each line"
        )
    return "parallel"


def _named_format(path: Path) -> Format | None:
    plain = path.name.lower().removesuffix(".gz")
    return "cmudict" if plain.endswith(".dict") else SUFFIXES.get(table_kind(path))


def _has_tabs(path: Path, encoding: str) -> bool:
    lines = first_lines(path, encoding, FIRST)
    return bool(lines) and all("\t" in line for line in lines)


def _count(pairs: int) -> str:
    return f"{pairs:,} pair{'s' * (pairs != 1)}"
