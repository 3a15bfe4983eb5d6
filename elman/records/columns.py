"""Which column of a table, or which field of JSON lines, is the text and which the label: as told, or guessed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Self

from elman.errors import UserError, nearest
from elman.records.tables import Column, column_index

TEXTS = (
    "text",
    "sentence",
    "question",
    "review",
    "comment",
    "content",
    "message",
    "document",
    "tweet",
    "name",
    "title",
)
LABELS = (
    "label",
    "labels",
    "class",
    "category",
    "sentiment",
    "target",
    "language",
    "topic",
    "intent",
    "polarity",
    "type",
)
COLUMN_OPTIONS = "-s data.text_column=NAME -s data.label_column=NAME"  # what a user types; a number will do as well
TEXT_OPTION = "--column "  # the same where there is no label: in `elman predict`
SAMPLE = 200  # rows that are looked at where there are no names to go by


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table; `guess` says in a sentence what was guessed, and is empty where nothing was.

    >>> rows = [("a.csv:1", ["good", "a fine film"]), ("a.csv:2", ["good", "well made"])]
    >>> columns = TableColumns.find(Path("a.csv"), iter(rows))
    >>> list(columns.cells(Path("a.csv"), iter(rows)))[0]
    ('a.csv:1', 'a fine film', 'good')
    >>> columns.guess
    'a.csv: the text is column 2, the label is column 1 (guessed)'
    """

    text: str | int
    label: str | int | None
    guess: str = ""

    @classmethod
    def find(
        cls,
        path: Path,
        rows: Iterator[tuple[str, list[str]]],
        text: Column = None,
        label: Column = None,
    ) -> Self:
        """Look at the first rows of a table for what is not given."""
        sample = [row for _, row in islice(rows, SAMPLE)]
        if not sample:
            raise UserError(f"{path} holds no rows: give a table with a text and a label in each")
        names = sample[0] if _is_header(sample[0], text, label) else []
        for given in (text, label):
            if given is not None:
                column_index(path, sample[0], given)
        found = [
            named_column(names, TEXTS) if text is None else text,
            named_column(names, LABELS) if label is None else label,
        ]
        if None in found:
            _rest(path, sample, names, found)
        places = [column_index(path, sample[0], column) for column in found if column is not None]
        if places[0] == places[1]:
            raise UserError(f"{path}: text and label are the same column {found[0]!r}: give {COLUMN_OPTIONS}")
        guessed = text is None or label is None
        says = f"{path.name}: the text is column {found[0]!r}, the label is column {found[1]!r} (guessed)"
        return cls(found[0] or 1, found[1], says if guessed else "")

    @classmethod
    def of_texts(
        cls, path: Path, rows: Iterator[tuple[str, list[str]]], text: Column = None, usual: Column = None
    ) -> Self:
        """The column of the texts alone, in a table that need have no labels: as told, by its name, or the only one.

        `usual` is the column that such tables have had before: a name counts where the table has it, a number where
        no name tells.

        >>> TableColumns.of_texts(Path("a.csv"), iter([("a.csv:1", ["id", "body"])]))
        Traceback (most recent call last):
        elman.errors.UserError: a.csv:1 has 2 columns: say which is the text, such as --column 1
        """
        where, first = next(rows, ("", []))
        if not first:
            raise UserError(f"{path} holds no rows: give a table with a text in each")
        if text is not None:
            column_index(path, first, text)
            return cls(text, None)
        if isinstance(usual, str) and usual in first:
            return cls(usual, None)
        named = named_column(first, TEXTS)
        if named is None and len(first) == 2 and (label := named_column(first, LABELS)) is not None:
            named = first[1 - first.index(label)]
        if named is not None:
            return cls(named, None)
        if len(first) == 1 or (isinstance(usual, int) and usual <= len(first)):
            return cls(usual if isinstance(usual, int) and len(first) > 1 else 1, None)
        raise UserError(f"{where} has {len(first)} columns: say which is the text, such as {TEXT_OPTION}1")

    def cells(self, path: Path, rows: Iterator[tuple[str, list[str]]]) -> Iterator[tuple[str, str, str]]:
        """Where each row stands, its text and its label; the header is left out."""
        places: tuple[int, int] | None = None
        for where, row in rows:
            if places is None:
                text = column_index(path, row, self.text)
                places = text, text if self.label is None else column_index(path, row, self.label)
                if _is_header(row, self.text, self.label):
                    continue
            yield where, row[places[0]], row[places[1]]


@dataclass(frozen=True)
class JsonFields:
    """The fields of JSON lines; `guess` says in a sentence what was guessed, and is empty where nothing was.

    >>> fields = JsonFields.find(Path("a.jsonl"), iter([("a.jsonl:1", {"review": "dull", "stars": 1})]))
    >>> fields.text, fields.label
    ('review', 'stars')
    """

    text: str
    label: str | None
    guess: str = ""

    @classmethod
    def find(
        cls,
        path: Path,
        objects: Iterator[tuple[str, dict[str, object]]],
        text: Column = None,
        label: Column = None,
    ) -> Self:
        """Look at the first object for what is not given."""
        where, first = next(objects, ("", {}))
        if not first:
            raise UserError(f'{path} holds no objects: write lines such as {{"text": ..., "label": ...}}')
        names = list(first)
        found = [
            named_column(names, TEXTS) if text is None else str(text),
            named_column(names, LABELS) if label is None else str(label),
        ]
        if len(names) == 2 and found.count(None) == 1:
            found[found.index(None)] = next((name for name in names if name not in found), None)
        if None in found:
            raise UserError(f"{where} has the fields {', '.join(names)}: say which are meant with {COLUMN_OPTIONS}")
        for name in found:
            if name not in first:
                raise UserError(f"{where} has no field {name!r}: {nearest(str(name), names)}")
        says = f"{path.name}: the text is field {found[0]!r}, the label is field {found[1]!r} (guessed)"
        return cls(str(found[0]), str(found[1]), says if text is None or label is None else "")

    @classmethod
    def of_texts(
        cls,
        path: Path,
        objects: Iterator[tuple[str, dict[str, object]]],
        text: Column = None,
        usual: Column = None,
    ) -> Self:
        """The field of the texts alone: as told, the `usual` one where the first object has it, by its name, the only.

        >>> JsonFields.of_texts(Path("a.jsonl"), iter([("a.jsonl:1", {"id": 1, "review": "dull"})])).text
        'review'
        """
        where, first = next(objects, ("", {}))
        if not first:
            raise UserError(f'{path} holds no objects: write lines such as {{"text": ...}}')
        names = list(first)
        found = str(text) if text is not None else str(usual) if str(usual) in first else named_column(names, TEXTS)
        if found is None and len(names) == 1:
            found = names[0]
        if found is None:
            raise UserError(f"{where} has the fields {', '.join(names)}: say which is the text with {TEXT_OPTION}NAME")
        return cls(found, None)


def _is_header(row: list[str], text: Column, label: Column) -> bool:
    """Whether the first row holds names: those given, or where numbers are given or nothing, usual ones."""
    given = [column for column in (text, label) if isinstance(column, str)]
    if given:
        return any(name in row for name in given)
    return named_column(row, TEXTS + LABELS) is not None


def named_column(names: list[str], usual: tuple[str, ...]) -> str | None:
    """The first of the `usual` names that is among `names`, as it is spelt there.

    >>> named_column(["id", "Text"], ("sentence", "text"))
    'Text'
    """
    spelt = {name.strip().lower(): name for name in reversed(names)}
    return next((spelt[name] for name in usual if name in spelt), None)


def _rest(path: Path, sample: list[list[str]], names: list[str], found: list[Column]) -> None:
    """Fill in what the names did not tell: of two columns the label is the one with fewer different values."""
    width = len(sample[0])
    if width != 2:
        shown = f"the columns {', '.join(names)}" if names else f"{width} column{'s' if width > 1 else ''}"
        raise UserError(f"{path}:1 has {shown}: say which are meant with {COLUMN_OPTIONS}")
    if found == [None, None]:
        first, second = (len({row[column] for row in sample}) for column in (0, 1))
        found[:] = (2, 1) if first < second else (1, 2)
        return
    known = found[0] if found[1] is None else found[1]
    other = 1 - column_index(path, sample[0], known or 1)
    found[found.index(None)] = names[other] if names else other + 1
