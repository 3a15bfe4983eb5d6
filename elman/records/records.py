"""Records of one text each, with or without a label: CSV, TSV, JSON, plain lines."""

import json
import random
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from elman.cache import cache_folder
from elman.errors import RunError, UserError
from elman.files import write_json
from elman.records.columns import LineRoles, Parts
from elman.records.lines import FAIL, BadLines, numbered, read_lines
from elman.records.paths import Paths
from elman.records.places import Place
from elman.records.reader import Files, TwoPartReader
from elman.records.running_text import TextFiles
from elman.records.tables import Column, table_format, text_of

FORMAT_VERSION = 2


@dataclass(frozen=True, slots=True)
class Record:
    """One text, its label if it has one, where it stands, and the fields beside it."""

    text: str
    label: str | None = None
    where: Place | None = None
    fields: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


class RecordReader(TwoPartReader[Record]):
    """Reads texts of their own: one a line, a row or an object; their labels where it is told of their column.

    `text` and `label` are columns by name or by number from 1. Without them the text is the column called `text`, else
    the first; with `guess_label`, the label is the column called `label`, else the second of two.

    >>> [record.text for record in RecordReader().objects(["one", ("two", "x"), {"id": 3, "text": "three"}])]
    ['one', 'two', 'three']
    """

    kind = Record

    def __init__(
        self, *, text: Column = None, label: Column = None, guess_label: bool = False, encoding: str = "utf-8"
    ) -> None:
        super().__init__(None, (), (text, label), encoding)
        self.roles = LineRoles(guesses=guess_label)

    def files(self, paths: Paths) -> Files[Record]:
        """The records of files, or of all text files and tables of a folder, each read as its ending says."""
        places = TextFiles(paths, self.encoding).paths
        for path in places:
            if table_format(path) is None and self.told[1] is not None:
                column = f"column {self.told[1]}"
                raise UserError(
                    f"{path} has plain lines without labels: give a .csv, .tsv or .jsonl file with {column}"
                )
        return Files(places, "", "records", lambda bad: (each for path in places for each in self._file(path, bad)))

    def record(self, parts: Parts, name: Column) -> Record:
        """A text as it stands, with its label."""
        label = None if name is None else text_of(parts.where, parts.second, name)
        return Record(parts.first, label, parts.where)

    def question(self, where: Place, text: str, fields: dict[str, Any]) -> Record:
        return Record(text, None, where, fields)

    def _object(self, where: Place, item: Any, columns: Any) -> Record | None:
        return Record(item, None, where) if isinstance(item, str) else super()._object(where, item, columns)

    def _file(self, path: Path, bad: BadLines) -> Iterator[Record]:
        format = table_format(path)
        if format is None:
            return (Record(line, None, where) for where, line in numbered(path, read_lines(path, self.encoding, bad)))
        return self.read_table([path], format, self.find_columns(path, format), bad)


@dataclass(frozen=True)
class RecordFacts:
    """How many records some files hold, how many characters of text, and the names of their labels, sorted."""

    count: int
    characters: int
    labels: list[str]


@dataclass(frozen=True)
class Part:
    """The records that a seeded draw of `held` records takes, or (not `inside`) all those that it leaves."""

    held: int
    seed: int
    inside: bool


class RecordFiles:
    """The records of one file, several, or all text files and tables of a folder; read anew each time.

    `label` is the column of the labels; without it the records have none.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("text,label\\none,x\\n")
    >>> _ = (folder / "b.txt").write_text("two\\n\\nthree\\n")
    >>> files = RecordFiles(folder)
    >>> [record.text for record in files.records()]
    ['one', 'two', 'three']
    >>> [record.text for record in files.records(Part(held=1, seed=3, inside=True))]
    ['one']
    """

    def __init__(self, paths: Paths, text: Column = None, label: Column = None, encoding: str = "utf-8") -> None:
        self.files = TextFiles(paths, encoding)
        self.text, self.label = text, label
        self._records = RecordReader(text=text, label=label, encoding=encoding).files(self.files.paths)
        self._facts: RecordFacts | None = None

    def records(self, part: Part | None = None) -> Iterator[Record]:
        """The records, or a part of them, in order."""
        return iter(self._records) if part is None else _drawn(self._records, self.facts().count, part)

    def identity(self) -> list[Any]:
        """What the records depend on, for the keys of caches."""
        digests = [facts.digest for facts in self.files.survey().files]
        formats = [table_format(path) for path in self.files.paths]
        return [FORMAT_VERSION, self.files.encoding, digests, formats, self.text, self.label]

    def facts(self, memo: Path | None = None) -> RecordFacts:
        """One pass over the records, or none where the folder `memo` knows them; part of the cache by default."""
        if self._facts is None:
            folder = memo or cache_folder() / "records"
            place = folder / f"{blake2b(json.dumps(self.identity()).encode(), digest_size=16).hexdigest()}.json"
            self._facts = _read_facts(place) or self._count(place)
        return self._facts

    def _count(self, place: Path) -> RecordFacts:
        count, characters = 0, 0
        labels: set[str] = set()
        for record in self.records():
            count += 1
            characters += len(record.text) + 1
            if record.label is not None:
                labels.add(record.label)
        if not count:
            raise UserError(f"{self.files.paths[0]} holds no records: give a file with at least one line of text")
        facts = RecordFacts(count, characters, sorted(labels))
        with suppress(UserError, RunError):  # a memo that cannot be kept costs time, nothing else
            write_json(place, asdict(facts))
        return facts


def _read_facts(place: Path) -> RecordFacts | None:
    try:
        return RecordFacts(**json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _drawn(records: Iterable[Record], count: int, part: Part) -> Iterator[Record]:
    """Draw for each record as it comes: as many are wanted yet, out of as many as are yet to come."""
    generator = random.Random(part.seed)
    wanted, left = part.held, count
    for record in records:
        taken = generator.random() * left < wanted
        wanted, left = wanted - taken, left - 1
        if taken == part.inside:
            yield record


def read_records(
    path: Path | str, text: Column = None, label: Column = None, encoding: str = "utf-8", bad: BadLines = FAIL
) -> list[Record]:
    """The records of a file, one a line, a row or an object; a label is looked for where it is not told.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "names.csv"
    >>> _ = place.write_text('"Adsit","Czech"\\n"Fabian","Polish"\\n')
    >>> read_records(place, text=1, label=2)[1].label
    'Polish'
    """
    return RecordReader(text=text, label=label, guess_label=True, encoding=encoding).files(path).read(bad)
