"""Cross-validation: each part of the texts is the test set of a model that was trained on the others."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elman.tasks.classify.settings import ClassifyRecipe
from elman.tasks.classify.task import train
from elman.tasks.run import clear_run, finished_report, is_run
from elman.train import Reporter


def cross_validate(
    recipe: ClassifyRecipe, out: Path, *, resume: bool, data_dir: Path | None, reporter: Reporter
) -> dict[str, Any]:
    """Train a model for each fold in a folder of its own; a fold that is done is not done again."""
    folder = out / "folds"
    for old in folder.glob("*") if not resume else ():
        if is_run(old):
            clear_run(old)
    reports = []
    for fold in range(1, recipe.data.folds + 1):
        place = folder / f"{fold:02d}"
        part = recipe.model_copy(update={"data": recipe.data.model_copy(update={"fold": fold})})
        report = finished_report(place, part)
        if report is None:
            reporter.say(f"fold {fold} of {recipe.data.folds}")
            report = train(part, place, resume=True, data_dir=data_dir, reporter=reporter)
        reports.append(report)
    return summary(reports)


def summary(reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and spread (standard deviation) over the folds, of the models and of the baselines.

    >>> found = summary([{"test": {"accuracy": 0.7, "macro_f1": 0.7}, "run": {"seconds": 1}, "baselines": {}},
    ...                  {"test": {"accuracy": 0.9, "macro_f1": 0.8}, "run": {"seconds": 2}, "baselines": {}}])
    >>> round(found["accuracy"]["mean"], 3), round(found["accuracy"]["spread"], 3), found["seconds"]
    (0.8, 0.141, 3)
    """
    names = reports[0]["baselines"]
    return {
        "folds": len(reports),
        "accuracy": _spread([report["test"]["accuracy"] for report in reports]),
        "macro_f1": _spread([report["test"]["macro_f1"] for report in reports]),
        "baselines": {
            who: _spread([report["baselines"][who]["test"]["accuracy"] for report in reports]) for who in names
        },
        "seconds": sum(report["run"]["seconds"] for report in reports),
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"mean": statistics.fmean(values), "spread": statistics.stdev(values), "each": list(values)}
