"""Texts with their classes, whatever they are written in, one at a time: a file of any size in constant memory.

csv, tsv      a column of texts and one of labels       train.csv
jsonl, json   a field of each                           train.jsonl
lines         `LABEL text`, the label before a blank    TREC.train
trees         bracketed trees, the label of the root    sst-trees/train.txt
files         a file a class, each line a text          rt-polarity.pos rt-polarity.neg
folders       a folder a class, each file a text        reviews/
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, cast, get_args

from elman.errors import UserError, nearest
from elman.records import tables
from elman.records.columns import Parts, Roles
from elman.records.lines import FAIL, BadLines, first_lines, numbered, read_lines
from elman.records.paths import Paths, named, visible_files
from elman.records.places import Place, RecordError
from elman.records.reader import Files, TwoPartReader, is_table, one_format
from elman.records.tables import Column, empty_text, table_format, text_of
from elman.records.trees import TREE_LINE, iterate_trees

Format = Literal["csv", "tsv", "jsonl", "json", "lines", "trees", "files", "folders"]
Classes = Literal["fine", "coarse", "binary"]
LABEL_LINE = re.compile(r"[A-Za-z_]\w*:\w+[ \t]+\S")
FIRST = 20  # lines that are looked at where the name of a file does not tell how it is written
POLARITY = {"0": "negative", "1": "negative", "2": None, "3": "positive", "4": "positive"}


@dataclass(frozen=True, slots=True)
class LabelledText:
    """One text, its labels (one, as many as it has, or none yet), where it stands, and the fields beside it.

    A text that is not `whole` is a phrase of the tree that stands there.
    """

    text: str
    labels: tuple[str, ...]
    where: Place | None = None
    fields: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    whole: bool = True


class LabelledReader(TwoPartReader[LabelledText]):
    """Reads texts with their labels: of files, of data in memory, and without labels of lines to predict for.

    `format` is guessed from the names and the first lines where it is not given. `text` and `label` are columns by
    name or by number from 1; where one is missing it is guessed, and `guess` of the files is the sentence that says so.
    A `separator` cuts the label into several. `classes`: "fine" takes labels as they stand, "coarse" what comes before
    the colon (`NUM` of `NUM:dist`), "binary" makes positive and negative of the five grades of sentiment trees and
    leaves the neutral ones out. With `phrases` the nodes of trees follow the sentences, as texts with their own labels.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "films.csv"
    >>> _ = place.write_text("id,review,sentiment\\n1,a fine film,good\\n2,dull,bad\\n")
    >>> reader = LabelledReader()
    >>> files = reader.files(place)
    >>> [(record.text, record.labels) for record in files]
    [('a fine film', ('good',)), ('dull', ('bad',))]
    >>> files.guess
    "films.csv: the text is column 'review', the label is column 'sentiment' (guessed)"
    >>> [record.labels for record in reader.objects([("dull", "bad"), {"text": "good", "labels": ["x", "y"]}])]
    [('bad',), ('x', 'y')]
    >>> [(record.text, record.fields) for record in reader.lines(['{"id": 7, "text": "dull"}'], Path("new.jsonl"))]
    [('dull', {'id': 7})]
    """

    kind = LabelledText
    roles = Roles()

    def __init__(
        self,
        *,
        format: Format | None = None,
        text: Column = None,
        label: Column = None,
        separator: str | None = None,
        classes: Classes = "fine",
        phrases: bool = False,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(format, get_args(Format), (text, label), encoding)
        if classes not in get_args(Classes):
            raise UserError(f"data.classes={classes!r} is none: {nearest(classes, get_args(Classes))}")
        self.separator, self.classes, self.phrases = separator, classes, phrases

    def files(self, paths: Paths) -> Files[LabelledText]:
        """The texts of some files, of a folder of them, or of folders that hold a class each."""
        places, format = self._files(named(paths))
        asked = {"data.classes=binary": self.classes == "binary", "data.phrases=true": self.phrases}
        for setting in (setting for setting, given in asked.items() if given and format != "trees"):
            raise UserError(f"-s {setting} is for sentiment trees, and {places[0]} is not one: leave it out")
        if is_table(format):
            table = cast(tables.Format, format)
            columns = self.find_columns(places[0], table)
            read = partial(self.read_table, places, table, columns)
            return Files(places, format, "texts with labels", read, columns.guess)
        if any(self.told):
            raise UserError(
                f"{places[0]} has no columns: leave data.text_column and data.label_column out, "
                "or give -s data.format=csv"
            )

        def texts(bad: BadLines) -> Iterator[LabelledText]:
            yield from self.made(self._parts(places, format, bad), "label", bad)
            if self.phrases:
                for phrase in self.made(self._phrases(places, bad), "label", bad):
                    yield replace(phrase, whole=False)

        return Files(places, format, "texts with labels", texts)

    def record(self, parts: Parts, name: Column) -> LabelledText | None:
        """A text with its labels; neutral trees are left out where there are two classes."""
        where, text = parts.where, parts.first.strip()
        labels = self._labels(where, parts.second, name)
        if not text:
            raise empty_text(where)
        if "" in labels:
            raise RecordError(where, "has an empty label: write one, or remove the line")
        if self.classes == "coarse":
            labels = tuple(label.partition(":")[0] for label in labels)
        if self.classes == "binary":
            if labels[0] not in POLARITY:
                raise RecordError(
                    where,
                    f"has the label {labels[0]!r} where -s data.classes=binary wants 0 to 4: "
                    "mend it, or leave the setting out",
                )
            polarity = POLARITY[labels[0]]
            return None if polarity is None else LabelledText(text, (polarity,), where)
        return LabelledText(text, tuple(dict.fromkeys(labels)), where)

    def question(self, where: Place, text: str, fields: dict[str, Any]) -> LabelledText:
        return LabelledText(text, (), where, fields)

    def _labels(self, where: Place, value: Any, name: Column) -> tuple[str, ...]:
        if isinstance(value, (list, tuple)):
            if any(isinstance(label, (list, dict)) or label is None for label in value):
                raise RecordError(where, f"has a label that is no word in field {name!r}: write a list of strings")
            return tuple(str(label).strip() for label in value)
        label = text_of(where, value, name)
        if self.separator is None:
            return (label.strip(),)
        return tuple(part.strip() for part in label.split(self.separator) if part.strip())

    def _parts(self, paths: list[Path], format: str, bad: BadLines) -> Iterator[Parts]:
        """Texts and labels as they stand in files without columns."""
        if format in ("files", "folders"):
            yield from self._of_classes(paths, bad)
            return
        for path in paths:
            if format == "trees":
                for tree, where in iterate_trees(path, self.encoding, bad):
                    yield Parts(where, " ".join(tree.tokens()), (tree.label,), {})
                continue
            for where, line in numbered(path, read_lines(path, self.encoding, bad)):
                label, text = [*line.split(maxsplit=1), ""][:2]
                yield Parts(where, text, label, {})

    def _phrases(self, paths: list[Path], bad: BadLines) -> Iterator[Parts]:
        """The nodes of trees below their roots."""
        for path in paths:
            for tree, where in iterate_trees(path, self.encoding, bad):
                for node in islice(tree.nodes(), 1, None):
                    yield Parts(where, " ".join(node.tokens()), (node.label,), {})

    def _of_classes(self, paths: list[Path], bad: BadLines) -> Iterator[Parts]:
        for name, path in _class_names(paths).items():
            empty = True
            for where, text in _texts_of(path, self.encoding, bad):
                empty = False
                yield Parts(where, text, (name,), {})
            if empty:
                raise UserError(f"the class {name!r} is empty: put texts into {path}, or remove it")

    def _files(self, paths: list[Path]) -> tuple[list[Path], str]:
        """The files (in place of a folder that holds them), and how they are written."""
        if not paths:
            raise UserError("no file with labelled texts was named: give at least one")
        files = paths
        if len(paths) == 1 and paths[0].is_dir():
            within = sorted(path for path in paths[0].iterdir() if not path.name.startswith("."))
            files = [path for path in within if path.is_dir()] or within
        if not files:
            raise UserError(f"the folder {paths[0]} is empty: give it a folder or a file for each class")
        format = self.format or self._guess_format(files)
        if any(path.is_dir() != (format == "folders") for path in files):
            raise UserError(f"{paths[0]} cannot be read as {format}: name files, or folders that hold a class each")
        return files, format

    def _guess_format(self, paths: list[Path]) -> str:
        if all(path.is_dir() for path in paths):
            return "folders"
        if (format := one_format(paths, map(table_format, paths))) is not None:
            return format
        lines = [line for path in paths for line in first_lines(path, self.encoding, FIRST)]
        if lines and all(TREE_LINE.match(line) for line in lines):
            return "trees"
        if lines and all(LABEL_LINE.match(line) for line in lines):
            return "lines"
        if (format := self.shown_format(lines)) is not None:
            return format
        if len(paths) > 1:
            return "files"
        raise UserError(
            f"{paths[0]} does not show its labels: say -s data.format=lines if each line begins with one, "
            "or csv or tsv in the place of lines"
        )


def iterate_texts(
    path: Path, text: Column = None, encoding: str = "utf-8", bad: BadLines = FAIL
) -> Iterator[LabelledText]:
    """Texts to be classified, of a file: a column of a table, a field of JSON lines, or the lines themselves.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "new.txt"
    >>> _ = place.write_text("one\\n\\nthree\\n")
    >>> [record.text for record in iterate_texts(place, bad=BadLines("skip"))]
    ['one', 'three']
    """
    return LabelledReader().lines(read_lines(path, encoding, bad), path, bad, column=text)


def _class_names(paths: list[Path]) -> dict[str, Path]:
    """Classes are called as their folders or files, or where those differ only there, as the files' suffixes."""
    if all(path.is_dir() for path in paths):
        return {path.name: path for path in paths}
    plain = [Path(path.name.removesuffix(".gz")) for path in paths]
    for names in ([path.stem for path in plain], [path.suffix.lstrip(".") for path in plain]):
        if len(set(names)) == len(names) and all(names):
            return dict(zip(names, paths, strict=True))
    raise UserError(f"{paths[0]} and the others do not tell classes apart: give a file of its own name for each class")


def _texts_of(path: Path, encoding: str, bad: BadLines) -> Iterable[tuple[Place, str]]:
    """The texts of one class, with where they stand: the files of a folder, or the lines of a file."""
    if not path.is_dir():
        return numbered(path, read_lines(path, encoding, bad))
    return ((Place(file, 1), "\n".join(read_lines(file, encoding, bad))) for file in visible_files(path))
