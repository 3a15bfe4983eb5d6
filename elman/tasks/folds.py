"""Cross-validation: each part of the records is the test set of a model that was trained on the others."""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from elman.metrics.metric import first_of
from elman.tasks.report import Report
from elman.tasks.run import clear_runs, finished_report
from elman.tasks.task import Task
from elman.train.progress import Reporter


def cross_validate(
    task: Task[Any, Any],
    recipe: Any,
    out: Path,
    train: Callable[..., Report],
    memory: Any,
    resume: bool,
    data_dir: Path | str | None,
    reporter: Reporter,
) -> dict[str, Any]:
    """Train a model for each fold in a folder of its own; a fold that is done is not done again."""
    folder = out / "folds"
    if not resume:
        clear_runs(folder)
    reports = []
    for fold in range(1, recipe.data.folds + 1):
        place = folder / f"{fold:02d}"
        part = recipe.model_copy(update={"data": recipe.data.model_copy(update={"fold": fold})})
        report = finished_report(place, part)
        if report is None:
            reporter.say(f"fold {fold} of {recipe.data.folds}")
            report = train(task, part, place, memory=memory, resume=True, data_dir=data_dir, reporter=reporter)
        reports.append(report)
    return summary(task, reports)


def summary(task: Task[Any, Any], reports: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Mean and spread (standard deviation) over the folds, of the models and of the baselines.

    >>> from elman.tasks import TASKS
    >>> found = summary(TASKS["classify"], [{"test": {"accuracy": 0.7}, "run": {"seconds": 1}, "baselines": {}},
    ...                                     {"test": {"accuracy": 0.9}, "run": {"seconds": 2}, "baselines": {}}])
    >>> round(found["accuracy"]["mean"], 3), round(found["accuracy"]["spread"], 3), found["seconds"]
    (0.8, 0.141, 3)
    """
    names, headline = reports[0]["baselines"], first_of(task.headlines, reports[0]["test"])
    kept = [metric for metric in task.metrics if all(metric.of(report["test"]) is not None for report in reports)]
    return {
        "folds": len(reports),
        **{metric.key: _spread([metric.of(report["test"]) or 0.0 for report in reports]) for metric in kept},
        "baselines": {
            who: _spread([headline.of(report["baselines"][who]["test"]) or 0.0 for report in reports]) for who in names
        },
        "seconds": sum(report["run"]["seconds"] for report in reports),
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {"mean": statistics.fmean(values), "spread": statistics.stdev(values), "each": list(values)}
