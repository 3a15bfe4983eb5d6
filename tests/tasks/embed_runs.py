"""Small runs of word vectors that take a second or less."""

from pathlib import Path
from typing import Any

import numpy as np

from elman.tasks.embed import EmbedRecipe, VectorModel
from elman.tasks.recipes import load_recipe
from elman.train.loop import Trainer
from tests.tasks.runs import run_task, task_trainer

SMALL = ("model.embedding=12", "model.sample=0", "text.min_count=1", "train.log_every=1", "train.threads=1")
GROUPS = {"animals": "cat dog cow hen", "tools": "axe saw nail file", "food": "bread rice soup cake"}


def write_text(path: Path, lines: int = 400) -> Path:
    """Lines of words of one group each, so that words of a group have the same company."""
    random = np.random.default_rng(1)
    rows = [" ".join(random.choice(list(GROUPS.values())[at % 3].split(), 6)) for at in range(lines)]
    path.write_text("\n".join(rows) + "\n")
    return path


def recipe(train: Path, *settings: str) -> EmbedRecipe:
    """The small recipe on a file, with settings laid over it."""
    return load_recipe(EmbedRecipe, None, [*SMALL, f'data.train=["{train}"]', *settings])


def run(train: Path, out: Path, *settings: str, **options: Any) -> VectorModel:
    """Train, and load what came of it."""
    return run_task("embed", recipe(train, *settings), out, **options)  # type: ignore[no-any-return]


def trainer(train: Path, out: Path, *settings: str) -> Trainer:
    """A trainer as a run makes it, for tests that stop it."""
    return task_trainer("embed", recipe(train, *settings), out)
