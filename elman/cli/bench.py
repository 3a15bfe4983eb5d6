"""`elman bench`: Elman's speed beside its peers' and the machine's own limit."""

import json
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from elman.cli.data import DATA_DIR

app = typer.Typer(help="Speed beside that of peers, and of the machine.", no_args_is_help=True)

QUICK = typer.Option(False, "--quick", help="Fewer rows, less time on each.")
SECONDS = typer.Option(None, "--seconds", min=0.0, max=86_400.0, help="How long to measure each row.")
THREADS = typer.Option(
    None, "--threads", min=1, max=1024, help="For all that are compared; PyTorch's number unless given."
)
JSON = typer.Option(None, "--json", metavar="FILE", help="Write everything as JSON; - is standard output.")


@app.command("layers")
def bench_layers(
    cell: list[str] = typer.Option([], "--cell", help="rnn, gru or lstm, all three unless given; may be repeated."),
    quick: bool = QUICK,
    seconds: float | None = SECONDS,
    threads: int | None = THREADS,
    json_file: str | None = JSON,
) -> None:
    """RNN, GRU and LSTM, forward and backward, against torch.nn and JAX."""
    _measure("layers", json_file, cells=cell, quick=quick, seconds=seconds, threads=threads)


def _command(name: str) -> Callable[..., None]:
    def measure(
        quick: bool = QUICK,
        seconds: float | None = SECONDS,
        threads: int | None = THREADS,
        json_file: str | None = JSON,
    ) -> None:
        _measure(name, json_file, quick=quick, seconds=seconds, threads=threads)

    return measure


OTHERS = {
    "streaming": "A character model that writes, against loops in PyTorch and ONNX Runtime.",
    "prediction": "Taggers and a classifier, one sentence at a time and many together, against PyTorch and flair.",
    "adapting": "Language models that score text with a cache and with dynamic evaluation, against static ones.",
    "trees": "Networks over trees that learn, against a function in PyTorch that calls itself.",
    "serving": "The service under load, against FastAPI with PyTorch models in a pool of threads.",
    "decoding": "Translators that write and learn, against JoeyNMT and a course's loop in PyTorch.",
}
for name, about in OTHERS.items():
    app.command(name, help=about)(_command(name))


@app.command("vectors")
def bench_vectors(
    quick: bool = QUICK, threads: int | None = THREADS, data_dir: Path | None = DATA_DIR, json_file: str | None = JSON
) -> None:
    """Word vectors that learn, against gensim: words a second, analogies and correlations."""
    _measure("vectors", json_file, quick=quick, threads=threads, data_dir=data_dir)


def _measure(name: str, json_file: str | None, **asked: Any) -> None:
    """Run a benchmark, watched on standard error; then its table, and its figures where they are asked for."""
    from elman.bench import table
    from elman.cli.streams import console
    from elman.files import write_json

    run = import_module(f"elman.bench.{name}").run
    report = run(**asked, follow=partial(table.follow, console=Console(stderr=True)))
    if json_file != "-":
        getattr(table, f"show_{name}")(report, console())
    if json_file == "-":
        typer.echo(json.dumps(report.record(), indent=2))
    elif json_file is not None:
        write_json(Path(json_file), report.record())
