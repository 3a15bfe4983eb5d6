"""From a recipe's data section to encoded text."""

from dataclasses import dataclass
from pathlib import Path

from elman.batches import IdStream, stream_ids
from elman.batches.ids import line_stream_ids
from elman.errors import UserError
from elman.records import TextFiles
from elman.records.tables import Part, RecordFiles
from elman.tasks.language.settings import DataSettings, LanguageRecipe
from elman.tasks.recipes import find_files
from elman.text import Tokenizer


@dataclass
class LanguageData:
    """Encoded splits, and what encoded them."""

    train: IdStream
    dev: IdStream
    test: IdStream | None
    tokenizer: Tokenizer
    labels: list[str]


def open_data(recipe: LanguageRecipe, data_dir: Path | None = None, tokenizer: Tokenizer | None = None) -> LanguageData:
    """Read and encode what the recipe names; encoded text is kept and found again.

    A run that goes on brings its tokenizer: it is used in place of a new one, since fitting again need not give the
    same.
    """
    files = find_files(recipe.data, data_dir)
    if recipe.data.unit == "line":
        return _open_lines(recipe, files, tokenizer)
    return _open_streams(recipe, files, tokenizer)


def encode_file(paths: list[Path], recipe: LanguageRecipe, tokenizer: Tokenizer, labels: list[str]) -> IdStream:
    """Other text in the way that a trained model reads it."""
    if recipe.data.unit == "line":
        return line_stream_ids(_records(recipe.data, paths), tokenizer, labels or None)[0]
    return stream_ids(TextFiles(paths, recipe.data.encoding), tokenizer)[0]


def _open_streams(recipe: LanguageRecipe, files: dict[str, list[Path]], tokenizer: Tokenizer | None) -> LanguageData:
    encoding = recipe.data.encoding
    text = TextFiles(files["train"], encoding)
    share = 1.0 if "dev" in files else 1.0 - _held_share(recipe.data, text.survey().characters)
    train, tokenizer = stream_ids(text, tokenizer or recipe.text, stop=share)
    if "dev" in files:
        dev, _ = stream_ids(TextFiles(files["dev"], encoding), tokenizer)
    else:
        dev, _ = stream_ids(text, tokenizer, start=share)
    test = stream_ids(TextFiles(files["test"], encoding), tokenizer)[0] if "test" in files else None
    for name, ids in (("training", train), ("held-out", dev)):
        if len(ids) < 2:
            raise UserError(f"the {name} text has fewer than two tokens: give more text")
    return LanguageData(train, dev, test, tokenizer, [])


def _open_lines(recipe: LanguageRecipe, files: dict[str, list[Path]], tokenizer: Tokenizer | None) -> LanguageData:
    records = {split: _records(recipe.data, paths) for split, paths in files.items()}
    for split in {"train", "dev"} & set(records):
        if records[split].facts().count < 2:
            raise UserError(f"{files[split][0]} has fewer than two lines of text: give more")
    kept = held = None
    if "dev" not in records:  # lines are often sorted, so the end of them will not do
        facts = records["train"].facts()
        count = max(1, int(facts.count * _held_share(recipe.data, facts.characters)))
        kept, held = (Part(count, recipe.train.seed, inside) for inside in (False, True))
        records["dev"] = records["train"]
    train, tokenizer, labels = line_stream_ids(records["train"], tokenizer or recipe.text, part=kept)
    dev = line_stream_ids(records["dev"], tokenizer, labels, part=held)[0]
    test = line_stream_ids(records["test"], tokenizer, labels)[0] if "test" in records else None
    return LanguageData(train, dev, test, tokenizer, labels or [])


def _held_share(data: DataSettings, characters: int) -> float:
    """The share of a text to hold out where no held-out text is given."""
    return min(data.dev_fraction, data.dev_characters / characters)


def _records(data: DataSettings, paths: list[Path]) -> RecordFiles:
    return RecordFiles(paths, _column(data.text_column), _column(data.label_column), data.encoding)


def _column(name: str | None) -> str | int | None:
    """A column by its number, counted from 1, or by its name."""
    return int(name) if name is not None and name.isdecimal() else name
