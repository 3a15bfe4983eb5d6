"""From a recipe's data section to encoded text."""

import random
from dataclasses import dataclass
from pathlib import Path

from elman.corpora import IdStream, Record, TextFiles, line_ids, read_records, stream_ids
from elman.corpora.catalogue import locate
from elman.errors import UserError
from elman.tasks.language_settings import DataSettings, LanguageRecipe
from elman.text import Tokenizer


@dataclass
class LanguageData:
    """Encoded splits, and what encoded them."""

    train: IdStream
    dev: IdStream
    test: IdStream | None
    tokenizer: Tokenizer
    labels: list[str]


def find_files(data: DataSettings, data_dir: Path | None = None) -> dict[str, list[Path]]:
    """The files of each split: the user's own where given, else the corpus' of the catalogue."""
    given = {"train": data.train, "dev": data.dev, "test": data.test}
    files = {split: [Path(name) for name in names] for split, names in given.items() if names}
    if data.corpus is not None and not data.train:
        files = {**locate(data.corpus, data_dir), **files}
    if not files.get("train"):
        raise UserError("there is nothing to train on: give --train FILE, or a recipe with data.corpus")
    return files


def open_data(recipe: LanguageRecipe, data_dir: Path | None = None) -> LanguageData:
    """Read and encode what the recipe names; encoded text is kept and found again."""
    files = find_files(recipe.data, data_dir)
    if recipe.data.unit == "line":
        return _open_lines(recipe, files)
    return _open_streams(recipe, files)


def encode_file(paths: list[Path], recipe: LanguageRecipe, tokenizer: Tokenizer, labels: list[str]) -> IdStream:
    """Other text in the way that a trained model reads it."""
    if recipe.data.unit == "line":
        return line_ids(_records(recipe.data, paths), tokenizer, labels or None)[0]
    return stream_ids(TextFiles(paths, recipe.data.encoding), tokenizer)[0]


def _open_streams(recipe: LanguageRecipe, files: dict[str, list[Path]]) -> LanguageData:
    encoding = recipe.data.encoding
    text = TextFiles(files["train"], encoding)
    held = 0.0 if "dev" in files else recipe.data.dev_fraction
    share = 1.0 - min(held, recipe.data.dev_characters / text.survey().characters)
    train, tokenizer = stream_ids(text, recipe.text, stop=share)
    if "dev" in files:
        dev, _ = stream_ids(TextFiles(files["dev"], encoding), tokenizer)
    else:
        dev, _ = stream_ids(text, tokenizer, start=share)
    test = stream_ids(TextFiles(files["test"], encoding), tokenizer)[0] if "test" in files else None
    for name, ids in (("train", train), ("held-out", dev)):
        if len(ids) < 2:
            raise UserError(f"the {name} text has fewer than two tokens: give more text")
    return LanguageData(train, dev, test, tokenizer, [])


def _open_lines(recipe: LanguageRecipe, files: dict[str, list[Path]]) -> LanguageData:
    records = {split: _records(recipe.data, paths) for split, paths in files.items()}
    labels = None  # those of the training part
    if "dev" not in records:
        labels = sorted({record.label for record in records["train"] if record.label is not None}) or None
        held, kept = _split(records["train"], recipe.data.dev_fraction, recipe.train.seed)
        records |= {"train": kept, "dev": held}
    train, tokenizer, labels = line_ids(records["train"], recipe.text, labels)
    dev = line_ids(records["dev"], tokenizer, labels)[0]
    test = line_ids(records["test"], tokenizer, labels)[0] if "test" in records else None
    return LanguageData(train, dev, test, tokenizer, labels or [])


def _records(data: DataSettings, paths: list[Path]) -> list[Record]:
    text, label = _column(data.text_column), _column(data.label_column)
    found = [record for path in paths for record in read_records(path, text, label, data.encoding)]
    if len(found) < 2:
        raise UserError(f"{paths[0]} has fewer than two lines of text: give more")
    return found


def _column(name: str | None) -> str | int | None:
    """A column by its number, counted from 1, or by its name."""
    return int(name) if name is not None and name.isdecimal() else name


def _split(records: list[Record], fraction: float, seed: int) -> tuple[list[Record], list[Record]]:
    """A seeded part of the records to hold out, and the rest; lines are often sorted, so the end will not do."""
    order = list(range(len(records)))
    random.Random(seed).shuffle(order)
    held = set(order[: max(1, int(len(records) * fraction))])
    return [records[i] for i in sorted(held)], [r for i, r in enumerate(records) if i not in held]
