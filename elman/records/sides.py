"""Which column, field or file of some pairs is the source and which the target: as told, or guessed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from elman.errors import UserError, nearest
from elman.records.columns import named_column
from elman.records.tables import Column, column_index

SOURCES = ("source", "src", "input", "question", "word", "written")
TARGETS = ("target", "tgt", "trg", "output", "translation", "answer", "pronunciation", "phonemes", "spoken")
LANGUAGE_NAMES = """
    ar bg ca cs da de el en es et fa fi fr he hi hr hu is it ja ko lt lv nl no pl pt ro ru sk sl sv th tr uk vi zh
    deu eng fra ita nld por rus spa tur zho arabic chinese czech danish dutch english finnish french german greek
    hungarian italian japanese korean norwegian polish portuguese romanian russian spanish swedish turkish
"""
LANGUAGES = frozenset(LANGUAGE_NAMES.split())
TEXT = "text"  # what a source without a target may be called too
SIDE_OPTIONS = "-s data.source=NAME -s data.target=NAME"  # what a user types; a number will do as well


@dataclass(frozen=True)
class Sides:
    """The two sides by name or by number from 1; `guess` says what was guessed, and is empty where nothing was.

    >>> rows = [("a.tsv:1", ["1", "Go.", "Va !"])]
    >>> Sides.of_table(Path("a.tsv"), iter(rows), source=3, target=2)
    Sides(source=3, target=2, guess='')
    >>> Sides.of_table(Path("a.tsv"), iter(rows)).guess
    'a.tsv: the source is column 1, the target is column 2 (guessed)'
    """

    source: str | int
    target: str | int
    guess: str = ""

    @classmethod
    def of_table(
        cls, path: Path, rows: Iterator[tuple[str, list[str]]], source: Column = None, target: Column = None
    ) -> Self:
        """Look at the first row of a table: at the names in it, else the first two columns are the sides."""
        _, first = next(rows, ("", []))
        if not first:
            raise UserError(f"{path} holds no rows: give a table with a source and a target in each")
        header = _is_header(first, source, target)
        found = _filled(first if header else range(1, len(first) + 1), source, target)
        if found is None:
            shown = f"the columns {', '.join(first)}" if header else f"{len(first)} column{'s' * (len(first) > 1)}"
            raise UserError(f"{path}:1 has {shown}: say which are meant with {SIDE_OPTIONS}")
        if column_index(path, first, found[0]) == column_index(path, first, found[1]):
            raise UserError(f"{path}: source and target are the same column {found[0]!r}: give {SIDE_OPTIONS}")
        return cls(*found, _said(path, "column", found) if source is None or target is None else "")

    @classmethod
    def of_objects(
        cls,
        path: Path,
        objects: Iterator[tuple[str, dict[str, object]]],
        source: Column = None,
        target: Column = None,
    ) -> Self:
        """Look at the fields of the first of some JSON objects."""
        where, first = next(objects, ("", {}))
        if not first:
            raise UserError(f'{path} holds no objects: write lines such as {{"source": ..., "target": ...}}')
        given = [None if side is None else str(side) for side in (source, target)]
        found = _filled(list(first), *given)
        if found is None:
            raise UserError(f"{where} has the fields {', '.join(first)}: say which with {SIDE_OPTIONS}")
        for name in found:
            if name not in first:
                raise UserError(f"{where} has no field {name!r}: {nearest(str(name), first)}")
        if found[0] == found[1]:
            raise UserError(f"{where}: source and target are the same field {found[0]!r}: give {SIDE_OPTIONS}")
        return cls(*found, _said(path, "field", found) if source is None or target is None else "")

    @classmethod
    def of_files(cls, paths: Sequence[Path], source: Column = None, target: Column = None) -> Self:
        """Parallel files: by number, or by how their names end (`en` for train.en); the first is the source.

        >>> Sides.of_files([Path("train.de"), Path("train.en.gz")], source="en")
        Sides(source=2, target=1, guess='')
        """
        endings = [path.name.removesuffix(".gz").rpartition(".")[2] for path in paths]
        places = [_file_number(paths, endings, side) for side in (source, target)]
        if places[0] is None and places[1] is None:
            return cls(1, 2)
        first, second = places[0] or 3 - (places[1] or 1), places[1] or 3 - (places[0] or 1)
        if first == second:
            raise UserError(
                f"source and target are both {paths[first - 1]}: name two files, or give {_sides_of(endings)}"
            )
        return cls(first, second)

    @classmethod
    def of_texts(
        cls, path: Path, rows: Iterator[tuple[str, list[str]]], text: Column = None, usual: Column = None
    ) -> Self:
        """The column of the sources alone, in a table that need have no targets: as told, by its name, or the first.

        `usual` is the column that such tables have had before: a name counts where the table has it, a number where
        it has so many.

        >>> Sides.of_texts(Path("a.tsv"), iter([("a.tsv:1", ["de", "en"])]), usual="en").source
        'en'
        """
        _, first = next(rows, ("", []))
        if not first:
            raise UserError(f"{path} holds no rows: give a table with a source in each")
        if text is not None:
            column_index(path, first, text)
            return cls(text, text)
        if usual in first or (isinstance(usual, int) and usual <= len(first)):
            return cls(usual, usual) if usual is not None else cls(1, 1)
        named = named_column(first, (*(SOURCES if len(first) == 1 else ()), TEXT))
        if _is_header(first, None, None):
            named = named_column(first, SOURCES) or first[0]
        return cls(named or 1, named or 1)

    @classmethod
    def of_text_objects(
        cls,
        path: Path,
        objects: Iterator[tuple[str, dict[str, object]]],
        text: Column = None,
        usual: Column = None,
    ) -> Self:
        """The field of the sources alone: as told, the `usual` one where the first object has it, by its name, first.

        >>> Sides.of_text_objects(Path("a.jsonl"), iter([("a.jsonl:1", {"en": "Go.", "fr": "Va !"})])).source
        'en'
        """
        where, first = next(objects, ("", {}))
        if not first:
            raise UserError(f'{path} holds no objects: write lines such as {{"source": ...}}')
        names = list(first)
        found: str | None = None if text is None else str(text)
        if found is None:
            found = str(usual) if str(usual) in first else named_column(names, (*SOURCES, TEXT))
            guessed = _usual(names) if len(names) > 1 else (names[0], "")
            found = str(guessed[0]) if found is None and guessed is not None else found
        if found is None:
            raise UserError(f"{where} has the fields {', '.join(names)}: say which is the source with --column NAME")
        return cls(found, found)

    def cells(self, path: Path, rows: Iterator[tuple[str, list[str]]]) -> Iterator[tuple[str, str, str]]:
        """Where each row stands, its source and its target; the header is left out."""
        places: tuple[int, int] | None = None
        for where, row in rows:
            if places is None:
                places = column_index(path, row, self.source), column_index(path, row, self.target)
                if _is_header(row, self.source, self.target):
                    continue
            yield where, row[places[0]], row[places[1]]


def _is_header(row: list[str], source: Column, target: Column) -> bool:
    """Whether the first row holds names: those given, or where none is given, two usual ones, or two languages."""
    given = [side for side in (source, target) if isinstance(side, str)]
    if given:
        return any(name in row for name in given)
    usual = named_column(row, SOURCES) is not None and named_column(row, TARGETS) is not None
    return usual or (len(row) > 1 and all(cell.strip().lower() in LANGUAGES for cell in row[:2]))


def _filled(names: Sequence[str | int], source: Column, target: Column) -> tuple[str | int, str | int] | None:
    """Both sides: what is not given is the other of two, or has a usual name; None where neither helps."""
    if source is None and target is None:
        return _usual(names)
    if source is not None and target is not None:
        return source, target
    known = target if source is None else source
    place = names.index(known) if known in names else known - 1 if isinstance(known, int) else -1
    if len(names) == 2 and place in (0, 1):
        other: Column = names[1 - place]
    else:
        other = named_column(_texts(names), SOURCES if source is None else TARGETS)
    if known is None or other is None:
        return None
    return (other, known) if source is None else (known, other)


def _usual(names: Sequence[str | int]) -> tuple[str | int, str | int] | None:
    """By usual names, by two languages, else the first two of a table without names or of an object with two fields."""
    texts = _texts(names)
    source, target = named_column(texts, SOURCES), named_column(texts, TARGETS)
    if source is not None and target is not None:
        return source, target
    spoken = [name for name in texts if name.strip().lower() in LANGUAGES]
    if len(spoken) == 2:
        return spoken[0], spoken[1]
    return (names[0], names[1]) if len(names) == 2 or (len(names) > 2 and not texts) else None


def _texts(names: Sequence[str | int]) -> list[str]:
    return [name for name in names if isinstance(name, str)]


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


def _said(path: Path, what: str, found: tuple[str | int, str | int]) -> str:
    return f"{path.name}: the source is {what} {found[0]!r}, the target is {what} {found[1]!r} (guessed)"
