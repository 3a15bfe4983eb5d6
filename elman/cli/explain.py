"""`elman explain`: what a model looked at, as a picture or as figures."""

from pathlib import Path

import typer

from elman.errors import UserError


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    app.command("explain")(explain)


def explain(
    model: Path = typer.Argument(..., help="The folder of a translator."),
    text: str = typer.Argument(..., help="A text to translate."),
    out: Path = typer.Option(..., "--out", "-o", help="A .png with the alignment, or a .json with its weights."),
    target: str | None = typer.Option(None, "--target", help="Align with this text in place of the model's own."),
) -> None:
    """Show where a translator looks while it writes."""
    from elman.inspect import draw_alignment
    from elman.tasks import Translator, load

    if out.suffix.lower() not in (".png", ".json"):
        raise UserError(f"{out} should end in .png for a picture or .json for the weights")
    found = load(model)
    if not isinstance(found, Translator):
        raise UserError(f"{model} is no translator: where other models look cannot be shown yet")
    seen = found.predict(text, alignments=True) if target is None else found.align(text, target)
    assert seen.weights is not None
    if out.suffix.lower() == ".png":
        draw_alignment(seen.weights, seen.source_tokens, seen.target_tokens, out)
    else:
        from elman.files import write_json

        write_json(
            out,
            {
                "source": text,
                "translation": seen.text,
                "source_tokens": seen.source_tokens,
                "target_tokens": seen.target_tokens,
                "weights": seen.weights.round(6).tolist(),
            },
        )
    typer.echo(f"{seen.text}\nthe alignment is in {out}")
