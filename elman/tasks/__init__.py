"""Tasks: each binds text, network, training and search into one thing that a user wants."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from elman.errors import UserError, nearest
from elman.tasks import folder as _folder
from elman.tasks import language
from elman.tasks.language_model import LanguageModel

MODELS = {"lm": LanguageModel}

__all__ = ["LanguageModel", "fit", "load"]


def load(path: Path | str) -> LanguageModel:
    """The model in a folder, whatever its task."""
    task = _folder.read_config(Path(path))["task"]
    if task not in MODELS:
        raise UserError(
            f"{path} holds a model for the task '{task}', which this Elman has not: {nearest(task, MODELS)}"
        )
    return MODELS[task].load(path)


def fit(
    task: str,
    recipe: Path | str | None = None,
    *,
    out: Path | str,
    settings: Iterable[str] = (),
    **options: Any,
) -> dict[str, Any]:
    """Train by recipe, as `elman train` does: `fit("lm", "sonnets", out="runs/s", settings=["train.epochs=2"])`."""
    if task not in MODELS:
        raise UserError(f"there is no task '{task}': {nearest(task, MODELS)}")
    return language.train(language.read_recipe(recipe, settings), out, **options)
