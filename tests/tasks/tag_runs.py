"""Small runs of taggers that take a second or less."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elman.records.places import Place
from elman.records.tagged import Sentence, write_tagged
from elman.tasks.recipes import load_recipe
from elman.tasks.tag import TagModel, TagRecipe
from elman.train.loop import Trainer
from tests.tasks.runs import run_task, task_trainer

SMALL = (
    "model.cell=gru",
    "model.layers=1",
    "model.hidden=16",
    "model.embedding=12",
    "model.character_embedding=6",
    "model.character_hidden=6",
    "model.affix_embedding=4",
    "model.dropout=0",
    "model.input_dropout=0.1",
    "model.output_dropout=0.1",
    "text.affix_count=1",
    "text.character_count=1",
    "batch.size=8",
    "train.lr=0.02",
    'train.average="none"',
    "train.log_every=1",
    "train.threads=1",
)
PEOPLE = ("Ada", "Alan", "Grace", "Kurt", "Emmy", "Rózsa")
PLACES = ("London", "Paris", "Oslo", "Rome")


def sentences(count: int = 60, seed: int = 0) -> list[Sentence]:
    """People who go to places: names of one to three words, in BIO."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        names = chance.sample(PEOPLE, chance.randint(1, 3))
        place = chance.choice(PLACES)
        tokens = [*names, "went", "to", place, chance.choice(".!")]
        tags = ["B-PER", *["I-PER"] * (len(names) - 1), "O", "O", "B-LOC", "O"]
        found.append(Sentence(tuple(tokens), tuple(tags), Place("made up", number)))
    return found


def write(path: Path, found: Sequence[Sentence] | None = None) -> Path:
    """A file of tagged sentences; the format follows the suffix."""
    write_tagged(path, sentences() if found is None else found)
    return path


def recipe(train: Path, *settings: str) -> TagRecipe:
    """The small recipe on a file, with settings laid over it."""
    return load_recipe(TagRecipe, None, [*SMALL, f'data.train=["{train}"]', *settings])


def run(train: Path, out: Path, *settings: str, **options: Any) -> TagModel:
    """Train, and load what came of it."""
    return run_task("tag", recipe(train, *settings), out, **options)  # type: ignore[no-any-return]


def trainer(train: Path, out: Path, *settings: str) -> Trainer:
    """A trainer as a run makes it, for tests that stop it."""
    return task_trainer("tag", recipe(train, *settings), out)
