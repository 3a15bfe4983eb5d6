"""`elman train lm`: from text and a recipe to a model folder."""

from pathlib import Path
from typing import Any

import typer

from elman.errors import Interrupted

train_app = typer.Typer(help="Train a model.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    app.add_typer(train_app, name="train")


@train_app.command("lm")
def train_lm(
    recipe: str | None = typer.Argument(None, help="A recipe's file, or the name of one that comes with Elman."),
    train: list[Path] = typer.Option([], "--train", help="Text to train on: files or folders."),
    dev: list[Path] = typer.Option([], "--dev", help="Held-out text; without it, the end of the training text."),
    test: list[Path] = typer.Option([], "--test", help="Text for the final score."),
    settings: list[str] = typer.Option([], "--set", "-s", help="section.key=value, over the recipe."),
    out: Path = typer.Option(..., "--out", "-o", help="The run's folder."),
    resume: bool = typer.Option(False, "--resume", help="Go on exactly where the run in the folder stopped."),
    force: bool = typer.Option(False, "--force", help="Start over in a folder that is not empty."),
    data_dir: Path | None = typer.Option(None, "--data-dir", help="A folder with corpora, looked in first."),
) -> None:
    """Train a language model over characters, bytes, words or sub-words."""
    from elman.tasks import fit

    try:
        report = fit(
            "lm",
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
        raise Interrupted(f"{stop}; go on with: elman train lm --out {out} --resume") from None
    show_report(report)
    typer.echo(f"the model is in {out}: try  elman generate {out}")


def show_report(report: dict[str, Any]) -> None:
    """The scores beside the baselines, as tables."""
    from rich.console import Console
    from rich.table import Table

    from elman.tasks.language.report import COLUMNS, NAMES, rows

    texts = [name for name, scores in report.items() if isinstance(scores, dict) and "perplexity" in scores]
    for name in texts:
        table = Table(title=f"{NAMES.get(name, name)} ({report[name]['tokens']:,} tokens)", title_justify="left")
        table.add_column("", no_wrap=True)
        for column in COLUMNS:
            table.add_column(column, justify="right")
        for row in rows(report, name):
            table.add_row(*row, style="bold" if row[0] == "this model" else None)
        Console().print(table)
