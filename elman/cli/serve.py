"""`elman serve`: models over HTTP, and the page that uses them."""

import logging
import os
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from elman.cli.options import asked_of, with_options
from elman.errors import UserError, nearest

KEY = "ELMAN_API_KEY"
NEEDED = ("fastapi", "uvicorn", "prometheus_client")


def add_to(app: typer.Typer, line: Sequence[str] | None = None) -> None:
    """Register `elman serve`, with an option for each limit."""
    from elman.serve.limits import Limits

    app.command("serve")(with_options(serve, Limits.model_fields))


def serve(
    models: list[str] = typer.Argument(..., help="Model folders, called by their last name, or NAME=FOLDER."),
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen at; only this machine unless told."),
    port: int = typer.Option(8000, "--port", "-p", min=0, max=65535, help="The port; 0 takes a free one."),
    workers: int = typer.Option(1, "--workers", min=1, max=256, help="Processes that answer at the port."),
    reload: bool = typer.Option(False, "--reload", help="Load a model anew when its folder changes."),
    api_key_file: Path | None = typer.Option(
        None, "--api-key-file", help=f"A file with the key that requests need; or in the environment: {KEY}."
    ),
    cors: list[str] = typer.Option([], "--cors", help="An origin whose pages may ask, as http://host; repeatable."),
    runs: Path | None = typer.Option(None, "--runs", help="A folder of training runs to show."),
    allow_training: bool = typer.Option(
        False, "--allow-training", help="Let the page start, stop and resume runs in the folder --runs."
    ),
    data: Path | None = typer.Option(None, "--data", help="The folder whose files --allow-training may train on."),
    language: list[str] = typer.Option([], "--language", help="A translator's languages, as NAME=de-en; repeatable."),
    **given: Any,
) -> None:
    """Answer over HTTP: completions, classes, tags, translations, explanations; and the Studio, a page for them."""
    missing = next((name for name in NEEDED if find_spec(name) is None), None)
    if missing is not None:
        raise UserError(f"elman serve needs {missing}: pip install 'elman[serve]'")
    from elman.serve.limits import Limits
    from elman.train.recipe import parse

    limits = parse(Limits, asked_of(given, Limits.model_fields, str), where="the options")
    key = read_key(api_key_file)
    for origin in cors:
        if not re.fullmatch(r"\*|null|[a-z][a-z0-9+.-]*://[^/?#@\s]+", origin) or not origin.isascii():
            raise UserError(f"--cors {origin!r} is no origin: give it as http://host, or http://host:port")
    if runs is not None and not runs.is_dir():
        raise UserError(f"there is no folder of runs at {runs}")
    training = _trainer(runs, data, key, host, workers) if allow_training else None
    _log()
    if workers > 1:
        from elman.serve.workers import share_metrics

        share_metrics()  # before anything is counted
    from elman.serve.run import run
    from elman.serve.shelf import named_folders

    options: dict[str, Any] = {"api_key": key, "origins": tuple(cors), "runs": runs, "training": training}
    options["languages"] = spoken = languages(language)
    served = named_folders(models)
    if unknown := next((name for name in spoken if name not in served), None):
        raise UserError(f"--language {unknown}: there is no model of this name here: {nearest(unknown, served)}")
    raise typer.Exit(run(models, host, port, workers=workers, reload=reload, limits=limits, **options))


def _trainer(runs: Path | None, data: Path | None, key: str | None, host: str, workers: int) -> Any:
    """What starts runs, where that is safe."""
    from elman.serve.training import Trainer

    if runs is None or data is None or not data.is_dir():
        raise UserError("--allow-training needs a folder for runs (--runs) and one of files to train on (--data)")
    if key is None and host not in ("127.0.0.1", "::1", "localhost"):
        raise UserError("--allow-training is for this machine alone, unless there is a key: give --api-key-file")
    if workers > 1:
        raise UserError("--allow-training goes with one process: leave out --workers")
    return Trainer(runs, data)


def read_key(path: Path | None) -> str | None:
    """The key of a file, or of the environment; None where there is none."""
    key = os.environ.get(KEY)
    if path is not None:
        from elman.files import reading

        with reading(path, missing=f"there is no key file at {path}"):
            key = path.read_text(encoding="utf-8", errors="replace").strip()
            if path.stat().st_mode & 0o077:
                warn(f"warning: others can read the key file {path}: chmod 600 {path}")
        if not key:
            raise UserError(f"the key file {path} is empty: write a key into it")
    if key is not None and (not key.isascii() or not key.isprintable() or any(c.isspace() for c in key)):
        raise UserError("the key must be letters, digits and signs without blanks, as a header can carry them")
    return key or None


def languages(given: list[str]) -> dict[str, tuple[str, str]]:
    """The languages of translators by name.

    >>> languages(["mine=de-en"])
    {'mine': ('de', 'en')}
    """
    found = {}
    for one in given:
        name, _, pair = one.partition("=")
        source, _, target = pair.partition("-")
        if not (name and source and target):
            raise UserError(f"--language is NAME=SOURCE-TARGET, as in mine=de-en, not {one!r}")
        found[name] = (source, target)
    return found


def warn(sentence: str) -> None:
    """Tell the user something that is no error."""
    typer.echo(sentence, err=True)


def _log() -> None:
    """What the service has to say goes to standard error, a line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger = logging.getLogger("elman.serve")
    logger.handlers, logger.propagate = [handler], False
