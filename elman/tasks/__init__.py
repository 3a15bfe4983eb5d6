"""Tasks: each binds text, network, training and search into one thing that a user wants."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from elman.errors import UserError, nearest
from elman.tasks import language
from elman.tasks.folder import read_config
from elman.tasks.language import LanguageModel
from elman.tasks.run import saved_recipe
from elman.train import Reporter
from elman.train.recipe import toml_value

TASKS: dict[str, ModuleType] = {"lm": language}
"""Each has `Recipe`, `Model`, `read_recipe`, `train` and `evaluate`."""

__all__ = ["LanguageModel", "evaluate", "fit", "load"]

Paths = Path | str | Iterable[Path | str]


def fit(
    task: str,
    recipe: Path | str | None = None,
    *,
    out: Path | str,
    train: Paths = (),
    dev: Paths = (),
    test: Paths = (),
    settings: Iterable[str] | Mapping[str, Any] = (),
    resume: bool = False,
    force: bool = False,
    data_dir: Path | str | None = None,
    reporter: Reporter | None = None,
) -> dict[str, Any]:
    """Train, as `elman train` does; returns the report that stands in the folder's `metrics.json`.

    `recipe` is a file or the name of a recipe that comes with Elman; `settings` go over it, as
    `{"model.hidden": 64}` or `["model.hidden=64"]`. To resume, the folder is enough.
    """
    if resume and force:
        raise UserError("--resume goes on with a run and --force throws it away: give one of them")
    chosen = _task(task)
    given = _overrides(settings) + [
        f"data.{split}={toml_value(names)}"
        for split, paths in (("train", train), ("dev", dev), ("test", test))
        if (names := _full_names(paths))
    ]
    saved = saved_recipe(Path(out), chosen.Recipe) if resume and recipe is None and not given else None
    if resume and saved is None and recipe is None and not given:
        raise UserError(f"there is no run to resume in {out}")
    settled = saved if saved is not None else chosen.read_recipe(recipe, given)
    where = Path(data_dir) if data_dir is not None else None
    report = chosen.train(settled, out, resume=resume, force=force, data_dir=where, reporter=reporter)
    assert isinstance(report, dict)
    return report


def load(folder: Path | str) -> LanguageModel:
    """The model in a folder, whatever its task."""
    model = _task(read_config(Path(folder))["task"], f"{folder} holds a model for the").Model.load(folder)
    assert isinstance(model, LanguageModel)
    return model


def evaluate(
    model: LanguageModel | Path | str, data: Paths, *, baselines: bool = True, data_dir: Path | str | None = None
) -> dict[str, Any]:
    """Score a model on texts, as `elman evaluate` does: for each its scores, and those of the baselines."""
    found = model if isinstance(model, LanguageModel) else load(model)
    where = Path(data_dir) if data_dir is not None else None
    return language.evaluate(found, _full_names(data), baselines=baselines, data_dir=where)


def _task(name: str, who: str = "there is no") -> ModuleType:
    if name not in TASKS:
        unknown = ", which this Elman does not know" if who != "there is no" else ""
        raise UserError(f"{who} task '{name}'{unknown}: {nearest(name, TASKS)}")
    return TASKS[name]


def _overrides(settings: Iterable[str] | Mapping[str, Any]) -> list[str]:
    if isinstance(settings, Mapping):
        return [f"{key}={'none' if value is None else toml_value(value)}" for key, value in settings.items()]
    return [settings] if isinstance(settings, str) else list(settings)


def _full_names(paths: Paths) -> list[str]:
    """Names that hold wherever a run is resumed from."""
    several = [paths] if isinstance(paths, Path | str) else list(paths)
    return [str(Path(path).resolve()) for path in several]
