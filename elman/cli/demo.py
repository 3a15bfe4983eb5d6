"""`elman demo`: the quick tour, on what every machine has: Python's own source, and Faker's surnames if installed."""

from pathlib import Path

import typer

TEMPERATURES = (0.5, 0.8, 1.1)
NAMES = ("Kowalczyk", "Yamamoto", "Papadopoulos", "Fernández", "Lindqvist", "Kovačević", "Nguyễn")


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    app.command("demo")(demo)


def demo(
    out: Path = typer.Option(Path("runs/demo"), "--out", "-o", help="The run's folder; written anew each time."),
    settings: list[str] = typer.Option([], "--set", "-s", help="section.key=value, over the demo's recipe."),
) -> None:
    """Train a small character model on Python source, measure it, let it write; then sort surnames by language."""
    from elman.corpora.builtin import can_make

    write_python(out, settings)
    if can_make("surnames"):
        sort_surnames(out / "surnames")
    else:
        typer.echo("\nWith Faker the tour also sorts surnames by language: pip install 'elman[demo]'")
    typer.echo(f"\nThe run is in {out}: its curves are curves.png, its card README.md. Go on with:")
    typer.echo(f'  elman generate {out} --prompt "class "')
    typer.echo("  elman train lm --train YOUR.txt --out runs/mine")
    typer.echo("  elman train classify --train YOUR.csv --out runs/sorted")


def write_python(out: Path, settings: list[str]) -> None:
    """A language model of characters."""
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


def sort_surnames(out: Path, settings: list[str] | None = None) -> None:
    """A classifier of names."""
    from rich.console import Console
    from rich.table import Table

    from elman.tasks import fit, load
    from elman.tasks.classify.report import COLUMNS, rows

    typer.echo("\nA classifier learns the language of surnames, letter by letter.\n")
    report = fit("classify", "surnames", out=out, settings=settings or [], force=True)
    table = Table("", *COLUMNS, title=f"test ({report['test']['texts']:,} names it has not seen)")
    for row in rows(report, "test"):
        table.add_row(*row, style="bold" if row[0] == "this model" else None)
    Console().print(table)
    for name, found in zip(NAMES, load(out).predict(NAMES), strict=True):
        likeliest = sorted(found.probabilities.items(), key=lambda pair: -pair[1])[:3]
        typer.echo(f"  {name:14} " + ", ".join(f"{label} {p:.0%}" for label, p in likeliest))
    typer.echo(f"\nThe classifier is in {out}: its confusion matrix is confusion.png. Ask it:  elman predict {out}")
