"""`elman compare`: several runs of one recipe, side by side."""

from pathlib import Path

import typer

from elman.cli.data import DATA_DIR
from elman.cli.streams import unheard


@unheard()
def compare(
    recipe: str = typer.Argument(..., help="A recipe's file, or the name of one that comes with Elman."),
    vary: list[str] = typer.Option([], "--vary", help="section.key=value,value; several keys are combined."),
    variants: list[str] = typer.Option(
        [], "--variant", help="'NAME: section.key=value ...': settings that go together."
    ),
    seeds: int | None = typer.Option(None, "--seeds", min=1, help="Runs of each combination; 3 unless told."),
    settings: list[str] = typer.Option([], "--set", "-s", help="section.key=value, over the recipe, for all runs."),
    out: Path = typer.Option(..., "--out", "-o", help="A folder for the runs, the table and the picture."),
    force: bool = typer.Option(False, "--force", help="Start over the runs that are there already."),
    data_dir: Path | None = DATA_DIR,
) -> None:
    """Train every combination of some settings: a table with mean and spread, and a picture. Finished runs are kept."""
    from rich.table import Table

    from elman.cli.streams import console
    from elman.tasks import compare as comparing

    found = comparing.compare(
        recipe,
        out=out,
        vary=vary,
        variants=variants,
        seeds=seeds,
        settings=settings,
        force=force,
        data_dir=data_dir,
        show=lambda line: typer.echo(line, err=True),
    )
    heading, *lines = comparing.rows(found)
    table = Table(*heading)
    for place, line in enumerate(lines):
        table.add_row(*line, style="bold" if place == comparing.best(found) else None)
    console().print(table)
    typer.echo(
        f"the runs are in {out}/runs, the table is in table.md and table.json, the picture is plot.png, .svg and .html"
    )
