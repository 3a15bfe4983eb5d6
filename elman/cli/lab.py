"""`elman lab`: the claims of the course, each an experiment."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from elman.cli.options import asked_of, with_options


def _experiments() -> dict[str, Any]:
    from elman.lab import EXPERIMENTS

    return EXPERIMENTS


def _fields() -> dict[str, Any]:
    """Every key that some experiment has."""
    return {name: field for one in _experiments().values() for name, field in one.Options.model_fields.items()}


def add_to(app: typer.Typer, line: Sequence[str] | None = None) -> None:
    """Put the command in its place, with the options of all experiments, or with those of the one that a line names."""
    if line is None:
        command = with_options(lab, _fields())
    else:
        named = next((argument for argument in line if argument in _experiments()), None)
        command = with_options(lab, {} if named is None else _experiments()[named].Options.model_fields, line, _fields)
    app.command("lab")(command)


def lab(
    name: str | None = typer.Argument(
        None, help="An experiment; without one they are listed, with --help its options."
    ),
    out: Path | None = typer.Option(
        None, "--out", "-o", help="A page (.html), the numbers (.json), .png, .svg or .gif."
    ),
    as_json: bool = typer.Option(False, "--json", help="The numbers as JSON."),
    **given: Any,
) -> None:
    """Run an experiment of the course: its claim, the numbers with their spread, a picture, and the verdict."""
    if name is None:
        for experiment in _experiments().values():
            typer.echo(f"{experiment.name:<12}{experiment.about}")
        return
    import json

    from rich.console import Console

    from elman.draw.output import check_format
    from elman.draw.terminal import print_page
    from elman.lab import find_experiment, run

    experiment = find_experiment(name)
    if out is not None and not experiment.asks_for_film(out):
        check_format(out)
    asked = asked_of(given, experiment.Options.model_fields, lambda name: _elsewhere(name, experiment))
    outcome = run(name, say=lambda line: typer.echo(line, err=True), **asked)
    if as_json:
        typer.echo(json.dumps(outcome.to_dict(), ensure_ascii=False))
    else:
        print_page(outcome.page(), Console())
    if out is not None:
        outcome.save(out)
        typer.echo(f"{name} is in {out}", err=True)


def _elsewhere(name: str, experiment: Any) -> str:
    """Whose option a key is."""
    owners = [one.name for one in _experiments().values() if name in one.Options.model_fields]
    return f"{', '.join(owners)}, and not of '{experiment.name}': leave it out"
