"""Lines with the lines that they become (a sentence and its translation, a word and its sounds), one pair at a time.

parallel      two files, line i of one belongs to line i of the other     train.de train.en
tsv           two columns with a tab between them, quotes are characters  fra.txt
csv           two columns of a table                                      pairs.csv
jsonl, json   two fields                                                  pairs.jsonl
cmudict       a word and its sounds                                       cmudict.dict
trees         a sentence and its tree as brackets                         sst-trees/train.txt
dialogue      a turn and the next one                                     a play, a transcript
headings      the beginning of what stands below a heading, and that      README.md, wiki pages
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, cast, get_args

from elman.errors import UserError
from elman.files import write_aside
from elman.records import tables
from elman.records.cmudict import iterate_pronunciations
from elman.records.columns import PairRoles, Parts
from elman.records.dialogue import iterate_replies
from elman.records.headings import iterate_headings
from elman.records.lines import FAIL, BadLines, first_lines, read_lines
from elman.records.paths import Paths, named
from elman.records.places import Place
from elman.records.reader import Files, TwoPartReader, is_table, one_format
from elman.records.tables import Column, table_format, text_of
from elman.records.trees import TREE_LINE, brackets, iterate_trees

Format = Literal["parallel", "tsv", "csv", "jsonl", "json", "cmudict", "trees", "dialogue", "headings"]
SIDES = {
    "cmudict": ("words", "sounds"),
    "trees": ("sentences", "brackets"),
    "dialogue": ("turns", "replies"),
    "headings": ("paragraphs", "headings"),
}
"""Formats whose sides are not columns: what the first is, and the second."""
FIRST = 20  # lines that are looked at where the name of a file does not tell how it is written


@dataclass(frozen=True, slots=True)
class Pair:
    """A line and the line that it becomes; where they stand does not make two pairs different.

    >>> Pair("Go.", "Va !", Place(Path("fra.txt"), 1)) == Pair("Go.", "Va !", Place(Path("fra.txt"), 9))
    True
    """

    source: str
    target: str
    where: Place | None = field(default=None, compare=False)
    fields: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


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


class PairReader(TwoPartReader[Pair]):
    """Reads pairs: of files, of data in memory, and without targets of lines to predict for.

    `format` is guessed from the names and the first lines where it is not given. `source` and `target` choose the
    sides, and so the direction: columns by name or by number from 1, fields of JSON objects by name, parallel files by
    number or by how they end (`de`, `en`). Where they are missing they are guessed, and `guess` of the files is the
    sentence that says so; of parallel files the first is the source. `stress=False` takes the stress digits from the
    sounds of a pronouncing dictionary.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "train.de").write_text("Ein Hund.\\nZwei Katzen.\\n")
    >>> _ = (folder / "train.en").write_text("A dog.\\nTwo cats.\\n")
    >>> files = PairReader(source="en", target="de").files([folder / "train.de", folder / "train.en"])
    >>> [(pair.source, pair.target) for pair in files]
    [('A dog.', 'Ein Hund.'), ('Two cats.', 'Zwei Katzen.')]
    >>> next(PairReader(source="fr").objects([{"en": "Go.", "fr": "Va !"}])).target
    'Go.'
    """

    kind = Pair
    roles = PairRoles()
    quotes = False

    def __init__(
        self,
        *,
        format: Format | None = None,
        source: Column = None,
        target: Column = None,
        stress: bool = True,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(format, get_args(Format), (source, target), encoding)
        self.stress = stress

    def files(self, paths: Paths) -> Files[Pair]:
        """The pairs of one file, of several, or of parallel files; those with an empty side too."""
        places = named(paths)
        format = self._checked_format(places)
        if not self.stress and format != "cmudict":
            raise UserError(
                f"-s data.stress=false is for pronouncing dictionaries, and {places[0]} is none: leave it out"
            )
        if is_table(format):
            table = cast(tables.Format, format)
            columns = self.find_columns(places[0], table)
            return Files(places, format, "pairs", partial(self.read_table, places, table, columns), columns.guess)
        if format in SIDES:
            return Files(places, format, "pairs", partial(self._sides, places, format, self._is_turned(places, format)))
        backwards = _is_backwards(places[:2], *self.told)
        twos = [two[::-1] if backwards else two for two in zip(places[::2], places[1::2], strict=True)]
        return Files(places, format, "pairs", partial(self._parallel, twos))

    def record(self, parts: Parts, name: Column) -> Pair:
        """A pair of stripped lines."""
        return Pair(parts.first.strip(), text_of(parts.where, parts.second, name).strip(), parts.where)

    def question(self, where: Place, text: str, fields: dict[str, Any]) -> Pair:
        return Pair(text, "", where, fields)

    def _is_turned(self, paths: Sequence[Path], format: str) -> bool:
        """Whether the second side is the source."""
        if self.told not in ((None, None), (1, 2), (2, 1)):
            first, second = SIDES[format]
            raise UserError(
                f"{paths[0]} has {first} in column 1 and {second} in column 2: "
                "give -s data.source=1 -s data.target=2, or the other way round"
            )
        return self.told == (2, 1)

    def _sides(self, paths: Sequence[Path], format: str, turned: bool, bad: BadLines) -> Iterator[Pair]:
        for path in paths:
            for where, first, second in self._two(path, format, bad):
                yield Pair(second, first, where) if turned else Pair(first, second, where)

    def _two(self, path: Path, format: str, bad: BadLines) -> Iterator[tuple[Place, str, str]]:
        """Places and both sides in a file that has no columns."""
        if format == "cmudict":
            return iterate_pronunciations(path, stress=self.stress, encoding=self.encoding, bad=bad)
        if format == "trees":
            trees = iterate_trees(path, self.encoding, bad)
            return ((where, " ".join(tree.tokens()), brackets(tree)) for tree, where in trees)
        iterate = iterate_replies if format == "dialogue" else iterate_headings
        return iterate(path, self.encoding, bad)

    def _parallel(self, twos: Sequence[tuple[Path, ...]], bad: BadLines) -> Iterator[Pair]:
        for source, target in twos:
            lines = zip_longest(*(read_lines(path, self.encoding, bad) for path in (source, target)))
            for number, (one, other) in enumerate(lines, 1):
                if one is None or other is None:
                    _refuse_lengths((source, target), number - 1, 1 + sum(1 for _ in lines), longer=one is None)
                yield Pair(one.strip(), other.strip(), Place(source, number))

    def _checked_format(self, paths: list[Path]) -> str:
        if not paths:
            raise UserError("no file of pairs was named: give two parallel files, or one with a pair a line")
        for path in paths:
            if path.is_dir():
                raise UserError(f"{path} is a folder: name the files of pairs in it")
        format = self.format or self._guess_format(paths)
        if format == "parallel" and len(paths) % 2:
            raise UserError(
                f"{paths[-1]} has no file beside it: parallel files come in twos, the sources and the targets"
            )
        return format

    def _guess_format(self, paths: list[Path]) -> str:
        if (format := one_format(paths, map(_named_format, paths))) is not None:
            return format
        heads = [first_lines(path, self.encoding, FIRST) for path in paths]
        if all(lines and all("\t" in line for line in lines) for lines in heads):
            return "tsv"
        if len(paths) > 1:
            return "parallel"
        if (format := self.shown_format(heads[0])) is not None:
            return format
        if heads[0] and all(TREE_LINE.match(line) for line in heads[0]):
            return "trees"
        raise UserError(
            f"{paths[0]} does not show its pairs: name two parallel files, put a tab between the sides of each line, "
            "or say -s data.format=dialogue or headings"
        )


def read_pairs(files: Files[Pair], bad: BadLines = FAIL, *, drop_duplicates: bool = False) -> Pairs:
    """All pairs of some files that have both sides, of which there must be at least one.

    A pair that repeats an earlier one is counted, and left out where `drop_duplicates` says so.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "fra.txt"
    >>> _ = place.write_text("Go.\\tVa !\\nGo.\\tVa !\\nRun!\\t\\n")
    >>> read = read_pairs(PairReader().files(place), drop_duplicates=True)
    >>> len(read.pairs), read.duplicates, read.empty
    (1, 1, 1)
    """
    return collect_pairs(files.records(bad), files.paths[0], drop_duplicates=drop_duplicates)


def collect_pairs(pairs: Iterable[Pair], source: Path | str, *, drop_duplicates: bool = False) -> Pairs:
    """The pairs that have both sides, of which there must be at least one; `source` is where they come from.

    >>> collect_pairs([Pair("Go.", "Va !"), Pair("Run!", "")], "train").said
    ['train: 1 pair with an empty side is left out']
    """
    kept: list[Pair] = []
    met: set[Pair] = set()
    empty = duplicates = 0
    for pair in pairs:
        if not pair.source or not pair.target:
            empty += 1
            continue
        again = pair in met
        duplicates += again
        met.add(pair)
        if not (again and drop_duplicates):
            kept.append(pair)
    if not kept:
        raise UserError(f"{source} holds no pairs: give at least one that has both sides")
    return Pairs(kept, empty, duplicates, drop_duplicates, source.name if isinstance(source, Path) else source)


def references(pairs: Iterable[Pair]) -> dict[str, list[str]]:
    """Each source once, in the order of the pairs, with all its different targets, any of which is a right answer.

    >>> references([Pair("tomato", "T EY"), Pair("go", "G OW"), Pair("tomato", "T AA")])
    {'tomato': ['T EY', 'T AA'], 'go': ['G OW']}
    """
    targets: dict[str, dict[str, None]] = {}
    for pair in pairs:
        targets.setdefault(pair.source, {})[pair.target] = None
    return {source: list(different) for source, different in targets.items()}


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as a table that `PairReader` reads: a header, then source, tab, target."""
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


def _is_backwards(paths: Sequence[Path], source: Column, target: Column) -> bool:
    """Whether the second of two parallel files is the source: told by number, or by how the names end (`en`).

    >>> _is_backwards([Path("train.de"), Path("train.en.gz")], "en", None)
    True
    """
    endings = [path.name.removesuffix(".gz").rpartition(".")[2] for path in paths]
    numbers = [_file_number(paths, endings, side) for side in (source, target)]
    if None not in numbers and numbers[0] == numbers[1]:
        both = paths[(numbers[0] or 1) - 1]
        raise UserError(f"source and target are both {both}: name two files, or give {_sides_of(endings)}")
    return numbers[0] == 2 or numbers[1] == 1


def _file_number(paths: Sequence[Path], endings: list[str], side: Column) -> int | None:
    if side is None or (isinstance(side, int) and 1 <= side <= len(paths)):
        return side
    if side not in endings:
        raise UserError(
            f"neither {paths[0]} nor {paths[-1]} is the side {side!r} that the recipe names: give {_sides_of(endings)}"
        )
    return endings.index(side) + 1


def _sides_of(endings: Sequence[str]) -> str:
    """What to type so that the first of two parallel files is the source: by how they end, where that tells them.

    >>> _sides_of(["fr", "en"])
    '-s data.source=fr -s data.target=en'
    """
    first, second = endings if len(set(endings)) == 2 and all(endings) else ("1", "2")
    return f"-s data.source={first} -s data.target={second}"


def _named_format(path: Path) -> str | None:
    return "cmudict" if path.name.lower().removesuffix(".gz").endswith(".dict") else table_format(path)


def _count(pairs: int) -> str:
    return f"{pairs:,} pair{'s' * (pairs != 1)}"
