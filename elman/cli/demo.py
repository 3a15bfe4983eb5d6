"""`elman demo`: the quick tour, on what every machine has: Python's own source, and with the extra `demo` surnames and
dates in many languages."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from elman.cli.streams import unheard

if TYPE_CHECKING:
    from elman.tasks.report import Report

TEMPERATURES = (0.5, 0.8, 1.1)
NAMES = ("Kowalczyk", "Yamamoto", "Papadopoulos", "Fernández", "Lindqvist", "Kovačević", "Nguyễn")
DATES = ("lundi 16 novembre 2026", "3 March 1999", "2007년 5월 21일", "24 de diciembre de 1985", "7. helmikuuta 2031")


@unheard()
def demo(
    out: Path = typer.Option(Path("runs/demo"), "--out", "-o", help="The run's folder; written anew each time."),
    settings: list[str] = typer.Option([], "--set", "-s", help="section.key=value, over the demo's recipe."),
) -> None:
    """A character model writes Python; a classifier sorts surnames by language; a translator reads dates."""
    from elman.generated.builtin import can_make

    write_python(out, settings)
    made = [out]
    for corpus, tour in (("surnames", sort_surnames), ("dates", translate_dates)):
        if can_make(corpus):
            tour(out / corpus)
            made.append(out / corpus)
        else:
            typer.echo(f"\nWith the extra `demo` the tour goes on with {corpus}: pip install 'elman[demo]'")
    typer.echo(f"\nThe run is in {out}: its curves are curves.png, its card README.md. Go on with:")
    typer.echo(f'  elman generate {out} --prompt "class "')
    typer.echo("  elman train lm --train YOUR.txt --out runs/mine")
    typer.echo("  elman train classify --train YOUR.csv --out runs/sorted")
    typer.echo("  elman train translate --train YOUR.de --train YOUR.en --out runs/translated")
    typer.echo(
        f"The Studio, a page for these models and their runs:\n  elman serve {' '.join(map(str, made))} --runs {out}"
    )


def write_python(out: Path, settings: list[str]) -> None:
    """A language model of characters."""
    from elman.cli.train import show_report
    from elman.decode import Sampling
    from elman.tasks import fit

    typer.echo("A character model learns to write Python, from the standard library's own source.\n", err=True)
    model = fit("lm", "demo", out=out, settings=settings, force=True)
    show_report(model.report)
    for temperature in TEMPERATURES:
        typer.secho(f"\nWritten at temperature {temperature}:", bold=True)
        typer.echo("def ", nl=False)
        for _, piece in model.stream("def ", length=240, sampling=Sampling(temperature, seed=1)):
            typer.echo(piece, nl=False)
        typer.echo()


def sort_surnames(out: Path, settings: list[str] | None = None) -> None:
    """A classifier of names."""
    from elman.tasks import fit

    typer.echo("\nA classifier learns the language of surnames, letter by letter.\n")
    model = fit("classify", "surnames", out=out, settings=settings or [], force=True)
    _show_test(model.report, "names")
    for name, found in zip(NAMES, model.predict(NAMES), strict=True):
        likeliest = sorted(found.probabilities.items(), key=lambda pair: -pair[1])[:3]
        typer.echo(f"  {name:14} " + ", ".join(f"{label} {p:.0%}" for label, p in likeliest))
    typer.echo(f"\nThe classifier is in {out}: its confusion matrix is confusion.png. Ask it:  elman predict {out}")


def translate_dates(out: Path, settings: list[str] | None = None) -> None:
    """A translator of dates into ISO form, and where it looks."""
    from elman.draw.alignment import draw_alignment
    from elman.tasks import fit

    typer.echo("\nA translator learns to read dates in the wording of 59 languages and regions.\n")
    model = fit("translate", "dates", out=out, settings=settings or [], force=True)
    _show_test(model.report, "dates")
    found = model.predict(DATES, alignments=True)
    for one in found:
        typer.echo(f"  {one.text:12} {one.source}")
    draw_alignment(found[0].weights, found[0].source_tokens, found[0].target_tokens, out / "alignment.png")
    typer.echo(f"\nWhere it looked is in {out / 'alignment.png'}. Ask it:  elman predict {out}")


def _show_test(report: "Report", what: str) -> None:
    """The scores on the test set beside the baselines'."""
    from rich.table import Table

    from elman.cli.streams import console
    from elman.tasks.report import MODEL

    columns, rows = report.table("test")
    size = report["test"][report.task.counted]
    table = Table("", *columns, title=f"test ({size:,} {what} it has not seen)")
    for row in rows:
        table.add_row(*row, style="bold" if row[0] == MODEL else None)
    console().print(table)
