"""Questions about images, or statements: an image, a text and an answer, from tables and JSON lines."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from elman.errors import UserError, nearest
from elman.records.columns import Columns, Parts, Roles, Two, named_column
from elman.records.images import image_path
from elman.records.paths import Paths, expand
from elman.records.places import Place, RecordError
from elman.records.reader import Files, TwoPartReader, one_format
from elman.records.tables import Column, Format, Row, empty_text, is_missing, table_format, text_of

IMAGES = ("image", "img", "photo", "picture", "file", "filename", "file_name", "path", "image_path")
TYPES = ("type", "question_type", "kind")
QUESTIONS = ("question", "statement", "text", "sentence", "hypothesis", "query", "caption")
ANSWERS = ("answer", "label", "class", "target", "truth")


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """A question about an image, its answer (or none yet), its type where it has one, and where it stands."""

    image: Path
    text: str
    labels: tuple[str, ...]
    type: str | None = None
    where: Place | None = None
    fields: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True)
class QuestionRoles(Roles):
    """A question and its answer, in columns beside that of the images (`image`, else one of a usual name)."""

    first: str = "question"
    second: str = "answer"
    usual: tuple[tuple[str, ...], tuple[str, ...]] = (QUESTIONS, ANSWERS)
    options: str = "-s data.question=NAME -s data.answer=NAME"
    image: str | None = None

    def fill(self, row: Row, names: list[str], told: Two, sample: Sequence[Row]) -> Two:
        """Both columns, neither of which is guessed to be that of the images."""
        image = self.image or named_column(names, IMAGES)
        first, second = (
            found if given is not None or found != image else None
            for given, found in zip(told, super().fill(row, names, told, sample), strict=True)
        )
        return first, second


class QuestionReader(TwoPartReader[ImageQuestion]):
    """Reads questions about images: of tables with a header, of JSON lines, of data in memory.

    Columns are found by their names unless they are told: `question` (or statement, text), `answer` (or label),
    `image` (or file, path), and `type`, which there may be. Images are looked for in `folder`, else beside the table.

    >>> reader = QuestionReader(folder="photos")
    >>> record = next(reader.objects([("a.jpg", "is it a dog ?", "yes")]))
    >>> str(record.image), record.text, record.labels
    ('photos/a.jpg', 'is it a dog ?', ('yes',))
    """

    kind = ImageQuestion
    quotes = False

    def __init__(
        self,
        *,
        question: Column = None,
        answer: Column = None,
        image: str | None = None,
        folder: str | Path | None = None,
        encoding: str = "utf-8",
    ) -> None:
        super().__init__(None, (), (question, answer), encoding)
        self.roles, self.image, self.folder = QuestionRoles(image=image), image, folder

    def files(self, paths: Paths) -> Files[ImageQuestion]:
        places = expand(paths)
        format = one_format(places, map(table_format, places))
        if format is None:
            raise UserError(f"{places[0]} is no table: give questions as .tsv, .csv, .jsonl or .json, with a header")
        table: Format = format  # type: ignore[assignment]
        columns = self.find_columns(places[0], table)
        return Files(places, format, "questions", partial(self.read_table, places, table, columns), columns.guess)

    def find_columns(self, path: Path, format: Format) -> Columns:
        return replace(super().find_columns(path, format), keeps=True)  # the image is in a third

    def record(self, parts: Parts, name: Column) -> ImageQuestion:
        where, text, fields = parts.where, parts.first.strip(), parts.fields
        answer = text_of(where, parts.second, name).strip()
        if not text:
            raise empty_text(where)
        if not answer:
            raise RecordError(where, "has an empty answer: write one, or remove the line")
        image = self._image(where, fields)
        if image is None:
            raise RecordError(where, f"names no image: {self._which(fields)}")
        kind = named_column(list(fields), TYPES)
        kind = None if kind is None or is_missing(fields[kind]) else str(fields[kind]).strip() or None
        return ImageQuestion(image, text, (answer,), kind, where)

    def question(self, where: Place, text: str, fields: dict[str, Any]) -> ImageQuestion:
        """A question to be answered; without an image, its `image` is `Path()`."""
        return ImageQuestion(self._image(where, fields) or Path(), text, (), None, where, fields)

    def _object(self, where: Place, item: Any, columns: Columns | None) -> ImageQuestion | None:
        if isinstance(item, tuple | list) and len(item) == 3:
            image, text, answer = item
            if not isinstance(text, str):
                raise RecordError(where, f"has a {type(text).__name__} as its question: give it as a str")
            return self.record(Parts(where, text, answer, {self.image or "image": image}), "answer")
        if not isinstance(item, ImageQuestion | dict):
            raise RecordError(where, "is no question about an image: give (image, question, answer), or named columns")
        return super()._object(where, item, columns)

    def _image(self, where: Place, fields: dict[str, Any]) -> Path | None:
        column = self.image or named_column(list(fields), IMAGES)
        if column is None or column not in fields:
            return None
        name = fields[column]
        if is_missing(name) or not str(name).strip():
            raise RecordError(where, "names no image: write its path, or remove the line")
        return image_path(str(name).strip(), where, self.folder)

    def _which(self, fields: Iterable[str]) -> str:
        known = list(fields)
        if self.image is not None and known:
            return f"there is no column {self.image!r}, {nearest(self.image, known)}"
        return "give a table with a header, and say which column it is with -s data.image=NAME"
