"""Small runs of classifiers that take a second or less."""

from pathlib import Path
from typing import Any

from elman.tasks.classify import ClassifyRecipe, TextClassifier
from elman.tasks.recipes import load_recipe
from elman.train.loop import Trainer
from tests.tasks.runs import run_task, task_trainer

SMALL = (
    "text.kind=characters",
    "model.hidden=12",
    "model.embedding=8",
    "model.embedding_scale=1",
    "batch.size=8",
    "train.lr=0.02",
    "train.steps=40",
    "train.log_every=1",
    "train.threads=1",
    "baseline.ngrams=false",
)
SYLLABLES = {"north": ("grim", "ulf", "vik", "tor"), "south": ("ola", "etti", "ano", "ina"), "west": ("mac", "kay")}


def names(count: int = 120) -> list[tuple[str, str]]:
    """Made-up names whose syllables tell their language."""
    found = []
    for i in range(count):
        label = ("north", "south", "north", "west", "south")[i % 5]
        parts = SYLLABLES[label]
        found.append((parts[i % len(parts)] + parts[(i // 3) % len(parts)] + "aeiou"[i % 5], label))
    return found


def write_table(path: Path, rows: list[tuple[str, str]] | None = None) -> Path:
    """A table of names."""
    path.write_text("name,language\n" + "".join(f"{name},{label}\n" for name, label in rows or names()))
    return path


def recipe(train: Path, *settings: str) -> ClassifyRecipe:
    """The small recipe on a file, with settings laid over it."""
    return load_recipe(ClassifyRecipe, None, [*SMALL, f'data.train=["{train}"]', *settings])


def run(train: Path, out: Path, *settings: str, **options: Any) -> TextClassifier:
    """Train, and load what came of it."""
    return run_task("classify", recipe(train, *settings), out, **options)  # type: ignore[no-any-return]


def trainer(train: Path, out: Path, *settings: str) -> Trainer:
    """A trainer as a run makes it, for tests that stop it."""
    return task_trainer("classify", recipe(train, *settings), out)
