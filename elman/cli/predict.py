"""`elman predict`: one record in, one out; a file of any size in constant memory, a pipe as its lines come."""

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from elman.cli.options import asked_of, task_named, with_options
from elman.errors import UserError
from elman.train.progress import PLAIN_SECONDS, Reporter


def add_to(app: typer.Typer, line: Sequence[str] | None = None) -> None:
    """Register `elman predict`, with the options of all tasks, or with those of the model that a line names."""
    from elman.tasks import TASKS

    if line is None:
        command = with_options(predict, _fields())
    else:
        task = task_named(line)
        own = TASKS[task].Options.model_fields if task is not None and task in TASKS else {}
        command = with_options(predict, own, line, _fields)
    app.command("predict")(command)


def _fields() -> dict[str, Any]:
    """Every key that the options of some task have."""
    from elman.tasks import TASKS

    return {name: field for task in TASKS.values() for name, field in task.Options.model_fields.items()}


def predict(
    model: Path = typer.Argument(..., help="A model's folder; with --help, its own options are shown too."),
    data: list[str] = typer.Argument(None, help="A text, files, folders, patterns (*.txt); - is standard input."),
    as_json: bool = typer.Option(False, "--json", help="One JSON record for each record."),
    column: str | None = typer.Option(None, "--column", "-c", help="The text's column or field, by name or number."),
    format: str | None = typer.Option(
        None, "--format", "-f", help="csv, tsv, jsonl, txt, ...; else the file's ending."
    ),
    on_error: str = typer.Option("fail", "--on-error", help="What a bad line does: fail, or skip (and be reported)."),
    encoding: str = typer.Option("utf-8", "--encoding", help="Of the input."),
    window: int = typer.Option(
        4096, "--window", min=1, max=2**31 - 1, help="Records held in memory, to be grouped by length."
    ),
    backend: str = typer.Option("auto", "--backend", help="compiled, torch, or auto: compiled where it can be."),
    **given: Any,
) -> None:
    """Predict for a text, or for every record of files or of standard input, in order."""
    from elman.records.lines import BadLines
    from elman.tasks import TASKS, load
    from elman.tasks.predict import PredictOptions, inputs

    if on_error not in ("fail", "skip"):
        raise UserError(f"--on-error is fail or skip, not {on_error!r}")
    loaded = load(model, backend=cast(Any, backend))
    task = TASKS[loaded.task]
    own = asked_of(given, task.Options.model_fields, lambda name: _elsewhere(name, task.name, model))
    predictor, asked = task.predictor(loaded, own)
    images = task.record_is_image
    sources = list(inputs(data or ["-"], encoding, lambda line: typer.echo(line, err=True), images=images))
    for source in sources:
        with _Progress(source.path) as progress:
            bad = BadLines("skip" if on_error == "skip" else "fail", progress.say)
            options = PredictOptions(
                where=source.where,
                format=format,
                column=column,
                as_json=as_json,
                colour=sys.stdout.isatty(),
                asked=asked,
                bad=bad,
                say=progress.say,
                window=window,
                more=source.more,  # who waits for an answer has it before the next line
                several=len(sources) > 1,
            )
            for line in predictor.predict_lines(progress.watch(source.lines(bad)), options):
                sys.stdout.write(line + "\n")
                if source.more is not None and not source.more():
                    sys.stdout.flush()
            sys.stdout.flush()
            if bad.count:
                progress.say(f"{bad.count} line{'s' if bad.count != 1 else ''} skipped")


def _elsewhere(name: str, task: str, model: Path) -> str:
    """Whose option a key is."""
    from elman.tasks import TASKS

    owners = [f"'{other.name}'" for other in TASKS.values() if name in other.Options.model_fields]
    whose = f"the task {owners[0]}" if len(owners) == 1 else f"the tasks {', '.join(owners)}"
    return f"{whose}, and {model} holds a model for '{task}': leave it out"


class _Progress(Reporter):
    """How much was read and how fast, on standard error: a bar on a terminal, now and then a line elsewhere."""

    def __init__(self, path: Path | None) -> None:
        super().__init__()
        self.size = path.stat().st_size if path is not None and path.is_file() and path.suffix != ".gz" else None
        self.lines = self.bytes = 0

    def __enter__(self) -> "_Progress":
        if self.console.is_terminal and not sys.stdout.isatty():
            columns = (TextColumn("predicting"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
            self._bar = Progress(*columns, console=self.console, transient=True)
            self._task = self._bar.add_task("", total=self.size)
            self._bar.start()
        return self

    def watch(self, lines: Iterator[str]) -> Iterator[str]:
        """The lines, counted as they are read."""
        for line in lines:
            self.lines += 1
            self.bytes += len(line.encode("utf-8", "surrogatepass")) + 1
            if self.lines % 1000 == 0:
                self._show()
            yield line

    def _show(self) -> None:
        figures = f"{self.lines:,} lines, {self.lines / max(time.monotonic() - self._started, 1e-9):,.0f} a second"
        if self._bar is not None:
            self._bar.update(self._task, completed=self.bytes, description=figures)
        elif not self.console.is_terminal and time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            share = f"{min(self.bytes / self.size, 1.0):4.0%}  " if self.size else ""
            self.say(f"{share}{figures}")
