"""Texts with their classes, whatever they are written in, one at a time: a file of any size in constant memory.

csv, tsv   a column of texts and one of labels       train.csv
jsonl      a field of each                           train.jsonl
lines      `LABEL text`, the label before a blank    TREC.train
trees      bracketed trees, the label of the root    sst-trees/train.txt
files      a file a class, each line a text          rt-polarity.pos rt-polarity.neg
folders    a folder a class, each file a text        reviews/
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from elman.errors import UserError, nearest
from elman.records.columns import JsonFields, TableColumns
from elman.records.decoding import check_encoding
from elman.records.lines import FAIL, BadLines, first_lines, first_look, read_lines
from elman.records.tables import Column, Record, empty_text, json_objects, json_text, table_kind, table_rows
from elman.records.trees import iterate_trees

Format = Literal["csv", "tsv", "jsonl", "lines", "trees", "files", "folders"]
Classes = Literal["fine", "coarse", "binary"]
TREE_LINE = re.compile(r"\(\S+ .*\)\s*$")
LABEL_LINE = re.compile(r"[A-Za-z_]\w*:\w+[ \t]+\S")
FIRST = 20  # lines that are looked at where the name of a file does not tell how it is written
POLARITY = {"0": "negative", "1": "negative", "2": None, "3": "positive", "4": "positive"}


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text, its labels (one, or as many as it has), and where it stands (`file:line`)."""

    text: str
    labels: tuple[str, ...]
    where: str


class LabelledFiles:
    """The texts and labels of some files or of a folder; read anew each time, in order.

    `format` is guessed from the names and the first line where it is not given. `text` and `label` are columns by
    name or by number from 1; where one is missing it is guessed, and `guess` is the sentence that says so. A
    `separator` cuts the label into several. `classes`: "fine" takes labels as they stand, "coarse" what comes before
    the colon (`NUM` of `NUM:dist`), "binary" makes positive and negative of the five grades of sentiment trees and
    leaves the neutral ones out.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "films.csv"
    >>> _ = place.write_text("id,review,sentiment\\n1,a fine film,good\\n2,dull,bad\\n")
    >>> files = LabelledFiles(place)
    >>> [(record.text, record.labels) for record in files.records()]
    [('a fine film', ('good',)), ('dull', ('bad',))]
    >>> files.guess
    "films.csv: the text is column 'review', the label is column 'sentiment' (guessed)"
    """

    def __init__(
        self,
        paths: Path | str | Sequence[Path | str],
        *,
        format: Format | None = None,
        text: Column = None,
        label: Column = None,
        separator: str | None = None,
        classes: Classes = "fine",
        encoding: str = "utf-8",
    ) -> None:
        named = [paths] if isinstance(paths, (str, Path)) else list(paths)
        self.encoding = check_encoding(encoding)
        self.paths, self.format = _files([Path(name) for name in named], format, self.encoding)
        self.separator, self.classes = separator, classes
        self.columns: TableColumns | JsonFields | None = None
        self._check_options(text, label)
        if self.format in ("csv", "tsv", "jsonl"):
            self.columns = _columns(self.paths[0], self.format, self.encoding, text, label)

    @property
    def guess(self) -> str:
        """What was guessed about the columns, as a sentence for the user; empty where nothing was."""
        return self.columns.guess if self.columns else ""

    def records(self, bad: BadLines = FAIL) -> Iterator[LabelledText]:
        """The texts with their labels; what happens to a bad line is for `bad` to say."""
        for record, labels in self._read(bad):
            try:
                found = self._labelled(record, labels)
            except UserError as error:
                bad(error)
            else:
                if found is not None:
                    yield found

    def _check_options(self, text: Column, label: Column) -> None:
        if self.classes not in get_args(Classes):
            raise UserError(f"data.classes={self.classes!r} is none: {nearest(self.classes, get_args(Classes))}")
        if self.classes == "binary" and self.format != "trees":
            raise UserError(
                f"-s data.classes=binary is for sentiment trees, and {self.paths[0]} is not one: leave it out"
            )
        if (text or label) and self.format not in ("csv", "tsv", "jsonl"):
            raise UserError(
                f"{self.paths[0]} has no columns: leave data.text_column and data.label_column out, "
                "or give -s data.format=csv"
            )

    def _read(self, bad: BadLines) -> Iterator[tuple[Record, tuple[str, ...]]]:
        """Texts and labels as they stand in the files."""
        if self.format in ("files", "folders"):
            yield from self._read_classes(bad)
            return
        for path in self.paths:
            if self.format == "trees":
                for tree, where in iterate_trees(path, self.encoding, bad):
                    yield Record(" ".join(tree.tokens()), None, where), (tree.label,)
            elif self.format == "lines":
                for number, line in enumerate(read_lines(path, self.encoding, bad), 1):
                    label, text = [*line.split(maxsplit=1), "", ""][:2]
                    if label:
                        yield Record(text, None, f"{path}:{number}"), self._cut(label)
            else:
                yield from self._read_columns(path, bad)

    def _read_columns(self, path: Path, bad: BadLines) -> Iterator[tuple[Record, tuple[str, ...]]]:
        lines = read_lines(path, self.encoding, bad)
        if isinstance(self.columns, TableColumns):
            for where, text, label in self.columns.cells(path, table_rows(path, lines, f".{self.format}", bad)):
                yield Record(text, None, where), self._cut(label)
        elif isinstance(self.columns, JsonFields):
            for where, value in json_objects(path, lines, bad):
                try:
                    found = Record(json_text(where, value, self.columns.text), None, where)
                    labels = _json_labels(where, value, self.columns.label or "label")
                except UserError as error:
                    bad(error)
                else:
                    yield found, self._cut(labels) if isinstance(labels, str) else labels

    def _read_classes(self, bad: BadLines) -> Iterator[tuple[Record, tuple[str, ...]]]:
        for name, path in _class_names(self.paths).items():
            empty = True
            for text, where in _texts_of(path, self.encoding, bad):
                empty = False
                yield Record(text, None, where), (name,)
            if empty:
                raise UserError(f"the class {name!r} is empty: put texts into {path}, or remove it")

    def _cut(self, label: str) -> tuple[str, ...]:
        if self.separator is None:
            return (label.strip(),)
        return tuple(part.strip() for part in label.split(self.separator) if part.strip())

    def _labelled(self, record: Record, labels: tuple[str, ...]) -> LabelledText | None:
        text = record.text.strip()
        if not text:
            raise empty_text(record.where)
        if "" in labels:
            raise UserError(f"{record.where} has an empty label: write one, or remove the line")
        if self.classes == "coarse":
            labels = tuple(label.partition(":")[0] for label in labels)
        if self.classes == "binary":
            if labels[0] not in POLARITY:
                raise UserError(
                    f"{record.where} has the label {labels[0]!r} where -s data.classes=binary wants 0 to 4: "
                    "mend it, or leave the setting out"
                )
            polarity = POLARITY[labels[0]]
            return None if polarity is None else LabelledText(text, (polarity,), record.where)
        return LabelledText(text, tuple(dict.fromkeys(labels)), record.where)


def read_labelled(files: LabelledFiles, bad: BadLines = FAIL) -> list[LabelledText]:
    """All texts of some files, of which there must be at least one.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "questions.txt"
    >>> _ = place.write_text("NUM:dist How far is it ?\\n")
    >>> read_labelled(LabelledFiles(place, classes="coarse"))[0].labels
    ('NUM',)
    """
    records = list(files.records(bad))
    if not records:
        raise UserError(f"{files.paths[0]} holds no texts with labels: give a file with at least one")
    return records


def _json_labels(where: str, value: dict[str, object], name: str) -> str | tuple[str, ...]:
    found = value.get(name)
    if not isinstance(found, list):
        return json_text(where, value, name)
    if any(isinstance(label, (list, dict)) or label is None for label in found):
        raise UserError(f"{where} has a label that is no word in field {name!r}: write a list of strings")
    return tuple(str(label).strip() for label in found)


def _columns(path: Path, format: Format, encoding: str, text: Column, label: Column) -> TableColumns | JsonFields:
    def find(bad: BadLines) -> TableColumns | JsonFields:
        lines = read_lines(path, encoding, bad)
        if format == "jsonl":
            return JsonFields.find(path, json_objects(path, lines, bad), text, label)
        return TableColumns.find(path, table_rows(path, lines, f".{format}", bad), text, label)

    return first_look(find)


def _files(named: list[Path], format: Format | None, encoding: str) -> tuple[list[Path], Format]:
    """The files (in place of a folder that holds them), and how they are written."""
    if not named:
        raise UserError("no file with labelled texts was named: give at least one")
    if format is not None and format not in get_args(Format):
        raise UserError(f"there is no format {format!r}: {nearest(format, get_args(Format))}")
    for path in named:
        if not path.exists():
            raise UserError(f"no such file: {path}")
    paths = named
    if len(named) == 1 and named[0].is_dir():
        within = sorted(path for path in named[0].iterdir() if not path.name.startswith("."))
        paths = [path for path in within if path.is_dir()] or within
    if not paths:
        raise UserError(f"the folder {named[0]} is empty: give it a folder or a file for each class")
    found = format or _guess_format(paths, encoding)
    if any(path.is_dir() != (found == "folders") for path in paths):
        raise UserError(f"{named[0]} cannot be read as {found}: name files, or folders that hold a class each")
    return paths, found


def _guess_format(paths: list[Path], encoding: str) -> Format:
    if all(path.is_dir() for path in paths):
        return "folders"
    formats = {_table_format(path) for path in paths}
    if len(formats) > 1:
        raise UserError(f"{paths[0]} and {paths[-1]} are written in different ways: name files of one kind")
    (format,) = formats
    if format is not None:
        return format
    lines = [line for path in paths for line in first_lines(path, encoding, FIRST)]
    if lines and all(TREE_LINE.match(line) for line in lines):
        return "trees"
    if lines and all(LABEL_LINE.match(line) for line in lines):
        return "lines"
    if len(paths) > 1:
        return "files"
    raise UserError(
        f"{paths[0]} does not show its labels: say -s data.format=lines if each line begins with one, "
        "or csv or tsv in the place of lines"
    )


def _table_format(path: Path) -> Format | None:
    formats: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
    return formats.get(table_kind(path))


def _class_names(paths: list[Path]) -> dict[str, Path]:
    """Classes are called as their folders or files, or where those differ only there, as the files' suffixes."""
    if all(path.is_dir() for path in paths):
        return {path.name: path for path in paths}
    plain = [Path(path.name.removesuffix(".gz")) for path in paths]
    for names in ([path.stem for path in plain], [path.suffix.lstrip(".") for path in plain]):
        if len(set(names)) == len(names) and all(names):
            return dict(zip(names, paths, strict=True))
    raise UserError(f"{paths[0]} and the others do not tell classes apart: give a file of its own name for each class")


def _texts_of(path: Path, encoding: str, bad: BadLines) -> Iterator[tuple[str, str]]:
    """The texts of one class, with where they stand: the files of a folder, or the lines of a file."""
    if not path.is_dir():
        for number, line in enumerate(read_lines(path, encoding, bad), 1):
            if line.strip():
                yield line, f"{path}:{number}"
        return
    for file in sorted(path.rglob("*")):
        if file.is_file() and not any(part.startswith(".") for part in file.relative_to(path).parts):
            yield "\n".join(read_lines(file, encoding, bad)), f"{file}:1"
