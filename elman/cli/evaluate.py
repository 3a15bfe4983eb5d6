"""`elman evaluate`: a model's scores, beside the baselines."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from elman.cli.data import DATA_DIR
from elman.errors import UserError

if TYPE_CHECKING:
    from elman.tasks import LanguageModel


SETTINGS = typer.Option(
    [], "--set", "-s", help="data.key=value, where the files are written in another way than those of training."
)


def evaluate(
    model: Path = typer.Argument(..., help="A model folder."),
    data: list[Path] = typer.Argument(..., help="Files or folders, each scored on its own."),
    tokens: bool = typer.Option(False, "--tokens", help="The log-probability of every token, a JSON record a line."),
    as_json: bool = typer.Option(False, "--json", help="The scores as JSON."),
    baselines: bool = typer.Option(True, help="Fit the baselines to the model's training data, if found."),
    settings: list[str] = SETTINGS,
    data_dir: Path | None = DATA_DIR,
) -> None:
    """Score a model on data that it has not seen, beside the baselines of its task."""
    from elman import tasks

    loaded = tasks.load(model)
    if tokens:
        if not isinstance(loaded, tasks.LanguageModel):
            raise UserError(f"{model} is no language model: --tokens has nothing to show for it")
        for path in data:
            _print_tokens(loaded, path, settings)
        return
    report = tasks.evaluate(loaded, data, baselines=baselines, data_dir=data_dir, settings=settings)
    if as_json:
        if note := report.pop("note", ""):
            typer.echo(note, err=True)
        typer.echo(json.dumps(report, indent=2))
    else:
        from elman.cli.train import show_report

        show_report(report)


def _print_tokens(model: "LanguageModel", path: Path, settings: list[str]) -> None:
    from elman.tasks import TASKS
    from elman.tasks.reading import with_reading_settings
    from elman.tasks.task import Source
    from elman.train.recipe import parse

    task = TASKS["lm"]
    recipe = with_reading_settings(parse(task.Recipe, model.recipe, where="the model's config.json"), settings)
    ids = task.read_set(model, recipe, Source([path]), str(path), lambda line: None)
    for token, score in zip(ids.read(0, len(ids)), model.log_probs(ids), strict=True):
        record = {"text": str(path), "token": model.tokenizer.tokens[token], "log_prob": round(float(score), 6)}
        typer.echo(json.dumps(record, ensure_ascii=False))
