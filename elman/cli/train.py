"""`elman train TASK`: from data and a recipe to a model folder."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from elman.cli.data import DATA_DIR
from elman.cli.streams import unheard
from elman.errors import Interrupted

train_app = typer.Typer(help="Train a model.", no_args_is_help=True)

TASKS = {
    "lm": ("Train a language model over characters, bytes, words or sub-words.", "generate"),
    "classify": ("Train a classifier: one label for a text, or several.", "predict"),
    "tag": ("Train a tagger: one label for each token.", "predict"),
    "translate": ("Train a translator, from a line to a line; --train twice for two parallel files.", "predict"),
}
"""For each task what its training does, and the command to go on with."""


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    for task, (about, next_command) in TASKS.items():
        train_app.command(task, help=about)(_command(task, next_command))
    app.add_typer(train_app, name="train")


def _command(task: str, next_command: str) -> Callable[..., None]:
    """The command for one task: they differ in their recipes, not in their options."""

    @unheard()
    def train_task(
        recipe: str | None = typer.Argument(None, help="A recipe's file, or the name of one that comes with Elman."),
        train: list[Path] = typer.Option([], "--train", help="What to train on: files or folders."),
        dev: list[Path] = typer.Option([], "--dev", help="Held-out data; without it, a part of the training data."),
        test: list[Path] = typer.Option([], "--test", help="Data for the final score."),
        settings: list[str] = typer.Option([], "--set", "-s", help="section.key=value, over the recipe."),
        out: Path = typer.Option(..., "--out", "-o", help="The run's folder."),
        resume: bool = typer.Option(False, "--resume", help="Go on exactly where the run in the folder stopped."),
        force: bool = typer.Option(False, "--force", help="Start over in a folder that is not empty."),
        data_dir: Path | None = DATA_DIR,
    ) -> None:
        from elman.tasks import fit

        try:
            report = fit(
                task,
                recipe,
                out=out,
                train=train,
                dev=dev,
                test=test,
                settings=settings,
                resume=resume,
                force=force,
                data_dir=data_dir,
            )
        except Interrupted as stop:
            raise Interrupted(f"{stop}; go on with: elman train {task} --out {out} --resume") from None
        show_report(report, task)
        typer.echo(f"the model is in {out}: try  elman {next_command} {out}")

    return train_task


def show_report(report: dict[str, Any], task: str = "lm") -> None:
    """The scores beside the baselines, as tables; then whatever else the task's report has to say."""
    from rich.table import Table

    from elman.cli.streams import console
    from elman.tasks import TASKS as MODULES

    shown = MODULES[task].report
    for name, scores in report.items():
        if not isinstance(scores, dict) or "loss" not in scores:
            continue
        size = next(
            (f" ({scores[unit]:,} {unit})" for unit in ("texts", "sentences", "lines", "tokens") if unit in scores), ""
        )
        table = Table(title=f"{shown.NAMES.get(name, name)}{size}", title_justify="left")
        table.add_column("", no_wrap=True)
        for column in shown.COLUMNS:
            table.add_column(column, justify="right")
        for row in shown.rows(report, name):
            table.add_row(*row, style="bold" if row[0] == "this model" else None)
        console().print(table)
    if hasattr(shown, "more"):
        typer.echo(shown.more(report))
    if note := report.get("note"):
        typer.echo(note, err=True)
