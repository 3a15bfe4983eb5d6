"""`elman demo`: the quick tour, on the source of Python's own library, which every machine has."""

from pathlib import Path

import typer

TEMPERATURES = (0.5, 0.8, 1.1)


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    app.command("demo")(demo)


def demo(
    out: Path = typer.Option(Path("runs/demo"), "--out", "-o", help="The run's folder; written anew each time."),
    settings: list[str] = typer.Option([], "--set", "-s", help="section.key=value, over the demo's recipe."),
) -> None:
    """Train a small character model on Python source, measure it, let it write."""
    from elman.cli.train import show_report
    from elman.decode import Sampling
    from elman.tasks import fit, load

    typer.echo("A character model learns to write Python, from the standard library's own source.\n")
    report = fit("lm", "demo", out=out, settings=settings, force=True)
    show_report(report)
    model = load(out)
    for temperature in TEMPERATURES:
        typer.secho(f"\nWritten at temperature {temperature}:", bold=True)
        typer.echo("def ", nl=False)
        for _, piece in model.stream("def ", length=240, sampling=Sampling(temperature, seed=1)):
            typer.echo(piece, nl=False)
        typer.echo()
    typer.echo(f"\nThe run is in {out}: its curves are curves.png, its card README.md. Go on with:")
    typer.echo(f'  elman generate {out} --prompt "class "')
    typer.echo("  elman train lm --train YOUR.txt --out runs/mine")
