"""`elman predict`: one record a line in, one a line out; a file of any size in constant memory."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import typer

from elman.errors import UserError

if TYPE_CHECKING:
    from elman.tasks import Translator
    from elman.tasks.predict import Predictor
    from elman.tasks.translate import NoisyChannel

PLAIN_SECONDS = 10.0  # off a terminal, at most one line in so many seconds


def add_to(app: typer.Typer) -> None:
    """Put the command in its place."""
    app.command("predict")(predict)


def predict(
    model: Path = typer.Argument(..., help="The folder of a classifier, tagger or translator."),
    data: Path = typer.Argument(Path("-"), help="A file; - is standard input."),
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
    beam: int | None = typer.Option(None, "--beam", help="Translators: hypotheses side by side; 1 is greedy."),
    n_best: int | None = typer.Option(None, "--n-best", help="Translators: so many translations of each text."),
    prefix: str | None = typer.Option(None, "--prefix", help="Translators: every translation begins so."),
    require: list[str] = typer.Option([], "--require", help="Translators: a word that must appear."),
    forbid: list[str] = typer.Option([], "--forbid", help="Translators: a word that must not appear."),
    alignments: bool = typer.Option(False, "--alignments", help="Translators: which token comes from which (0-0 1-2)."),
    search: list[str] = typer.Option([], "--search", help="Translators: name=value, any other option of the search."),
    ensemble: list[Path] = typer.Option([], "--ensemble", help="Translators: a further model to average with."),
    channel: Path | None = typer.Option(
        None, "--channel", help="Translators: one the other way, to rerank by; see --lm."
    ),
    lm: Path | None = typer.Option(None, "--lm", help="Translators: a language model of the target, to rerank by."),
    channel_weights: str | None = typer.Option(
        None, "--channel-weights", help="Of the reranking, name=value,...; elman rerank finds them."
    ),
) -> None:
    """Predict for every record of a file or of standard input, in order."""
    from elman.cli.streams import standard_input
    from elman.records.lines import read_lines, stream_lines
    from elman.tasks.predict import BadRecords, PredictOptions

    if on_error not in ("fail", "skip"):
        raise UserError(f"--on-error is fail or skip, not {on_error!r}")
    asked = _search(beam, n_best, prefix, require, forbid, alignments, search)
    beside = {"ensemble": ensemble, "channel": channel, "lm": lm, "channel_weights": channel_weights}
    found = _load(model, asked, beside)
    piped = str(data) == "-"
    with _Progress(None if piped else data) as progress:
        bad = BadRecords("skip" if on_error == "skip" else "fail", progress.say)
        how = (encoding, bad, "--encoding ")
        lines = stream_lines(standard_input(), data, *how) if piped else read_lines(data, *how)
        typed = piped and sys.stdin.isatty()
        options = PredictOptions(
            where=data,
            format=format,
            column=column,
            as_json=as_json,
            colour=sys.stdout.isatty(),
            search=asked,
            bad=bad,
            say=progress.say,
            window=1 if typed else window,  # whoever types wants the answer before the next line
        )
        for line in found.predict_lines(progress.watch(lines), options):
            sys.stdout.write(line + "\n")
            if typed:
                sys.stdout.flush()
        sys.stdout.flush()
        if bad.count:
            progress.say(f"{bad.count} line{'s' if bad.count != 1 else ''} skipped")


def _load(model: Path, asked: dict[str, Any], beside: dict[str, Any]) -> "Predictor":
    """The model of a folder, if it can do what is `asked` of it with the models `beside` it."""
    from elman.tasks import Translator, load
    from elman.tasks.predict import Predictor

    found = load(model)
    if not isinstance(found, Predictor):
        raise UserError(f"{model} holds a model that predicts no labels: use it with  elman generate {model}")
    if isinstance(found, Translator):
        return _together(found, **beside)
    if others := asked | {name: value for name, value in beside.items() if value}:
        raise UserError(f"{model} is no translator: leave --{next(iter(others)).replace('_', '-')} out")
    return found


def _together(
    model: "Translator", ensemble: list[Path], channel: Path | None, lm: Path | None, channel_weights: str | None
) -> "Translator | NoisyChannel":
    """A translator with the models that help it."""
    from elman.cli.rerank import open_channel
    from elman.tasks import load

    if ensemble:
        model = model.beside(*(load(other, "translate") for other in ensemble))
    if channel is None and lm is None and channel_weights is None:
        return model
    if channel is None or lm is None:
        raise UserError("reranking needs a model the other way and a language model: give both --channel and --lm")
    return open_channel(model, channel, lm, channel_weights)


def _search(
    beam: int | None,
    n_best: int | None,
    prefix: str | None,
    require: list[str],
    forbid: list[str],
    alignments: bool,
    settings: list[str],
) -> dict[str, Any]:
    """What was asked of a translator, by name."""
    from elman.train.recipe import apply_overrides

    named = {"beam": beam, "n_best": n_best, "prefix": prefix, "require": require, "forbid": forbid}
    given = {name: value for name, value in named.items() if value is not None and value != []}
    return given | ({"alignments": True} if alignments else {}) | apply_overrides({}, settings)


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
