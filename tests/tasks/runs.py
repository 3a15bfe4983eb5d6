"""Small runs of language models that take a second or less."""

from pathlib import Path
from typing import Any

from elman.batches import stream_ids
from elman.records import TextFiles
from elman.tasks import TASKS, training
from elman.tasks.language import LanguageModel, LanguageRecipe
from elman.tasks.recipes import load_recipe
from elman.train.loop import Trainer
from tests.train.toy import quiet

SMALL = (
    "model.cell=gru",
    "model.layers=1",
    "model.hidden=24",
    "model.embedding=12",
    "batch.size=4",
    "batch.steps=16",
    "train.log_every=1",
    "train.threads=1",
    "baseline.order=0",
)
SENTENCE = "the cat sat on a mat and saw the dog that ran to the sea while a bird sang of rain"


def prose(lines: int = 60) -> str:
    """Lines of words that follow a rule, so that there is something to learn."""
    words = SENTENCE.split()
    return "".join(" ".join(words[(i * k + k) % len(words)] for k in range(1, 8)) + "\n" for i in range(lines))


def write_names(path: Path) -> Path:
    """A labelled table in which the label says which letters come."""
    rows = [f"{'ab' * (1 + i % 3)},north\n{'xy' * (1 + i % 3)},south\n" for i in range(30)]
    path.write_text("text,label\n" + "".join(rows))
    return path


def recipe(train: Path, *settings: str) -> LanguageRecipe:
    """The small recipe on a file, with settings laid over it."""
    return load_recipe(LanguageRecipe, None, [*SMALL, f'data.train=["{train}"]', *settings])


def run(train: Path, out: Path, *settings: str, **options: Any) -> LanguageModel:
    """Train, and load what came of it."""
    return run_task("lm", recipe(train, *settings), out, **options)  # type: ignore[no-any-return]


def trainer(train: Path, out: Path, *settings: str) -> Trainer:
    """A trainer as a run makes it, for tests that stop it."""
    return task_trainer("lm", recipe(train, *settings), out)


# For all tasks


def run_task(task: str, recipe: Any, out: Path, **options: Any) -> Any:
    """Train by a recipe, and load what came of it."""
    training.train(TASKS[task], recipe, out, reporter=quiet(), **options)
    return TASKS[task].Model.load(out)


def open_task(task: str, recipe: Any, said: list[str] | None = None) -> Any:
    """The data of a recipe, and what the user is told of them."""
    say = [].append if said is None else said.append
    return TASKS[task].open(recipe, training.sources_of(recipe.data, None, None), None, say)


def task_trainer(task: str, recipe: Any, out: Path) -> Trainer:
    """A trainer as a run makes it, for tests that stop it."""
    run = training.begin(TASKS[task], recipe, open_task(task, recipe))
    return Trainer(run, run.recipe.train, out, quiet())


def ids_of(model: LanguageModel, path: Path) -> Any:
    """A file as the model reads it."""
    return stream_ids(TextFiles(path), model.tokenizer)[0]
