"""`elman predict`: one record in, one out; a file of any size in constant memory, a pipe as its lines come."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import TracebackType
from typing import Any, cast, get_args, get_origin

import typer
from typer.core import TyperCommand

from elman.errors import UserError

PLAIN_SECONDS = 10.0  # off a terminal, at most one line in so many seconds


class PredictCommand(TyperCommand):
    """Shows the options of the model's task beside those that all models have."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, after a look at which model they name."""
        here, owners = _task_named(args), _owners()
        for option in self.params:
            if option.name in owners:
                option.hidden = here not in owners[option.name]  # type: ignore[attr-defined]
        return super().parse_args(ctx, args)


def _task_named(args: list[str]) -> str | None:
    """The task of the first argument that is a model's folder."""
    for argument in args:
        config = Path(argument) / "config.json"
        if not argument.startswith("-") and config.is_file():
            try:
                return str(json.loads(config.read_text(encoding="utf-8"))["task"])
            except (OSError, ValueError, KeyError, TypeError):  # told of when it is loaded
                return None
    return None


def _owners() -> dict[str, list[str]]:
    """The tasks that have each option."""
    from elman.tasks import TASKS

    owners: dict[str, list[str]] = {}
    for task in TASKS.values():
        for name in task.Options.model_fields:
            owners.setdefault(name, []).append(task.name)
    return owners


def _option(name: str, field: Any) -> Parameter:
    """A key of a task's options as an option of the command line."""
    kinds = list(_kinds(field.annotation))
    flag, several = bool in kinds, get_origin(field.annotation) is tuple
    default: Any = [] if several else False if flag else None
    kind: Any = bool if flag else list[str] if several else str | None
    shown = {int: "INTEGER", float: "FLOAT"}.get(_number(kinds), None if flag else "TEXT")
    option = typer.Option(default, f"--{name.replace('_', '-')}", help=field.description, metavar=shown)
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind)


def _kinds(annotation: Any) -> Iterator[Any]:
    """The types that an annotation is made of."""
    yield annotation
    for part in get_args(annotation):
        yield from _kinds(part)


def _number(kinds: Iterable[Any]) -> Any:
    """The kind of number among some types; None where there is none."""
    return next((kind for kind in kinds if kind in (int, float)), None)


def add_to(app: typer.Typer) -> None:
    """Put the command in its place, with the options of all tasks."""
    from elman.tasks import TASKS

    options = {
        name: _option(name, field) for task in TASKS.values() for name, field in task.Options.model_fields.items()
    }

    @wraps(predict)
    def command(**given: Any) -> None:
        predict(**given)

    own = [one for one in signature(predict).parameters.values() if one.kind is not Parameter.VAR_KEYWORD]
    every = [*own, *options.values()]
    command.__signature__ = Signature(every)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in every} | {"return": None}
    app.command("predict", cls=PredictCommand)(command)


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
    if backend not in ("auto", "compiled", "torch"):
        raise UserError(f"--backend is auto, compiled or torch, not {backend!r}")
    loaded = load(model, backend=cast(Any, backend))
    task = TASKS[loaded.task]
    if task.command != "predict":
        raise UserError(f"{model} holds a model that predicts no labels: use it with  elman {task.command} {model}")
    predictor, asked = task.predictor(loaded, _asked(given, task.name, model))
    for source in inputs(data or ["-"], encoding):
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
            )
            for line in predictor.predict_lines(progress.watch(source.lines(bad)), options):
                sys.stdout.write(line + "\n")
                if source.more is not None and not source.more():
                    sys.stdout.flush()
            sys.stdout.flush()
            if bad.count:
                progress.say(f"{bad.count} line{'s' if bad.count != 1 else ''} skipped")


def _asked(given: dict[str, Any], task: str, model: Path) -> dict[str, Any]:
    """What is asked of the model's task; an option of another one is refused."""
    from elman.tasks import TASKS
    from elman.train.recipe import from_toml

    asked = {name: value for name, value in given.items() if value is not None and value is not False and value != []}
    owners, fields = _owners(), TASKS[task].Options.model_fields
    for name in asked:
        if task not in owners[name]:
            raise UserError(
                f"--{name.replace('_', '-')} is an option of the task '{owners[name][0]}', and {model} holds a model "
                f"for '{task}': leave it out"
            )
        if _number(_kinds(fields[name].annotation)) is not None:  # told of in the task's words where it is none
            asked[name] = from_toml(asked[name])
    return asked


class _Progress:
    """How much was read and how fast, on standard error: a bar on a terminal, now and then a line elsewhere."""

    def __init__(self, path: Path | None) -> None:
        from rich.console import Console

        self.console = Console(stderr=True)
        self.size = path.stat().st_size if path is not None and path.is_file() and path.suffix != ".gz" else None
        self.lines = self.bytes = 0
        self.began = self.told = time.monotonic()
        self.bar: Any = None

    def __enter__(self) -> "_Progress":
        if self.console.is_terminal and not sys.stdout.isatty():
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("predicting"), BarColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
            self.bar = Progress(*columns, console=self.console, transient=True)
            self.task = self.bar.add_task("", total=self.size)
            self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.bar is not None:
            self.bar.stop()

    def watch(self, lines: Iterator[str]) -> Iterator[str]:
        """The same lines, counted as they are read."""
        for line in lines:
            self.lines += 1
            self.bytes += len(line.encode("utf-8", "surrogatepass")) + 1
            if self.lines % 1000 == 0:
                self._show()
            yield line

    def _show(self) -> None:
        figures = f"{self.lines:,} lines, {self.lines / max(time.monotonic() - self.began, 1e-9):,.0f} a second"
        if self.bar is not None:
            self.bar.update(self.task, completed=self.bytes, description=figures)
        elif not self.console.is_terminal and time.monotonic() - self.told >= PLAIN_SECONDS:
            self.told = time.monotonic()
            share = f"{min(self.bytes / self.size, 1.0):4.0%}  " if self.size else ""
            self.say(f"{share}{figures}")

    def say(self, line: str) -> None:
        """One line of text."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)
