"""What `elman predict` and a model have to say to each other, whatever the task."""

import glob
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from elman.errors import UserError
from elman.records.decoding import is_binary
from elman.records.lines import BadLines, StreamLines, read_lines
from elman.records.paths import expand, standard_input
from elman.records.places import Place

ENDINGS = "csv|tsv|txt|jsonl?|ndjson|conllu?|gz|zip|md|html?|xml|xlsx?|parquet|pdf|docx?|jpe?g|png|gif|webp|bmp|tiff?"
LOOKS_LIKE_A_FILE = re.compile(rf"\S*[/\\]\S*|\S+\.({ENDINGS})", re.IGNORECASE)
IMAGES = (".jpg", ".jpeg", ".png", ".gif", ".webp", ".bmp", ".tif", ".tiff")
BY_A_PIPE = "(a text with such a name is given by a pipe)"


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
    several: bool = False
    """There are other files beside this one, so that JSON says of which a record is."""

    def to_json(self, where: Place | None, fields: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        """A record and what was found for it as JSON: its own fields, where it stands, and the prediction.

        A field of the record that has the name of something in the prediction is kept as `given_NAME`.

        >>> PredictOptions().to_json(Place(Path("a.csv"), 7), {"id": 1, "label": "spam"}, {"label": "ham"})
        '{"id": 1, "given_label": "spam", "line": 7, "label": "ham"}'
        """
        shown: dict[str, Any] = {"file": str(self.where)} if self.several else {}
        shown |= {**({} if where is None else {"line": where.line}), **found}
        kept = {f"given_{name}" if name in shown else name: value for name, value in fields.items()}
        return json.dumps(kept | shown, ensure_ascii=False)


def read_texts(reader: Any, lines: Iterable[str], options: PredictOptions) -> Iterator[Any]:
    """The records in lines, as the options say that they are written, else as those that the model learned from."""
    column = int(options.column) if options.column is not None and options.column.isdecimal() else options.column
    told: dict[str, Any] = {"format": options.format, "column": column, "live": options.more is not None}
    return iter(reader.lines(lines, options.where, options.bad, **told))


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


def inputs(
    given: Sequence[str],
    encoding: str,
    say: Callable[[str], None] = lambda line: None,
    *,
    images: bool = False,
    option: str = "--encoding ",
) -> Iterator[Input]:
    """What arguments of `elman predict` stand for: standard input, files, folders, patterns, else a text itself.

    Of folders, files that are no text are left out, which `say` is told. With `images`, files and folders of such stand
    for lines that name them, and a text is the path of one. `option` is what a user types before another encoding.
    """
    if images:
        given, named = _without_images(given)
        if named:
            yield Input(Path("images"), partial(_themselves, named))
    for number, name in enumerate(given, 1):
        if name == "-":
            yield _standard_input(encoding, option)
        elif not name.strip():
            raise UserError(f"text {number} of {len(given)} is empty: give it at least one character")
        elif _is_file(name) or (glob.has_magic(name) and " " not in name):
            if not _is_file(name) and not glob.glob(name, recursive=True):  # noqa: PTH207 (it may begin anywhere)
                raise UserError(f"no file matches {name}: check the pattern {BY_A_PIPE}")
            for path in expand(name) if not Path(name).is_dir() else _texts_in(Path(name), encoding, say):
                yield Input(path, partial(read_lines, path, encoding, option=option), path)
        elif LOOKS_LIKE_A_FILE.fullmatch(name):
            raise UserError(f"no such file: {name}; check the name {BY_A_PIPE}")
        else:
            yield Input(Path("the text"), partial(_itself, name))


def _texts_in(folder: Path, encoding: str, say: Callable[[str], None]) -> list[Path]:
    files = expand(folder)
    binary = [path for path in files if is_binary(path, encoding)]
    if len(binary) == len(files):
        raise UserError(f"the folder {folder} holds no text files: name another")
    if binary:
        more = f" and {len(binary) - 1} more" if len(binary) > 1 else ""
        say(f"{binary[0]}{more} {'are' if more else 'is'} left out: not text, as it seems")
    return [path for path in files if path not in binary]


def _itself(text: str, bad: BadLines) -> list[str]:
    return [text]


def _themselves(texts: list[str], bad: BadLines) -> list[str]:
    return texts


def _without_images(given: Sequence[str]) -> tuple[list[str], list[str]]:
    """What of some arguments names no images, and the images that the others name: files, patterns and folders."""
    others, found = list[str](), list[str]()
    for name in given:
        is_pattern = glob.has_magic(name) and not _is_file(name)
        if name == "-" or not (_is_file(name) or is_pattern):
            others.append(name)
            continue
        folder = Path(name).is_dir()
        files = expand(name)
        seen = [str(path) for path in files if path.suffix.lower() in IMAGES]
        if folder and not seen:
            raise UserError(f"the folder {name} holds no images: name another")
        found += seen
        others += [] if folder else [str(path) for path in files if path.suffix.lower() not in IMAGES]
    return others, found


def _standard_input(encoding: str, option: str) -> Input:
    streams: list[StreamLines] = []

    def read(bad: BadLines) -> Iterable[str]:
        streams.append(StreamLines(standard_input(), Path("-"), encoding, bad, option))
        return streams[0]

    return Input(Path("-"), read, more=lambda: streams[0].more() if streams else not sys.stdin.isatty())
