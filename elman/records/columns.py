"""Which column of a table, or field of an object, is which part of a record: as told, by its name, or guessed.

A record has two parts: a text and its label, or a source and its target. `Roles` says what they are usually called,
`Roles.find` looks at the first rows, `Columns` takes the parts out of all of them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Any, NamedTuple

from elman.errors import UserError
from elman.records.lines import FAIL, BadLines
from elman.records.places import Place, RecordError
from elman.records.tables import Column, Row, column_index, field_of, text_of

TEXTS = (
    "text", "sentence", "question", "review", "comment", "content", "message", "document", "tweet", "name", "title",
)  # fmt: skip
LABELS = (
    "label", "labels", "class", "category", "sentiment", "target", "language", "topic", "intent", "polarity", "type",
)  # fmt: skip
SOURCES = ("source", "src", "input", "question", "word", "written")
TARGETS = ("target", "tgt", "trg", "output", "translation", "answer", "pronunciation", "phonemes", "spoken")
LANGUAGE_NAMES = """
    ar bg ca cs da de el en es et fa fi fr he hi hr hu is it ja ko lt lv nl no pl pt ro ru sk sl sv th tr uk vi zh
    deu eng fra ita nld por rus spa tur zho arabic chinese czech danish dutch english finnish french german greek
    hungarian italian japanese korean norwegian polish portuguese romanian russian spanish swedish turkish
"""
LANGUAGES = frozenset(LANGUAGE_NAMES.split())
TEXT_OPTION = "--column "  # what a user types in `elman predict`; a number will do as well as a name
SAMPLE = 200  # rows that are looked at where there are no names to go by

Rows = Iterator[tuple[Place, Row]]
Two = tuple[Column, Column]


class Parts(NamedTuple):
    """The two parts of a record as they are written, where that is, and the fields beside them."""

    where: Place
    first: str
    second: Any
    fields: dict[str, Any]


@dataclass(frozen=True)
class Columns:
    """The two columns by name or by number from 1; `guess` says in a sentence what was guessed, if anything was.

    With `keeps`, the other cells of a row are kept by the names in the header, as the fields of an object are.
    """

    roles: "Roles"
    first: str | int
    second: str | int | None
    guess: str = ""
    keeps: bool = False

    def parts(self, rows: Rows, bad: BadLines = FAIL) -> Iterator[Parts]:
        """The parts of each row; the header is left out."""
        indices: tuple[int, int] | None = None
        names: list[str] = []
        for where, row in rows:
            if isinstance(row, dict):
                try:
                    yield self._of_object(where, row)
                except RecordError as error:
                    bad(error)
                continue
            if indices is None:
                first = column_index(where, row, self.first)
                indices = first, first if self.second is None else column_index(where, row, self.second)
                if self.roles.is_header(row, (self.first, self.second)):
                    names = row if self.keeps else []
                    continue
            fields: dict[str, Any] = dict(zip(names, row, strict=False))
            if names:
                del fields[names[indices[0]]]
            yield Parts(where, row[indices[0]], None if self.second is None else row[indices[1]], fields)

    def _of_object(self, where: Place, fields: dict[str, Any]) -> Parts:
        first = text_of(where, field_of(where, fields, str(self.first)), self.first)
        second = None if self.second is None else field_of(where, fields, str(self.second))
        others = {name: value for name, value in fields.items() if name not in (self.first, self.second)}
        return Parts(where, first, second, others)


@dataclass(frozen=True)
class Roles:
    """The two parts of a labelled text: what they are called, usual names of their columns, what a user types.

    >>> rows = [(Place(Path("a.csv"), 1), ["good", "a fine film"]), (Place(Path("a.csv"), 2), ["good", "well made"])]
    >>> columns = Roles().find(Path("a.csv"), iter(rows))
    >>> next(columns.parts(iter(rows)))[1:3], columns.guess
    (('a fine film', 'good'), 'a.csv: the text is column 2, the label is column 1 (guessed)')
    """

    first: str = "text"
    second: str = "label"
    usual: tuple[tuple[str, ...], tuple[str, ...]] = (TEXTS, LABELS)
    options: str = "-s data.text_column=NAME -s data.label_column=NAME"
    second_needed: bool = True
    directed: bool = False  # the parts can change places, so the column that a model was trained with tells more

    def find(self, source: Path | str, rows: Rows, told: Two = (None, None), what: str = "rows") -> Columns:
        """Look at the first rows of a table, or at the first of some objects, for what is not told."""
        where, top = next(rows, (None, []))
        if where is None:
            raise UserError(
                f"{source} holds no {what}: give some with {_one(self.first)} and {_one(self.second)} in each"
            )
        is_table = isinstance(top, list)
        if not is_table:
            told = tuple(None if column is None else str(column) for column in told)  # type: ignore[assignment]
        names = list(top) if not is_table or self.is_header(list(top), told) else []
        for column in told:
            _check(where, top, column)
        sample = [row for _, row in islice(rows, SAMPLE)]
        first, second = self.fill(top, names, told, sample)
        if first is None or (second is None and self.second_needed):
            raise RecordError(where, f"has {_shown(names, top)}: say which are meant with {self.options}")
        for column in (first, second):
            _check(where, top, column)
        kind = "column" if is_table else "field"
        if second is not None and _index(top, first) == _index(top, second):
            same = f"{self.first} and {self.second} are the same {kind} {first!r}"
            raise UserError(f"{source}: {same}: give {self.options}")
        if isinstance(top, list) and second is not None and not names and self.second_needed and not self.directed:
            first, second = _names_above(top, (_index(top, first), _index(top, second)), sample) or (first, second)
        name = source.name if isinstance(source, Path) else source
        guess = f"{name}: the {self.first} is {kind} {first!r}, the {self.second} is {kind} {second!r} (guessed)"
        return Columns(self, first, second, guess if None in told and self.second_needed else "")

    def find_first(self, where: Place, row: Row, told: Column = None, trained: Column = None) -> Columns:
        """The column of the first part alone: as told, as a model was trained with, by its name, or the only one.

        >>> Roles().find_first(Place(Path("a.csv"), 1), ["id", "body"])
        Traceback (most recent call last):
        elman.records.places.RecordError: a.csv:1 has 2 columns: say which is the text, such as --column 1
        """
        if told is not None:
            if isinstance(row, list):
                column_index(where, row, told)
            return Columns(self, told if isinstance(row, list) else str(told), None, keeps=True)
        column: Column = self._trained(row, trained, by_number=self.directed)
        if column is None:
            column = self.alone(row)
        if column is None:
            column = self._trained(row, trained, by_number=True)
        if column is None and isinstance(row, list):
            raise RecordError(where, f"has {len(row)} columns: say which is the {self.first}, such as {TEXT_OPTION}1")
        if column is None:
            which = f"say which is the {self.first} with {TEXT_OPTION}NAME"
            raise RecordError(where, f"has the fields {', '.join(row)}: {which}")
        return Columns(self, column, None, keeps=True)

    def is_header(self, row: list[str], told: Two = (None, None)) -> bool:
        """Whether the first row holds names: those told, or where none is told, usual ones."""
        names = [column for column in told if isinstance(column, str)]
        return any(name in row for name in names) if names else self.has_usual_names(row)

    def has_usual_names(self, row: list[str]) -> bool:
        """Whether a row looks like a header."""
        return any(named_column(row, names) is not None for names in self.usual)

    def has_both_names(self, row: list[str]) -> bool:
        """Whether a row can be nothing but a header, in a file whose name does not say that it is a table."""
        return all(named_column(row, names) is not None for names in self.usual)

    def fill(self, row: Row, names: list[str], told: Two, sample: Sequence[Row]) -> Two:
        """Both columns: as told, by usual names, the other of two; None where neither helps."""
        choices: Sequence[str | int] = names or range(1, len(row) + 1)
        taken = {choices[_index(row, column)] for column in told if column is not None} if self.directed else ()
        free = [name for name in names if name not in taken]
        columns = [
            named_column(free, usual) if column is None else column
            for column, usual in zip(told, self.usual, strict=True)
        ]
        if told == (None, None) and None in columns:
            guess = self.unnamed(choices, columns, [row, *sample])
            if guess is not None:
                return guess
        if len(choices) == 2 and columns.count(None) == 1:
            known = columns[1] if columns[0] is None else columns[0]
            place = choices.index(known) if known in choices else int(known or 1) - 1
            columns[columns.index(None)] = choices[1 - place]
        return columns[0], columns[1]

    def unnamed(self, choices: Sequence[str | int], columns: Sequence[Column], rows: Iterable[Row]) -> Two | None:
        """A guess where names do not tell: of two columns the label is the one with fewer different values."""
        if len(choices) != 2 or any(columns):
            return None
        values = [row if isinstance(row, list) else [*row.values()] for row in rows if len(row) == 2]
        first, second = (len({str(value[column]) for value in values}) for column in (0, 1))
        return (choices[1], choices[0]) if first < second else (choices[0], choices[1])

    def alone(self, row: Row) -> Column:
        """The column of the first part in a row that need not have the second; None where it cannot be told."""
        names = list(row)
        named = named_column(names, self.usual[0])
        if named is None and len(names) == 2 and (other := named_column(names, self.usual[1])) is not None:
            named = names[1 - names.index(other)]
        if named is None and len(names) == 1:
            return 1 if isinstance(row, list) else names[0]
        return named

    def _trained(self, row: Row, trained: Column, by_number: bool) -> Column:
        if trained is not None and (isinstance(trained, str) or isinstance(row, dict)) and str(trained) in row:
            return str(trained)
        is_number = isinstance(trained, int) and isinstance(row, list) and trained <= len(row)
        return trained if by_number and is_number else None


@dataclass(frozen=True)
class PairRoles(Roles):
    """The two parts of a pair; a header of two languages tells them too.

    >>> rows = [(Place(Path("a.tsv"), 1), ["de", "en"]), (Place(Path("a.tsv"), 2), ["Ja.", "Yes."])]
    >>> PairRoles().find(Path("a.tsv"), iter(rows), ("en", None)).second
    'de'
    """

    first: str = "source"
    second: str = "target"
    usual: tuple[tuple[str, ...], tuple[str, ...]] = (SOURCES, TARGETS)
    options: str = "-s data.source=NAME -s data.target=NAME"
    directed: bool = True

    def has_usual_names(self, row: list[str]) -> bool:
        """Two usual names, or two languages: one word alone may be the first to be translated."""
        return self.has_both_names(row) or (len(row) > 1 and all(cell.strip().lower() in LANGUAGES for cell in row[:2]))

    def unnamed(self, choices: Sequence[str | int], columns: Sequence[Column], rows: Iterable[Row]) -> Two | None:
        """Two languages, else the first two of a table without names or of an object with two fields."""
        names = [choice for choice in choices if isinstance(choice, str)]
        spoken = [name for name in names if name.strip().lower() in LANGUAGES]
        if len(spoken) == 2:
            return spoken[0], spoken[1]
        if any(columns) or (len(choices) != 2 and (names or len(choices) < 2)):
            return None
        return choices[0], choices[1]

    def alone(self, row: Row) -> Column:
        """The source is called so, or comes first."""
        names, is_table = list(row), isinstance(row, list)
        if is_table and len(names) > 1 and not self.has_usual_names(names):
            return named_column(names, ("text",)) or 1
        named = named_column(names, (*SOURCES, "text"))
        if named is not None or len(names) == 1:
            return named or (1 if is_table else names[0])
        return names[0] if is_table else (self.unnamed(names, (None, None), []) or (None, None))[0]


@dataclass(frozen=True)
class LineRoles(Roles):
    """A text that may have a label: its column is called `text`, or the first; `guesses` looks for a label too."""

    usual: tuple[tuple[str, ...], tuple[str, ...]] = (("text",), ("label",))
    second_needed: bool = False
    guesses: bool = False

    def fill(self, row: Row, names: list[str], told: Two, sample: Sequence[Row]) -> Two:
        """What is not told is called so; else the first column is the text, and the second of two the label."""
        text, label = told
        is_table = isinstance(row, list)
        if text is None:
            text = named_column(names, ("text",)) or (1 if is_table else "text")
        if label is None and self.guesses:
            label = named_column(names, ("label",)) or (2 if is_table and len(row) == 2 else None)
        return text, label


def named_column(names: Sequence[str], usual: tuple[str, ...]) -> str | None:
    """The first of the `usual` names that is among `names`, as it is spelt there.

    >>> named_column(["id", "Text"], ("sentence", "text"))
    'Text'
    """
    spelt = {name.strip().lower(): name for name in reversed(names)}
    return next((spelt[name] for name in usual if name in spelt), None)


def _names_above(top: list[str], columns: tuple[int, int], rows: Sequence[Row]) -> tuple[str, str] | None:
    """The names of a text and a label, where the row at the top holds names and no record; None where it holds one.

    A name stands above labels that come again and again, and is none of them; above a text stand few words. Where some
    label comes only once, so may that of a first record, and the texts have to be longer than names are.

    >>> rows = [["Where is my money?", "billing"], ["It does not start", "technical"]] * 10
    >>> _names_above(["subject", "queue"], (0, 1), rows)
    ('subject', 'queue')
    >>> _names_above(["Where is it?", "billing"], (0, 1), rows) is None
    True
    """
    text, label = (top[column].strip() for column in columns)
    others = [row for row in rows if isinstance(row, list) and len(row) == len(top)]
    labels = Counter(row[columns[1]].strip() for row in others)
    if not text or not label or label in labels or len(others) < 5 * len(labels) or len(text.split()) > 3:
        return None
    if any(_is_number(cell) or top.count(cell) > 1 for cell in (top[column] for column in columns)):
        return None
    words = sum(len(row[columns[0]].split()) for row in others) / max(len(others), 1)
    recur = min(labels.values(), default=0) > 1
    return (top[columns[0]], top[columns[1]]) if recur or words > 4 * len(text.split()) else None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _check(where: Place, row: Row, column: Column) -> None:
    if column is not None and isinstance(row, list):
        column_index(where, row, column)
    elif column is not None and isinstance(row, dict):
        field_of(where, row, str(column))


def _index(row: Row, column: str | int) -> int:
    return list(row).index(column) if isinstance(column, str) else column - 1


def _shown(names: list[str], row: Row) -> str:
    if names:
        return f"the {'columns' if isinstance(row, list) else 'fields'} {', '.join(names)}"
    cells = ", ".join(shorten(str(cell), 30, placeholder="...") for cell in islice(row, 8))
    return f"{len(row)} column{'s' * (len(row) > 1)} ({cells}{', ...' * (len(row) > 8)})"


def _one(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"
