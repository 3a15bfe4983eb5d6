"""`elman export`: a trained model as a folder of its own, without the run around it."""

from pathlib import Path
from typing import Any, cast

import typer

from elman.cli.evaluate import ENSEMBLE
from elman.errors import UserError


def export(
    model: Path = typer.Argument(..., help="The folder of a trained model, or a file of word vectors."),
    out: Path = typer.Option(..., "--out", "-o", help="A new folder for the model; with --format a file."),
    int8: bool = typer.Option(False, "--int8", help="Round the weights to 8 bits: a quarter of the size."),
    ensemble: list[Path] = ENSEMBLE,
    format: str | None = typer.Option(None, "--format", help="Of word vectors: word2vec, word2vec-binary or glove."),
) -> None:
    """Write what a model needs to run, and nothing else."""
    from elman.tasks import export as exports

    if format is not None:
        if int8 or ensemble:
            raise UserError(f"--{'int8' if int8 else 'ensemble'} is for a model's folder: leave it out, or --format")
        exports.export_vectors(model, out, cast(Any, format))
        typer.echo(f"{out} has {out.stat().st_size / 1e6:,.2f} MB")
        return
    exports.export(model, out, int8=int8, ensemble=ensemble)
    if model.is_file():
        typer.echo(f"{out} has {exports.model_bytes(out) / 1e6:,.2f} MB")
        return
    before, after = exports.model_bytes(model), exports.model_bytes(out)
    typer.echo(f"{out} has {after / 1e6:,.2f} MB, {after / before:.0%} of {model}")
