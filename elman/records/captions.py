"""Images with their captions, one record an image: from a table beside a folder of images, or a file of COCO's kind.

tsv, csv      a column of images and one of captions, several rows an image        captions.tsv
jsonl, json   a field of each; the captions may be a list                          captions.jsonl
coco          {"images": [{"id", "file_name"}], "annotations": [{"image_id", "caption"}]}   captions_val2014.json
"""

import json
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, cast, get_args

from elman.errors import UserError
from elman.records import tables
from elman.records.columns import Parts, Roles, Rows, named_column
from elman.records.images import image_path
from elman.records.lines import FAIL, BadLines, first_lines, made, read_lines
from elman.records.paths import Paths, named
from elman.records.places import Place, RecordError
from elman.records.reader import Files, TwoPartReader, is_table, one_format
from elman.records.tables import Column, half_pair, table_format, text_of

Format = Literal["tsv", "csv", "jsonl", "json", "coco"]
IMAGES = ("image", "file_name", "filename", "image_name", "file", "path", "image_id", "img")
CAPTIONS = ("caption", "captions", "sentence", "sentences", "description", "text", "raw", "comment")
FIRST = 20  # lines that are looked at where the name of a file does not tell how it is written


@dataclass(frozen=True, slots=True)
class CaptionedImage:
    """An image by its path, the captions that are right for it, where the first stands, and the fields beside it."""

    image: Path
    captions: tuple[str, ...]
    where: Place | None = field(default=None, compare=False)
    fields: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


class CaptionReader(TwoPartReader[CaptionedImage]):
    """Reads images with their captions: of files, of data in memory, and images alone to predict for.

    A folder stands for the captions file in it. `image` and `caption` are columns by name or by number from 1; `images`
    is the folder that the names of images are relative to, else they stand beside the captions file, or in a folder
    `images` there. A caption of which `ready` leaves nothing is no caption.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "captions.tsv").write_text("image\\tcaption\\na.jpg\\tA dog.\\na.jpg\\tSome dog.\\n")
    >>> _ = (folder / "a.jpg").write_bytes(b"")
    >>> [(record.image.name, record.captions) for record in CaptionReader().files(folder)]
    [('a.jpg', ('A dog.', 'Some dog.'))]
    """

    kind = CaptionedImage
    roles = Roles("image", "caption", (IMAGES, CAPTIONS), "-s data.image=NAME -s data.caption=NAME")
    quotes = False

    def __init__(
        self,
        *,
        format: Format | None = None,
        image: Column = None,
        caption: Column = None,
        images: str | Path | None = None,
        encoding: str = "utf-8",
        ready: Callable[[str], str] = str,
    ) -> None:
        super().__init__(format, get_args(Format), (image, caption), encoding)
        self.images, self.ready = images, ready

    def files(self, paths: Paths) -> Files[CaptionedImage]:
        """The images of one captions file, of several, or of folders with one each."""
        places = [captions_file(path) if path.is_dir() else path for path in named(paths)]
        format = self.format or self._guess_format(places)
        if not is_table(format):
            return Files(places, format, "images", lambda bad: self._whole(self._coco(places)))
        table = cast(tables.Format, format)
        columns = replace(self.find_columns(places[0], table), keeps=True)
        read = partial(self.read_table, places, table, columns)
        return Files(places, format, "images", lambda bad: self._whole(read(bad)), columns.guess)

    def objects(self, data: Iterable[Any], name: str = "train", bad: BadLines = FAIL) -> Iterator[CaptionedImage]:
        """The images of data in memory: (path, caption) or (path, [caption, ...]), mappings, a data frame."""
        items = ((str(item[0]), item[1]) if _is_pair(item) else item for item in data) if _is_plain(data) else data
        return self._whole(super().objects(items, name, bad))

    def record(self, parts: Parts, name: Column) -> CaptionedImage:
        """One row: an image with one caption, or with a list of them."""
        several = parts.second if isinstance(parts.second, (list, tuple)) else [parts.second]
        captions = tuple(text_of(parts.where, one, name).strip() for one in several)
        if not parts.first.strip():
            raise RecordError(parts.where, "names no image: write its path, or remove the line")
        return CaptionedImage(
            image_path(parts.first.strip(), parts.where, self.images), captions, parts.where, parts.fields
        )

    def question(self, where: Place, text: str, fields: dict[str, Any]) -> CaptionedImage:
        return CaptionedImage(image_path(text, where, self.images), (), where, fields)

    def lines(
        self,
        lines: Iterable[str],
        where: Path,
        bad: BadLines = FAIL,
        *,
        format: str | None = None,
        column: Column = None,
        live: bool = False,
    ) -> Iterator[CaptionedImage]:
        """Images to write captions for: those that a table or a file of COCO's kind names, else paths, one a line.

        Names are of images in `images`; paths are from where the user is. `format` is csv, tsv, jsonl, json, coco or
        txt. An image with captions comes once where its rows stand together.
        """
        written = format or table_format(where)
        reader = self
        if written in (None, "txt"):
            reader = copy(self)
            reader.images = None
        elif written in ("json", "coco"):
            rest = iter(lines)
            head = list(islice(rest, 1))
            lines = chain(head, rest)
            if written == "coco" or _is_coco("".join(head).strip()):
                named = _pairs(where, _whole_file(where, lines), "images", "id", "file_name")
                numbered = ((Place(where, number), name) for number, (_, name) in enumerate(named, 1))
                return made((partial(self.question, place, name, {}) for place, name in numbered), bad)
        return super(CaptionReader, reader).lines(lines, where, bad, format=format, column=column, live=live)

    def _first_parts(self, where: Path | str, rows: Rows, column: Column, bad: BadLines) -> Iterator[Parts]:
        last = None
        for part in super()._first_parts(where, rows, column, bad):
            captioned = self.told[1] in part.fields or named_column(list(part.fields), CAPTIONS) is not None
            if not captioned or part.first != last:
                yield part
            last = part.first

    def _whole(self, rows: Iterable[CaptionedImage]) -> Iterator[CaptionedImage]:
        """Each image once, with the captions of all its rows; refused where one has none."""
        grouped: dict[Path, CaptionedImage] = {}
        for row in rows:
            known = grouped.get(row.image)
            own = tuple(caption for caption in row.captions if self.ready(caption))
            before, first = ((), row) if known is None else (known.captions, known)
            grouped[row.image] = replace(first, captions=(*before, *own))
        for record in grouped.values():
            if not record.captions:
                raise RecordError(
                    cast(Place, record.where), f"has no caption for {record.image.name}: write one, in words"
                )
        return iter(grouped.values())

    def _coco(self, places: Iterable[Path]) -> Iterator[CaptionedImage]:
        for path in places:
            whole = _whole_file(path, read_lines(path, self.encoding))
            names: dict[int | str, str] = {}
            captions: dict[int | str, list[str]] = {}
            for number, (image, name) in enumerate(_pairs(path, whole, "images", "id", "file_name"), 1):
                if image in names:
                    raise UserError(f"{path}: image {number} has the id {image!r} of another: give it one of its own")
                names[image], captions[image] = name, []
            for number, (image, caption) in enumerate(_pairs(path, whole, "annotations", "image_id", "caption"), 1):
                if image not in captions:
                    raise UserError(f"{path}: annotation {number} is of an image with the id {image!r}: there is none")
                captions[image].append(caption.strip())
            for number, (image, name) in enumerate(names.items(), 1):
                where = Place(path, number)
                yield CaptionedImage(image_path(name, where, self.images), tuple(captions[image]), where)

    def _guess_format(self, paths: list[Path]) -> str:
        found = one_format(paths, map(table_format, paths))
        if found is None:
            found = self.shown_format(first_lines(paths[0], self.encoding, FIRST))
        if found is None:
            raise UserError(
                f"{paths[0]} does not show its captions: name a .tsv, .csv, .jsonl or .json with images and captions"
            )
        if found == "json" and any('"annotations"' in line for line in read_lines(paths[0], self.encoding)):
            return "coco"
        return found


def _is_coco(line: str) -> bool:
    """Whether a .json file that begins with a line is one of COCO's, and has neither an array nor an object a line."""
    return line.startswith("{") and ('"images"' in line or not line.endswith("}"))


def _whole_file(path: Path, lines: Iterable[str]) -> Any:
    try:
        return json.loads("\n".join(lines))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path} is no file of COCO captions: it is no JSON ({error})") from None


def _pairs(path: Path, whole: Any, table: str, number: str, text: str) -> Iterator[tuple[int | str, str]]:
    """Of each object in a list of COCO's its number and its text."""
    items = whole.get(table) if isinstance(whole, dict) else None
    if not isinstance(items, list):
        raise UserError(f"{path} is no file of COCO captions: it should have lists of images and of annotations")
    for at, item in enumerate(items, 1):
        found = (item.get(number), item.get(text)) if isinstance(item, dict) else (None, None)
        if half_pair(found) is not None:
            raise UserError(f"{path}: {table[:-1]} {at} has half a surrogate pair, which is no character: mend it")
        if not isinstance(found[0], (int, str)) or not isinstance(found[1], str):
            raise UserError(
                f"{path} is no file of COCO captions: {table[:-1]} {at} should have {number}, a number or a text, and "
                f"{text}, a text"
            )
        yield found[0], found[1]


def captions_file(folder: Path) -> Path:
    """The captions file of a folder of images: its only table, or the one called captions."""
    tables = sorted(path for path in folder.iterdir() if path.is_file() and table_format(path) is not None)
    called = [path for path in tables if path.name.lower().startswith("captions.")]
    if len(found := called or tables) == 1:
        return found[0]
    if not found:
        raise UserError(
            f"the folder {folder} has no captions file: put a captions.tsv with the columns image and caption in it"
        )
    raise UserError(f"the folder {folder} has {len(found)} tables ({found[0].name}, {found[1].name}): name one of them")


def _is_plain(data: Any) -> bool:
    return isinstance(data, (list, tuple, Iterator))


def _is_pair(item: Any) -> bool:
    return isinstance(item, (list, tuple)) and len(item) == 2
