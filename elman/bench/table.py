"""Showing what was measured: a table on a terminal, aligned text elsewhere; and how far the work is."""

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from elman.bench import adapting, decoding, layers, prediction, serving, streaming, trees, vectors
from elman.train.progress import PLAIN_SECONDS

PEAK = "\nThe peak, a large product of PyTorch's: {:.0f} GFLOP/s."
Item = TypeVar("Item")


@dataclass
class Grid:
    """Rows of text under headings; the first `words` columns are words, the others numbers.

    >>> print(Grid(["who", "ms"], [["torch", "10.2"], ["elman", "4.8"]], words=1))
    who      ms
    torch  10.2
    elman   4.8
    """

    headings: list[str]
    rows: list[list[str]] = field(default_factory=list)
    words: int = 1

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.headings, *self.rows, strict=True)]
        return "\n".join("  ".join(self._cells(row, widths)).rstrip() for row in (self.headings, *self.rows))

    def _cells(self, row: list[str], widths: list[int]) -> Iterator[str]:
        for place, (text, width) in enumerate(zip(row, widths, strict=True)):
            yield text.ljust(width) if place < self.words else text.rjust(width)

    def show(self, console: Console, title: str) -> None:
        """Print it, in colours where there is a terminal."""
        if not console.is_terminal:
            console.print(f"\n{title}\n{self}", markup=False, highlight=False, soft_wrap=True)
            return
        table = Table(title=title, title_justify="left", title_style="bold", box=None, header_style="bold")
        for place, heading in enumerate(self.headings):
            table.add_column(heading, justify="left" if place < self.words else "right", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        console.print()
        console.print(table)


def follow(items: Iterator[Item], total: int, console: Console) -> Iterator[Item]:
    """Hand the items on as they come, and show how many there are still to be."""
    if console.is_terminal:
        bar = Progress(
            TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=console
        )
        bar.live.transient = True
        with bar:
            yield from bar.track(items, total=total)
        return
    started = said = time.monotonic()
    for done, item in enumerate(items, start=1):
        now = time.monotonic()
        if now - said >= PLAIN_SECONDS and done < total:
            said = now
            left = (now - started) / done * (total - done)
            console.print(f"{done} of {total} measured, {left:.0f} s left", markup=False, highlight=False)
        yield item


def show_layers(report: layers.LayersReport, console: Console) -> None:
    """Every row, the means, the peak, and what PyTorch's product does between the calls."""
    peers = [who for who in ("torch", "elman", "jax") if any(who in row.seconds for row in report.rows)]
    jax = ["x jax"] if "jax" in peers else []
    headings = ["pass", "layout", "cell", "H/B/T", "directions", *(f"{who} GFLOP/s" for who in peers), "x torch", *jax]
    grid = Grid([*headings, "of peak"], words=4)
    for row in report.rows:
        case = row.case
        speeds = [f"{row.gflops(who):.1f}" for who in peers]
        ratios = [f"{row.ratio(who):.2f}" for who in peers if who != "elman"]
        name = [_pass(case.backward), _layout(case.packed), case.cell, f"{case.hidden}/{case.batch}/{case.steps}"]
        grid.rows.append([*name, str(case.directions), *speeds, *ratios, f"{row.gflops('elman') / report.peak:.0%}"])
    grid.show(console, f"Layers, {_where(report.facts)}")
    means = Grid(["pass", "layout", "cell", "directions", "x torch", *jax], words=3)
    against_jax = report.means("jax")
    for group, mean in report.means().items():
        cell, directions, packed, backward = group
        more = [f"{against_jax[group]:.2f}"] if jax else []
        means.rows.append([_pass(backward), _layout(packed), cell, str(directions), f"{mean:.2f}", *more])
    means.show(console, "Geometric means over the shapes")
    _say(console, PEAK.format(report.peak), *report.skipped)
    product = Grid(["a product of PyTorch's", "best µs", "median µs"])
    whose = {"alone": "alone", "torch": "after torch.nn.GRU", "elman": "after elman.nn.GRU"}
    for kind, found in report.product.items():
        product.rows.append([whose[kind], f"{found['best']:.0f}", f"{found['median']:.0f}"])
    product.show(console, "Whether PyTorch gets slower beside the kernels")


def show_streaming(report: streaming.StreamingReport, console: Console) -> None:
    """A row for each writer of each model, and who could not be asked."""
    headings = ["writer", "hidden", "layers", "streams", "tokens/s", "µs a token", "x nn.LSTM", "x ONNX"]
    grid = Grid([*headings, "of bandwidth"])
    for row in report.rows:
        for who, speed in row.tokens_per_second.items():
            share = row.of_bandwidth.get(who)
            grid.rows.append(
                [
                    *(who, str(row.case.hidden), str(row.case.layers), str(row.case.streams)),
                    *(f"{speed:,.0f}", f"{1e6 / speed:.1f}"),
                    *(_times(row.ratio(who, peer)) for peer in (streaming.LSTM, streaming.ONNX)),
                    f"{share:.0%}" if share is not None else "",
                ]
            )
    grid.show(console, f"Streaming, {_where(report.facts)}")
    _say(console, *report.skipped)


def show_prediction(report: prediction.PredictionReport, console: Console) -> None:
    """A row for each of those who answer, of each model, and who could not be asked."""
    headings = ["who", "model", "hidden", "median ms", "p99 ms", "x PyTorch", "texts/s", "tokens/s", "x PyTorch"]
    grid = Grid(headings, words=2)
    for row in report.rows:
        for who, speed in row.speeds.items():
            single, batch = row.ratio(who) or (None, None)
            grid.rows.append(
                [
                    *(who, row.case.name, str(row.case.hidden)),
                    *(f"{speed.median * 1e3:.2f}", f"{speed.p99 * 1e3:.2f}", _times(single)),
                    *(f"{speed.texts_per_second:,.0f}", f"{speed.tokens_per_second:,.0f}", _times(batch)),
                ]
            )
    title = f"Prediction: one sentence of {prediction.LENGTH} words, and many together"
    grid.show(console, f"{title}, {_where(report.facts)}")
    _say(console, *report.skipped)


def show_serving(report: serving.ServingReport, console: Console) -> None:
    """A row for both services in each case, and how Elman's bears what is too much."""
    headings = ["who", "work", "clients", "a second", "median ms", "p99 ms", "failed", "x", "processor ms each", "x"]
    grid = Grid(headings, words=2)
    for row in report.rows:
        for who, speed in row.speeds.items():
            ours = who == serving.ELMAN
            times = [f"{speed.median * 1e3:.1f}", f"{speed.p99 * 1e3:.1f}", str(speed.failed)]
            times += [f"{row.ratio:.1f}" if ours else "", f"{speed.processor * 1e3:.3f}"]
            ratio = f"{row.saving:.1f}" if ours else ""
            grid.rows.append([who, row.case.work, str(row.case.clients), f"{speed.per_second:,.0f}", *times, ratio])
    title = "Serving: predictions a second, and tokens a second of streams, whose times are those to the first token"
    grid.show(console, f"{title}, {_where(report.facts)}")
    if not report.halves:
        return
    halves = Grid(
        ["work", "lone ms", "a second", "best p99 ms", "middle", "2 x lone + wait", "clients late ms", "failed"]
    )
    for one in report.halves:
        times = [f"{seconds * 1e3:.1f}" for seconds in (one.best, one.middle, one.bound, one.late)]
        halves.rows.append([one.work, f"{one.lone * 1e3:.1f}", f"{one.per_second:,.0f}", *times, str(one.failed)])
    title = "Elman's at half of the rate that 64 clients reach, timed from when requests were due"
    halves.show(console, f"{title}; the best and the middle one of {serving.ROUNDS} rounds")
    much = Grid(
        ["work", "what comes", "a second", "answered", "p99 ms", "refused", "p99 ms", "clients late ms"], words=2
    )
    much.headings += ["failed", "a second before", "after", "memory x"]
    for load in report.overloads:
        late = "" if math.isnan(load.late) else f"{load.late * 1e3:.1f}"
        much.rows.append(
            [
                *(load.work, load.clients, f"{load.per_second:,.0f}"),
                *(f"{load.answered:,}", f"{load.answered_p99 * 1e3:,.0f}"),
                *(f"{load.refused:,}", f"{load.refused_p99 * 1e3:.1f}", late),
                *(str(load.failed), f"{load.before:,.0f}", f"{load.after:,.0f}", f"{load.memory:.3f}"),
            ]
        )
    much.show(console, f"Elman's at {serving.TIMES} times what it can do")


def show_decoding(report: decoding.DecodingReport, console: Console) -> None:
    """A row for everyone in each case, the peak, and who could not be asked."""
    headings = ["who", "work", "batch", "a second", "", "x JoeyNMT", "x course", "of peak"]
    grid = Grid(headings, words=2)
    for row in report.rows:
        case = row.case
        work = "training" if case.work == "training" else "greedy" if case.beam == 1 else f"beam {case.beam}"
        course = row.speeds.get(decoding.COURSE)
        if case.work == "translating":
            course = report.one_by_one(case.beam)
        for who, speed in row.speeds.items():
            share = row.gflops.get(who)
            grid.rows.append(
                [
                    *(who, work, "1" if who == decoding.COURSE else str(case.batch), f"{speed:,.1f}", case.unit),
                    _times(row.ratio(who, decoding.JOEY)),
                    _times(speed / course if course else None),
                    f"{share / report.peak:.0%}" if share is not None else "",
                ]
            )
    grid.show(console, f"Translators, {_where(report.facts)}")
    _say(console, PEAK.format(report.peak), *report.skipped)


def show_adapting(report: adapting.AdaptingReport, console: Console) -> None:
    """A row for each way of reading of each model."""
    grid = Grid(["model", "reads", "vocabulary", "hidden", "tokens/s", "x static"], words=2)
    for row in report.rows:
        for who, speed in row.tokens_per_second.items():
            case, ratio = row.case, row.ratio(who)
            sizes = f"{case.vocabulary:,}", str(case.hidden)
            grid.rows.append([case.name, who, *sizes, f"{speed:,.0f}", "" if ratio is None else f"{ratio:.2f}"])
    title = f"Scoring, a cache of {adapting.SIZE:,} tokens, updates every {adapting.SEGMENT}"
    grid.show(console, f"{title}, {_where(report.facts)}")


def show_trees(report: trees.TreesReport, console: Console) -> None:
    """A row for each network: nodes a second in training, and how many times as many."""
    grid = Grid(["network", "H", "trees", "nodes", *(f"{who} nodes/s" for who in (trees.PLAIN, trees.ELMAN)), "ratio"])
    for row in report.rows:
        speeds = [f"{row.nodes_per_second[who]:,.0f}" for who in (trees.PLAIN, trees.ELMAN)]
        sizes = map(str, (row.case.hidden, row.case.batch, row.nodes))
        grid.rows.append([row.case.network, *sizes, *speeds, f"{row.ratio:.1f}"])
    grid.show(console, f"Trees, forward and backward pass of a batch, {_where(report.facts)}")


def show_vectors(report: vectors.VectorsReport, console: Console) -> None:
    """A row for each, means over the seeds, and who could not be asked."""
    tests = list(report.runs[0].scores)
    grid = Grid(["who", "words/s", "words/s of a core", *tests])
    for who in dict.fromkeys(run.who for run in report.runs):
        speeds = [report.mean(who, lambda run: run.words_per_second)[0]]
        speeds.append(report.mean(who, lambda run: run.words_per_processor_second)[0])
        found = [report.mean(who, lambda run, name=name: run.scores[name]) for name in tests]  # type: ignore[misc]
        shown = [f"{mean:.3f} ± {spread:.3f}" for mean, spread in found]
        grid.rows.append([who, *(f"{speed:,.0f}" for speed in speeds), *shown])
    both = [report.ratio(lambda run: run.words_per_second), report.ratio(lambda run: run.words_per_processor_second)]
    if both[0] is not None:
        grid.rows.append(["ratio", *map(_times, both), *[""] * len(tests)])
    seeds = len({run.seed for run in report.runs})
    title = f"Word vectors: {report.words:,} words, {report.vocabulary:,} of them known, {vectors.EPOCHS} epochs, "
    grid.show(console, f"{title}{seeds} seed{'s' * (seeds != 1)}, {_where(report.facts)}")
    _say(console, *report.skipped)


def _where(facts: dict[str, object]) -> str:
    count = facts["threads"]
    return f"{count} thread{'s' if count != 1 else ''} of {facts['processor']}, {facts['instruction_set']}"


def _pass(backward: bool) -> str:
    return "forward+backward" if backward else "forward"


def _layout(packed: bool) -> str:
    return "packed" if packed else "padded"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}"


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)
