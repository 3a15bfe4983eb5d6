"""`elman train TASK`: from data and a recipe to a model folder."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from elman.cli.data import DATA_DIR
from elman.cli.streams import unheard
from elman.errors import Interrupted

if TYPE_CHECKING:
    from elman.tasks.report import Report

app = typer.Typer(help="Train a model.", no_args_is_help=True)


def add_to(top: typer.Typer, line: Sequence[str] | None = None) -> None:
    """Register `elman train`, with a command for each task."""
    from elman.tasks import TASKS

    for task in TASKS.values():
        try_it = f"elman {task.command} {{}} {task.tried}".strip()
        has_unlabelled = "unlabelled" in getattr(task.Recipe.model_fields["data"].annotation, "model_fields", {})
        app.command(task.name, help=task.about)(_command(task.name, try_it, has_unlabelled))
    top.add_typer(app, name="train")


def _command(task: str, next_command: str, has_unlabelled: bool) -> Callable[..., None]:
    """The command for one task, and what to type next: they differ in their recipes, not in their options."""

    @unheard()
    def train_task(
        recipe: str | None = typer.Argument(None, help="A recipe's file, or the name of one that comes with Elman."),
        train: list[Path] = typer.Option([], "--train", help="What to train on: files or folders; - is a pipe."),
        dev: list[Path] = typer.Option([], "--dev", help="Held-out data; without it, a part of the training data."),
        test: list[Path] = typer.Option([], "--test", help="Data for the final score."),
        settings: list[str] = typer.Option([], "--set", "-s", help="section.key=value, over the recipe."),
        out: Path = typer.Option(..., "--out", "-o", help="The run's folder."),
        unlabelled: list[Path] = typer.Option(
            [],
            "--unlabelled",
            help="Texts without labels: a language model learns from them first.",
            hidden=not has_unlabelled,
        ),
        start: Path | None = typer.Option(None, "--start", help="A trained model of the same task to begin with."),
        resume: bool = typer.Option(
            False, "--resume", help="Go on where the run in the folder stopped; further with -s train.epochs=N."
        ),
        force: bool = typer.Option(False, "--force", help="Start over in a folder that is not empty."),
        data_dir: Path | None = DATA_DIR,
    ) -> None:
        from elman.tasks import fit

        try:
            model = fit(
                task,
                recipe,
                out=out,
                train=train,
                dev=dev,
                test=test,
                settings=settings,
                unlabelled=unlabelled,
                start=start,
                resume=resume,
                force=force,
                data_dir=data_dir,
            )
        except Interrupted as stop:
            raise Interrupted(f"{stop}; go on with: elman train {task} --out {out} --resume") from None
        show_report(model.report)
        typer.echo(f"the model is in {out}: try  {next_command.format(out)}")

    return train_task


def show_report(report: "Report") -> None:
    """The scores beside the baselines, as tables; then whatever else the task has to say of them."""
    from rich.table import Table

    from elman.cli.streams import console
    from elman.tasks.report import MODEL

    for name in report.sets:
        columns, rows = report.table(name)
        table = Table(title=report.title(name), title_justify="left")
        table.add_column("", no_wrap=True)
        for column in columns:
            table.add_column(column, justify="right")
        for row in rows:
            table.add_row(*row, style="bold" if row[0] == MODEL else None)
        console().print(table)
    if details := report.details():
        typer.echo(f"\n{details}\n")
    if note := report.get("note"):
        typer.echo(note, err=True)
