"""`elman export`: a trained model as a folder of its own, without the run around it."""

from pathlib import Path

import typer


def export(
    model: Path = typer.Argument(..., help="The folder of a trained model."),
    out: Path = typer.Option(..., "--out", "-o", help="A new folder for the model."),
    int8: bool = typer.Option(False, "--int8", help="Round the weights to 8 bits: a quarter of the size."),
) -> None:
    """Write what a model needs to run, and nothing else."""
    from elman.tasks import export as exports

    exports.export(model, out, int8=int8)
    before, after = exports.model_bytes(model), exports.model_bytes(out)
    typer.echo(f"{out} has {after / 1e6:,.2f} MB, {after / before:.0%} of {model}")
