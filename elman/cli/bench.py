"""`elman bench`: Elman's speed beside its peers' and the machine's own limit."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

bench_app = typer.Typer(help="Speed beside that of peers, and of the machine.", no_args_is_help=True)

QUICK = typer.Option(False, "--quick", help="Fewer rows, less time on each.")
SECONDS = typer.Option(None, "--seconds", min=0.0, max=86_400.0, help="How long to measure each row.")
THREADS = typer.Option(
    None, "--threads", min=1, max=1024, help="For all that are compared; PyTorch's number unless given."
)
JSON = typer.Option(None, "--json", metavar="FILE", help="Write everything as JSON; - is standard output.")


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    app.add_typer(bench_app, name="bench")


@bench_app.command("layers")
def bench_layers(
    cell: list[str] = typer.Option([], "--cell", help="rnn, gru or lstm, all three unless given; may be repeated."),
    quick: bool = QUICK,
    seconds: float | None = SECONDS,
    threads: int | None = THREADS,
    json_file: str | None = JSON,
) -> None:
    """RNN, GRU and LSTM, forward and backward, against torch.nn and JAX."""
    from elman.bench import layers, table

    run = partial(layers.run, cell)
    _measure(run, table.show_layers, json_file, quick=quick, seconds=seconds, threads=threads)


@bench_app.command("streaming")
def bench_streaming(
    quick: bool = QUICK,
    seconds: float | None = SECONDS,
    threads: int | None = THREADS,
    json_file: str | None = JSON,
) -> None:
    """A character model that writes, against loops in PyTorch and ONNX Runtime."""
    from elman.bench import streaming, table

    _measure(streaming.run, table.show_streaming, json_file, quick=quick, seconds=seconds, threads=threads)


@bench_app.command("prediction")
def bench_prediction(
    quick: bool = QUICK,
    seconds: float | None = SECONDS,
    threads: int | None = THREADS,
    json_file: str | None = JSON,
) -> None:
    """Taggers and a classifier, one sentence at a time and many together, against PyTorch and flair."""
    from elman.bench import prediction, table

    _measure(prediction.run, table.show_prediction, json_file, quick=quick, seconds=seconds, threads=threads)


@bench_app.command("decoding")
def bench_decoding(
    quick: bool = QUICK,
    seconds: float | None = SECONDS,
    threads: int | None = THREADS,
    json_file: str | None = JSON,
) -> None:
    """Translators that write and learn, against JoeyNMT and a course's loop in PyTorch."""
    from elman.bench import decoding, table

    _measure(decoding.run, table.show_decoding, json_file, quick=quick, seconds=seconds, threads=threads)


def _measure(
    run: Callable[..., Any], show: Callable[[Any, Console], None], json_file: str | None, **asked: Any
) -> None:
    """Run a benchmark, watched on standard error; then its table, and its figures where they are asked for."""
    from elman.bench import table
    from elman.cli.streams import console

    report = run(**asked, follow=partial(table.follow, console=Console(stderr=True)))
    if json_file != "-":
        show(report, console())
    _write(report.record(), json_file)


def _write(record: dict[str, Any], json_file: str | None) -> None:
    from elman.files import write_json

    if json_file == "-":
        typer.echo(json.dumps(record, indent=2))
    elif json_file is not None:
        write_json(Path(json_file), record)
