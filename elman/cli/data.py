"""`elman data`: the corpora that Elman knows by name."""

import json
from pathlib import Path

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from elman.errors import UserError

app = typer.Typer(help="Built-in and downloadable corpora.", no_args_is_help=True)


def _check_folder(folder: Path | None) -> Path | None:
    if folder is not None and not folder.is_dir():
        raise UserError(f"--data-dir {folder} is no folder: name one with corpora in it, or leave it out")
    return folder


NAME = typer.Argument(..., help="A name that `elman data list` shows.")
DATA_DIR = typer.Option(None, "--data-dir", callback=_check_folder, help="A folder with corpora, looked in first.")


@app.command("list")
def list_corpora(data_dir: Path | None = DATA_DIR) -> None:
    """Every corpus, and whether it is on this machine."""
    from rich.markup import escape

    from elman.cli.streams import console
    from elman.corpora.catalogue import CATALOGUE, is_here
    from elman.generated.builtin import how_to_have

    table = Table("name", "what", "for", "licence", "here", box=None, header_style="bold")
    for entry in CATALOGUE.values():
        missing = "to be fetched" if entry.files else escape(how_to_have(entry.name))
        here = "yes" if is_here(entry, data_dir) else missing
        table.add_row(entry.name, entry.description, ", ".join(entry.tasks), entry.licence, here)
    console().print(table)


@app.command("info")
def show_info(
    name: str = NAME, data_dir: Path | None = DATA_DIR, as_json: bool = typer.Option(False, "--json")
) -> None:
    """What is known of one corpus."""
    from elman.corpora.catalogue import info

    facts = info(name, data_dir)
    if as_json:
        typer.echo(json.dumps(facts, indent=2))
        return
    for key in ("name", "description", "licence", "home", "notes"):
        typer.echo(f"{key:12} {facts[key]}")
    for split, about in facts["splits"].items():
        sizes = ", ".join(f"{about[key]:,} {key}" for key in ("bytes", "characters", "lines") if key in about)
        files = about["files"]
        shown = files[0] if len(files) == 1 else f"{len(files)} files" if files else "made when it is asked for"
        typer.echo(f"{split:12} {shown}{f' ({sizes})' if sizes else ''}")


@app.command("get")
def get(name: str = NAME, data_dir: Path | None = DATA_DIR) -> None:
    """Have a corpus on this machine: find it, or download and check it."""
    from elman.corpora.catalogue import locate

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        files = locate(name, data_dir, lambda done, size: bar.update(task, completed=done, total=size))
    for split, paths in files.items():
        for path in paths:
            typer.echo(f"{split}\t{path}")


@app.command("export")
def export(name: str = NAME, out: Path = typer.Option(..., "--out", "-o"), data_dir: Path | None = DATA_DIR) -> None:
    """Copy a corpus' files into a folder."""
    from elman.corpora import catalogue

    written = catalogue.export(name, out, data_dir)
    typer.echo(f"{len(written)} file{'s' if len(written) != 1 else ''} in {out}")
