"""What `elman predict` and a model have to say to each other, whatever the task."""

import glob
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from elman.errors import UserError
from elman.records.lines import BadLines, StreamLines, read_lines
from elman.records.paths import expand, standard_input
from elman.records.places import Place

LOOKS_LIKE_A_FILE = re.compile(r"\S*[/\\]\S*|\S+\.(csv|tsv|txt|jsonl?|ndjson|conllu?|gz|md)")


@dataclass(frozen=True)
class PredictOptions:
    """How records are to be read and results to be written."""

    where: Path = Path("-")
    """What the lines come from, for messages (`new.csv:7`)."""
    format: str | None = None
    """How the records are written, as `--format` says; else it follows the ending of `where`."""
    column: str | None = None
    """The column or field of the text, by name or by number from 1, in tables and JSON lines."""
    as_json: bool = False
    """One JSON object a record, in place of text for people and other programs."""
    colour: bool = False
    """The output goes to a terminal that shows colours."""
    asked: dict[str, Any] = field(default_factory=dict)
    """What is asked of the predictions, by the names of the task's options."""
    bad: BadLines = field(default_factory=BadLines)
    say: Callable[[str], None] = field(default=lambda sentence: None)
    """Tells the user something that is no error."""
    window: int = 4096
    """Records held in memory at a time."""
    more: Callable[[], bool] | None = None
    """Whether the next line is there already, where lines come as they are made: then nobody waits for others."""


def read_texts(reader: Any, lines: Iterable[str], options: PredictOptions) -> Iterator[Any]:
    """The records in lines, as the options say that they are written, else as those that the model learned from."""
    column = int(options.column) if options.column is not None and options.column.isdecimal() else options.column
    told: dict[str, Any] = {"format": options.format, "column": column, "live": options.more is not None}
    return iter(reader.lines(lines, options.where, options.bad, **told))


def heading(where: Place | None, text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """What the JSON of every prediction begins with: the fields beside the text are kept."""
    return {**fields, **({} if where is None else {"line": where.line}), "text": text}


@dataclass(frozen=True)
class Input:
    """Something to predict for: a file, standard input, or a text."""

    where: Path
    read: Callable[[BadLines], Iterable[str]]
    path: Path | None = None
    more: Callable[[], bool] | None = None

    def lines(self, bad: BadLines) -> Iterator[str]:
        """Its lines."""
        return iter(self.read(bad))


def are_names(given: Sequence[Any]) -> bool:
    """Whether texts are names of files, and not records themselves.

    >>> are_names(["a.csv", "b.csv"]), are_names(["The cat sat.", "A dog ran."]), are_names([("a", "b")])
    (True, False, False)
    """
    if not all(isinstance(one, str | Path) for one in given):
        return False
    return any(isinstance(one, Path) or LOOKS_LIKE_A_FILE.fullmatch(one) or _is_file(one) for one in given)


def _is_file(name: str) -> bool:
    try:
        return name == "-" or Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False


def inputs(given: Sequence[str], encoding: str) -> Iterator[Input]:
    """What arguments of `elman predict` stand for: standard input, files, folders, patterns, else a text itself."""
    for name in given:
        if name == "-":
            yield _standard_input(encoding)
        elif _is_file(name) or (glob.has_magic(name) and " " not in name):
            for path in expand(name):
                yield Input(path, partial(read_lines, path, encoding, option="--encoding "), path)
        elif LOOKS_LIKE_A_FILE.fullmatch(name):
            raise UserError(f"no such file: {name}; check the name (a text with such a name is given by a pipe)")
        else:
            yield Input(Path("the text"), partial(_itself, name))


def _itself(text: str, bad: BadLines) -> list[str]:
    return [text]


def _standard_input(encoding: str) -> Input:
    streams: list[StreamLines] = []

    def read(bad: BadLines) -> Iterable[str]:
        streams.append(StreamLines(standard_input(), Path("-"), encoding, bad, "--encoding "))
        return streams[0]

    return Input(Path("-"), read, more=lambda: streams[0].more() if streams else not sys.stdin.isatty())
