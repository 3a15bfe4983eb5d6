"""Records of one text each, with or without a label: CSV, TSV, JSON lines, plain lines."""

import csv
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from elman.cache import cache_folder
from elman.errors import RunError, UserError, nearest
from elman.files import write_json
from elman.records.lines import FAIL, BadLines, read_lines
from elman.records.readers import TABLES, TextFiles

FORMAT_VERSION = 1
Column = str | int | None


@dataclass(frozen=True, slots=True)
class Record:
    """One text, its label if it has one, and where it stands (`file:line`)."""

    text: str
    label: str | None = None
    where: str = ""


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

    def __init__(
        self,
        paths: Path | str | Sequence[Path | str],
        text: Column = None,
        label: Column = None,
        encoding: str = "utf-8",
    ) -> None:
        self.files = TextFiles(paths, encoding)
        self.text, self.label = text, label
        self._facts: RecordFacts | None = None

    def records(self, part: Part | None = None) -> Iterator[Record]:
        """The records, or a part of them, in order."""
        found = (
            record
            for path in self.files.paths
            for record in iterate_records(path, self.text, self.label, self.files.encoding)
        )
        return found if part is None else _drawn(found, self.facts().count, part)

    def identity(self) -> list[Any]:
        """What the records depend on, for the keys of caches."""
        digests = [facts.digest for facts in self.files.survey().files]
        kinds = [table_kind(path) for path in self.files.paths]
        return [FORMAT_VERSION, self.files.encoding, digests, kinds, self.text, self.label]

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


def _drawn(records: Iterator[Record], count: int, part: Part) -> Iterator[Record]:
    """Draw for each record as it comes: as many are wanted yet, out of as many as are yet to come."""
    generator = random.Random(part.seed)
    wanted, left = part.held, count
    for record in records:
        taken = generator.random() * left < wanted
        wanted, left = wanted - taken, left - 1
        if taken == part.inside:
            yield record


def read_records(path: Path | str, text: Column = None, label: Column = None, encoding: str = "utf-8") -> list[Record]:
    """The records of a `.csv`, `.tsv`, `.jsonl` (each perhaps `.gz`) or plain file, one a line.

    `text` and `label` name a column: by its name in the header or in the JSON object, or by its number from
    1. Without them the text is the column called `text`, else the first; the label is the column called
    `label`, else the second of two. A table has a header where its first row holds such a name.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "names.csv"
    >>> _ = place.write_text('"Adsit","Czech"\\n"Fabian","Polish"\\n')
    >>> read_records(place, text=1, label=2)[1].label
    'Polish'
    """
    records = list(iterate_records(Path(path), text, label, encoding, guess_label=True))
    if not records:
        raise UserError(f"{path} holds no records: give a file with at least one line of text")
    return records


def iterate_records(
    path: Path,
    text: Column = None,
    label: Column = None,
    encoding: str = "utf-8",
    *,
    guess_label: bool = False,
    bad: BadLines = FAIL,
) -> Iterator[Record]:
    """What `read_records` gives, one at a time; without `label` and without guessing the records have none.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "names.csv"
    >>> _ = place.write_text('"Adsit","Czech"\\n')
    >>> [record.label for record in iterate_records(place)]
    [None]
    """
    lines = read_lines(path, encoding, bad)
    kind = table_kind(path)
    if kind in (".csv", ".tsv"):
        return _table(path, table_rows(path, lines, kind, bad), text, label, guess_label)
    if kind in (".jsonl", ".ndjson"):
        return _json_lines(json_objects(path, lines, bad), text, label, guess_label, bad)
    if label is not None:
        raise UserError(f"{path} has plain lines without labels: give a .csv, .tsv or .jsonl file with column {label}")
    return (Record(line, None, f"{path}:{number}") for number, line in enumerate(lines, 1) if line.strip())


def table_kind(path: Path) -> str:
    """The suffix that says how a table is written, without `.gz`; empty for every other file.

    >>> table_kind(Path("a.CSV.gz")), table_kind(Path("a.txt"))
    ('.csv', '')
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    kind = suffixes[-1] if suffixes else ""
    return kind if kind in TABLES else ""


def table_rows(
    path: Path, lines: Iterator[str], kind: str, bad: BadLines = FAIL, *, quotes: bool = True
) -> Iterator[tuple[str, list[str]]]:
    """Where each row of a `.csv` or `.tsv` table ends, and its cells, as many as in the first row.

    Without `quotes` a quotation mark is a character like any other.

    >>> list(table_rows(Path("a.csv"), iter(['1,"a, b"', "", "2,c"]), ".csv"))
    [('a.csv:1', ['1', 'a, b']), ('a.csv:3', ['2', 'c'])]
    """
    width, mend = 0, "mend the row"
    with_ends = (line + "\n" for line in lines)  # for fields in quotes that go over several lines
    delimiter = "," if kind == ".csv" else "\t"
    rows = csv.reader(
        with_ends, delimiter=delimiter, strict=True, quoting=csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    )
    while True:
        try:
            row = next(rows, None)
        except csv.Error as error:
            bad(UserError(f"{path}:{rows.line_num} cannot be read as a table: {error}"))
            continue
        if row is None:
            return
        where = f"{path}:{rows.line_num}"
        if not width and len(row) == 1 and kind == ".csv" and ";" in row[0]:
            mend = "if semicolons separate its columns, write it with commas"
        width = width or len(row)
        if row and len(row) != width:
            bad(UserError(f"{where} has {len(row)} columns where the first row has {width}: {mend}"))
        elif row:
            yield where, row


def json_objects(path: Path, lines: Iterator[str], bad: BadLines = FAIL) -> Iterator[tuple[str, dict[str, object]]]:
    """Where each line of a `.jsonl` file stands, and its JSON object.

    >>> list(json_objects(Path("a.jsonl"), iter(['{"text": "a"}'])))
    [('a.jsonl:1', {'text': 'a'})]
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            bad(UserError(f"{where} is not JSON: {error}"))
            continue
        if "\\u" in line and (half := _half_pair(value)) is not None:
            bad(UserError(f"{where} has half a surrogate pair (\\u{half:x}), which is no character: mend the line"))
        elif isinstance(value, dict):
            yield where, value
        else:
            bad(UserError(f'{where} is not a JSON object: write one such as {{"text": ...}}'))


def _half_pair(value: object) -> int | None:
    """Half a surrogate pair in some text of a JSON value: it can be escaped, but is no character to work with."""
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        return ord(error.object[error.start])
    except RecursionError:  # far too deep for anything that is read from it
        return None
    return None


def empty_text(where: str) -> UserError:
    """What is said of a record without a text, wherever records are read.

    >>> str(empty_text("a.csv:7"))
    'a.csv:7 has an empty text: write one, or remove the line'
    """
    return UserError(f"{where} has an empty text: write one, or remove the line")


def _table(
    path: Path, rows: Iterator[tuple[str, list[str]]], text: Column, label: Column, guess_label: bool
) -> Iterator[Record]:
    columns: tuple[int, int | None] | None = None
    for where, row in rows:
        if columns is None:
            header = _is_header(row, text, label)
            columns = _columns(path, row, header, text, label, guess_label)
            if header:
                continue
        yield Record(row[columns[0]], None if columns[1] is None else row[columns[1]], where)


def _is_header(row: list[str], text: Column, label: Column) -> bool:
    names = {column for column in (text, label) if isinstance(column, str)} or {"text", "label"}
    return any(name in row for name in names)


def _columns(
    path: Path, row: list[str], header: bool, text: Column, label: Column, guess_label: bool
) -> tuple[int, int | None]:
    names = row if header else []
    if text is None:
        text = "text" if "text" in names else 1
    if label is None and guess_label:
        label = "label" if "label" in names else 2 if len(row) == 2 else None
    return column_index(path, row, text), None if label is None else column_index(path, row, label)


def column_index(path: Path, row: list[str], column: str | int) -> int:
    """Where in the first row of a table a column stands, given by its name or by its number from 1.

    >>> column_index(Path("a.csv"), ["id", "text"], "text"), column_index(Path("a.csv"), ["id", "text"], 1)
    (1, 0)
    """
    if isinstance(column, str):
        if column not in row:
            raise UserError(f"{path}:1 has no column called {column!r}: {nearest(column, row)}")
        return row.index(column)
    if not 1 <= column <= len(row):
        raise UserError(f"{path}:1 has {len(row)} columns, so there is no column {column}: count from 1")
    return column - 1


def _json_lines(
    objects: Iterator[tuple[str, dict[str, object]]], text: Column, label: Column, guess_label: bool, bad: BadLines
) -> Iterator[Record]:
    for where, value in objects:
        name = "label" if label is None and guess_label and "label" in value else label
        try:
            found = json_text(where, value, "text" if text is None else str(text))
            record = Record(found, None if name is None else json_text(where, value, str(name)), where)
        except UserError as error:
            bad(error)
        else:
            yield record


def json_text(where: str, value: dict[str, object], name: str) -> str:
    """The text in a field of a JSON object; numbers as they are written.

    >>> json_text("a.jsonl:1", {"stars": 3}, "stars")
    '3'
    """
    if name not in value:
        raise UserError(f"{where} has no field {name!r}: {nearest(name, value)}")
    found = value[name]
    if isinstance(found, (dict, list)) or found is None:
        raise UserError(f"{where} has no text in field {name!r}: write a string")
    return str(found)
