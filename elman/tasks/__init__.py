"""Tasks: each binds text, network, training and search into one thing that a user wants."""

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from elman.errors import RunError, UserError, nearest
from elman.tasks import classify, language, tag, translate
from elman.tasks.classify import TextClassifier
from elman.tasks.folder import Config, read_config
from elman.tasks.language import LanguageModel
from elman.tasks.memory import explain_out_of_memory
from elman.tasks.recipes import find_recipe, replaced
from elman.tasks.run import saved_recipe
from elman.tasks.tag import TagModel
from elman.tasks.translate import Translator
from elman.train import Reporter
from elman.train.recipe import Section, Settings, apply_overrides, parse, read_toml

TASKS: dict[str, ModuleType] = {"lm": language, "classify": classify, "tag": tag, "translate": translate}
"""Each has `Recipe`, `Model`, `read_recipe`, `train` and `evaluate`, and a module `report` to show scores by."""

__all__ = ["LanguageModel", "TagModel", "TextClassifier", "Translator", "evaluate", "fit", "load"]

Paths = Path | str | Iterable[Path | str]


def fit(
    task: str,
    recipe: Path | str | None = None,
    *,
    out: Path | str,
    train: Paths = (),
    dev: Paths = (),
    test: Paths = (),
    settings: Settings = (),
    resume: bool = False,
    force: bool = False,
    data_dir: Path | str | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Train, as `elman train` does; returns the report that stands in the folder's `metrics.json`.

    `recipe` is a file or the name of a recipe that comes with Elman; `settings` go over it: values by key, as
    `{"model.hidden": 64}` or `{"model": {"hidden": 64}}`, or the command line's texts, `["model.hidden=64"]`. To
    resume, the folder is enough.
    """
    if resume and force:
        raise UserError("--resume goes on with a run and --force throws it away: give one of them")
    chosen, reporter = find_task(task), reporter or Reporter()
    files = {"train": full_names(train), "dev": full_names(dev), "test": full_names(test)}
    named = {split: names for split, names in files.items() if names}
    given = apply_overrides(apply_overrides({}, settings), {"data": named} if named else {})
    saved = saved_recipe(Path(out), chosen.Recipe) if resume and recipe is None else None
    if resume and saved is None and recipe is None and not given:
        raise UserError(f"there is no run to resume in {out}")
    _check_task(task, recipe)
    if saved is not None:
        settled = parse(chosen.Recipe, apply_overrides(saved.model_dump(), given), where="the settings")
    else:
        settled = chosen.read_recipe(recipe, given)
        if (line := replaced(recipe, given)) is not None:
            reporter.say(line)
    return train_in_memory(chosen, settled, Path(out), resume, force, data_dir, reporter)


def train_in_memory(
    task: ModuleType,
    recipe: Section,
    out: Path,
    resume: bool,
    force: bool,
    data_dir: Path | str | None,
    reporter: Reporter | None,
) -> dict[str, Any]:
    """Run a task's training; a run that needs more memory than there is ends in a sentence."""
    where = Path(data_dir) if data_dir is not None else None
    smaller = "take a smaller batch (batch.size, batch.steps, batch.tokens), or a smaller model.hidden"
    with explain_out_of_memory(smaller, RunError):  # it has begun, and has written what it had
        report = task.train(recipe, out, resume=resume, force=force, data_dir=where, reporter=reporter)
    assert isinstance(report, dict)
    return report


def load(folder: Path | str, task: str | None = None) -> Any:
    """The model in a folder, of whatever task or of the one that is asked for.

    That is a `LanguageModel`, a `TextClassifier`, a `TagModel` or a `Translator`.
    """
    config = read_config(Path(folder), Config, task)
    with explain_out_of_memory(f"{folder} is too large a model for this machine"):
        return find_task(config.task, f"{folder} holds a model for the").Model.load(folder)


def evaluate(
    model: Any,
    data: Paths,
    *,
    baselines: bool = True,
    data_dir: Path | str | None = None,
    settings: Settings = (),
) -> dict[str, Any]:
    """Score a model, or that of a folder, as `elman evaluate` does: for each file its scores, and the baselines'.

    The files are read as those that the model learned from; `settings` say where they differ, as
    `{"data.encoding": "latin-1"}`.
    """
    found = load(model) if isinstance(model, Path | str) else model
    where = Path(data_dir) if data_dir is not None else None
    task = TASKS[task_of(found)]
    report = task.evaluate(found, full_names(data), baselines=baselines, data_dir=where, settings=settings)
    assert isinstance(report, dict)
    return report


def task_of(model: Any) -> str:
    """The name of the task that a model was trained for."""
    for name, module in TASKS.items():
        if isinstance(model, module.Model):
            return name
    raise UserError(f"a {type(model).__name__} is no model of Elman's: give one, or its folder")


def find_task(name: str, who: str = "there is no") -> ModuleType:
    """The module of a task; `who` begins the sentence where there is no such task."""
    if name not in TASKS:
        unknown = ", which this Elman does not know" if who != "there is no" else ""
        raise UserError(f"{who} task '{name}'{unknown}: {nearest(name, TASKS)}")
    return TASKS[name]


def recipe_task(recipe: Path | str) -> str:
    """The task that a recipe is for.

    >>> recipe_task("tinyshakespeare")
    'lm'
    """
    path = find_recipe(recipe)
    task = str(read_toml(path).get("task", "lm"))
    find_task(task, f"{path} is a recipe for the")
    return task


def _check_task(task: str, recipe: Path | str | None) -> None:
    if recipe is None:
        return
    tables = read_toml(find_recipe(recipe))
    if (meant := tables.get("task", task)) != task:
        raise UserError(f"'{recipe}' is a recipe for another task: use it with  elman train {meant}")
    if "compare" in tables:
        raise UserError(f"'{recipe}' is a recipe for several runs: use it with  elman compare {recipe}")


def full_names(paths: Paths) -> list[str]:
    """Names that hold wherever a run is resumed from."""
    several = [paths] if isinstance(paths, Path | str) else list(paths)
    return [str(Path(path).absolute()) for path in several]  # links that go in circles are told of when they are read
