"""How the files are written that a trained model is scored on: as those that it learned from, unless the user says."""

import atexit
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from elman.batches.batches import Ids
from elman.errors import UserError
from elman.records.lines import read_lines
from elman.records.memory import read_items
from elman.records.places import Place, RecordError
from elman.records.tables import text_of
from elman.tasks.sections import column
from elman.tasks.task import Source
from elman.train.recipe import Section, Settings, apply_overrides, flatten, parse

R = TypeVar("R", bound=Section)

NAMES = """
    caption classes comments covariates encoding format image images key label label_column missing separator source
    stress tag_column target text_column texts_of time token_column tree_column uneven
"""
KEYS = NAMES.split()
"""What the data sections of recipes have to say of how a file is written, whichever file it is."""


def with_reading_settings(recipe: R, settings: Settings) -> R:
    """A model's recipe with what the user says of other files; nothing else of it can be changed any more.

    >>> from elman.tasks.tag import TagRecipe
    >>> with_reading_settings(TagRecipe(), ["data.encoding=latin-1"]).data.encoding
    'latin-1'
    >>> with_reading_settings(TagRecipe(), ["train.lr=1"])
    Traceback (most recent call last):
    elman.errors.UserError: 'train.lr' cannot be set for a model that is trained: known are data.comments, ...
    """
    given = apply_overrides({}, settings)
    known = [f"data.{key}" for key in KEYS if key in type(recipe.data).model_fields]  # type: ignore[attr-defined]
    for name in flatten(given):
        if name not in known:
            raise UserError(f"{name!r} cannot be set for a model that is trained: known are {', '.join(known)}")
    return parse(type(recipe), apply_overrides(recipe.model_dump(), given), where="the settings") if given else recipe


@dataclass(frozen=True)
class Reading:
    """How text is read: as one running stream or line by line, and which id stands before the first token."""

    unit: Literal["stream", "line"]
    start_id: int
    ends_text: bool  # whether the end token ends a text; in a stream of words it ends a line only
    reset_documents: bool = True

    def documents(self, ids: Ids) -> np.ndarray | None:
        """Where nothing before may be looked at any more, or None where the text runs on."""
        return ids.documents if self.unit == "line" or self.reset_documents else None


def on_disk(source: Source, data: Any) -> Sequence[Path]:
    """The files of a source; texts in memory are written to one, since text is read several times.

    So are the texts of the records of another task, where `data.texts_of` says whose; corpora that are not for that
    task are read as they stand, behind them.
    """
    plain: Sequence[Path] = ()
    if source.objects is None and getattr(data, "texts_of", None) is not None:
        name = data.text_column or "text"  # by which they are read again
        plain = [path for path in source.paths if _is_of_another_task(path, data)]
        source = Source([path for path in source.paths if path not in plain])
        if source.paths:
            source = Source(objects=[{name: text} for text in _texts(source, data)], name=Path(source.paths[0]).stem)
    if source.objects is None:
        return [*source.paths, *plain]
    folder = Path(tempfile.mkdtemp(prefix="elman-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    name = getattr(data, "text_column", None) or "text"
    items = read_items(source.objects, source.name)
    rows = [(where, item if isinstance(item, dict) else _named(where, item)) for where, item in items]
    if getattr(data, "unit", "stream") == "stream":
        texts = [_text(where, row.get(name)) for where, row in rows]
        path, text = folder / f"{source.name}.txt", "".join(text.removesuffix("\n") + "\n" for text in texts)
    else:
        for where, row in rows:
            text_of(where, row.get(name, ""), name)  # told of by its place
        path, text = folder / f"{source.name}.jsonl", "".join(json.dumps(row) + "\n" for _, row in rows)
    path.write_text(text, encoding=data.encoding)
    return [path, *plain]


def _is_of_another_task(path: Path, data: Any) -> bool:
    """Whether a file is one of a corpus that is not for the task of `data.texts_of`."""
    from elman.corpora.catalogue import corpus

    others = [entry for entry in map(corpus, data.corpora) if data.texts_of not in entry.tasks and not data.train]
    files = {Path(entry.name, name) for entry in others for names in entry.splits.values() for name in names}
    return any(path.parts[-len(file.parts) :] == file.parts for file in files)


def _texts(source: Source, data: Any) -> list[str]:
    """The texts of another task's records."""
    from elman.tasks import TASKS

    task = TASKS[data.texts_of]
    section = task.Recipe.model_fields["data"].annotation
    told = {
        key: getattr(data, key) for key in ("corpus", "train", "format", "text_column") if key in section.model_fields
    }
    told |= {"encoding": data.encoding} if data.encoding != "utf-8" else {}  # a corpus has its own
    section = parse(section, {key: value for key, value in told.items() if value}, where="data")
    reader: Any = task.reader(section)
    if data.text_column is None or data.corpora or not all(Path(path).is_file() for path in source.paths):
        return [task.text_of(record) for record in source.read(reader, lambda line: None)]
    told = {"format": data.format, "column": column(data.text_column)}  # as texts to predict for: none needs a label
    return [
        task.text_of(record)
        for path in source.paths
        for record in reader.lines(read_lines(path, data.encoding), path, **told)
    ]


def _named(where: Place, item: Any) -> dict[str, Any]:
    if not isinstance(item, str | tuple | list):
        raise RecordError(where, "is no text: give a str, (text, label), or a mapping with these fields")
    return {"text": item} if isinstance(item, str) else dict(zip(("text", "label"), item, strict=False))


def _text(where: Place, text: Any) -> str:
    if not isinstance(text, str):
        raise RecordError(where, f"has a {type(text).__name__} as its text: give it as a str")
    return text
