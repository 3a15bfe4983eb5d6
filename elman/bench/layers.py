"""Recurrent layers against those of `torch.nn`, and against JAX's scan where JAX is installed.

Every row is one layer on one batch, theirs and ours by turns in the same process with the same weights.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import elman.nn as ours
from elman.bench import machine
from elman.bench.machine import Follow, Work, interleave
from elman.errors import RunError, UserError, nearest

LAYERS: dict[str, tuple[Callable[..., nn.RNNBase], Callable[..., nn.RNNBase], int]] = {
    "rnn": (nn.RNN, ours.RNN, 1),
    "gru": (nn.GRU, ours.GRU, 3),
    "lstm": (nn.LSTM, ours.LSTM, 4),
}
"""Theirs, ours, and how many gates there are (G)."""
SHAPES = ((128, 32, 64), (256, 64, 35), (512, 32, 64), (100, 256, 12))
"""Hidden and input size, batch, steps."""
TOLERANCE = 1e-3
"""How far the two outputs may lie apart before a comparison of their speed means nothing."""


@dataclass(frozen=True)
class LayerCase:
    """One layer, one batch, one pass.

    >>> case = LayerCase("gru", hidden=100, batch=256, steps=12)
    >>> case.real_steps, case.flops
    (3072, 368640000)
    """

    cell: str
    hidden: int
    batch: int
    steps: int
    directions: int = 1
    packed: bool = False
    backward: bool = False

    @property
    def lengths(self) -> Tensor:
        """How long each row of the batch is: all T, or uniform in [1, T], the same ones in every run."""
        if not self.packed:
            return torch.full((self.batch,), self.steps)
        return torch.randint(1, self.steps + 1, (self.batch,), generator=torch.Generator().manual_seed(1))

    @property
    def real_steps(self) -> int:
        """N: the steps of all rows, padding not counted."""
        return int(self.lengths.sum())

    @property
    def flops(self) -> int:
        """2 N G H (I + H) a direction, and twice as much again for the backward pass."""
        forward = 2 * self.real_steps * LAYERS[self.cell][2] * self.hidden * 2 * self.hidden * self.directions
        return 3 * forward if self.backward else forward

    @property
    def group(self) -> tuple[str, int, bool, bool]:
        """What the cases of one mean have in common."""
        return self.cell, self.directions, self.packed, self.backward


@dataclass(frozen=True)
class LayerRow:
    """What was measured for one case: the best seconds of each of "torch", "elman" and perhaps "jax"."""

    case: LayerCase
    seconds: dict[str, float]

    def gflops(self, who: str) -> float:
        """10^9 operations a second."""
        return self.case.flops / self.seconds[who] / 1e9

    def ratio(self, peer: str = "torch") -> float:
        """How many times faster Elman is."""
        return self.seconds[peer] / self.seconds["elman"]


@dataclass(frozen=True)
class LayersReport:
    """All rows of one run, beside the machine's peak."""

    facts: dict[str, Any]
    peak: float
    """10^9 operations a second of a large product: the better of one before and one after."""
    rows: list[LayerRow]
    product: dict[str, dict[str, float]]
    """See `product_between_calls`."""
    skipped: list[str] = field(default_factory=list)
    """A line for each peer that was not measured."""

    def means(self, peer: str = "torch") -> dict[tuple[str, int, bool, bool], float]:
        """The geometric mean of the ratios over the shapes, for each cell, directions, layout and pass."""
        ratios: dict[tuple[str, int, bool, bool], list[float]] = {}
        for row in self.rows:
            if peer in row.seconds:
                ratios.setdefault(row.case.group, []).append(row.ratio(peer))
        return {group: statistics.geometric_mean(found) for group, found in ratios.items()}

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        names = ("cell", "directions", "packed", "backward")
        jax = self.means("jax")
        return {
            "machine": self.facts,
            "peak_gflops": self.peak,
            "rows": [self._row(row) for row in self.rows],
            "means": [
                dict(zip(names, group, strict=True)) | {"ratio": mean} | ({"jax": jax[group]} if group in jax else {})
                for group, mean in self.means().items()
            ],
            "product_microseconds": self.product,
            "skipped": self.skipped,
        }

    def _row(self, row: LayerRow) -> dict[str, Any]:
        return asdict(row.case) | {
            "real_steps": row.case.real_steps,
            "flops": row.case.flops,
            "seconds": row.seconds,
            "gflops": {who: row.gflops(who) for who in row.seconds},
            "ratio": {who: row.ratio(who) for who in row.seconds if who != "elman"},
            "of_peak": row.gflops("elman") / self.peak,
        }


def run(
    cells: Sequence[str] = (),
    *,
    quick: bool = False,
    seconds: float | None = None,
    threads: int | None = None,
    follow: Follow | None = None,
) -> LayersReport:
    """Measure every case of the cells (all three where none is named), `seconds` on each (1; 0.2 where quick)."""
    machine.need_kernels()
    chosen = cases(cells, quick=quick)
    budget = seconds if seconds is not None else 0.2 if quick else 1.0
    with machine.using_threads(threads):
        peak = machine.matmul_gflops(budget)
        rows = machine.all_rows(chosen, lambda case: measure(case, budget), follow)
        product = product_between_calls(budget)
        return LayersReport(machine.facts(), max(peak, machine.matmul_gflops(budget)), rows, product, skipped())


def cases(cells: Sequence[str] = (), *, quick: bool = False) -> list[LayerCase]:
    """What is measured: everything, or where it is to be quick two shapes in one direction.

    >>> len(cases()), len(cases(["LSTM"], quick=True))
    (96, 8)
    """
    names = [cell.lower() for cell in cells] or list(LAYERS)
    for name in names:
        if name not in LAYERS:
            raise UserError(f"there is no benchmark of the cell {name!r}: {nearest(name, LAYERS)}")
    found = product((False, True), (1,) if quick else (1, 2), (False, True), names, SHAPES[:2] if quick else SHAPES)
    return [
        LayerCase(cell, hidden, batch, steps, directions, packed, backward)
        for backward, directions, packed, cell, (hidden, batch, steps) in found
    ]


def skipped() -> list[str]:
    """A line for JAX where it cannot be used."""
    with _on_cores(torch.get_num_threads()):  # JAX starts as many threads as it sees cores
        return machine.not_measured("jax", {"jax": ["jax", "jax.numpy"]})


def measure(case: LayerCase, seconds: float) -> LayerRow:
    """Time one case: PyTorch's layer, Elman's, and JAX where it is there, in turn. RunError where outputs differ."""
    batch = LayerBatch.of(case)
    theirs, compiled = batch.layers()
    works = {"torch": batch.work(theirs), "elman": batch.work(compiled)}
    far = float((batch.output(theirs) - batch.output(compiled)).detach().abs().max())
    if not far < TOLERANCE:
        raise RunError(f"the layers differ by {far:.2g} for {case}: this is a mistake of Elman's kernels")
    if not skipped():
        works["jax"] = JaxLayer(batch, theirs).work()
    return LayerRow(case, dict(zip(works, interleave(list(works.values()), seconds), strict=True)))


@dataclass(frozen=True)
class LayerBatch:
    """The input of a case, and the gradient that comes back to the output."""

    case: LayerCase
    padded: Tensor
    input: Tensor | PackedSequence
    gradient: Tensor

    @classmethod
    def of(cls, case: LayerCase) -> "LayerBatch":
        """Random numbers, the same ones in every run."""
        generator = torch.Generator().manual_seed(0)
        padded = torch.randn(case.steps, case.batch, case.hidden, generator=generator, requires_grad=True)  # T x B x I
        given: Tensor | PackedSequence = padded
        if case.packed:
            packed = pack_padded_sequence(padded.detach(), case.lengths, enforce_sorted=False)
            given = packed._replace(data=packed.data.requires_grad_())
        data = given.data if case.packed else padded
        gradient = torch.randn(*data.shape[:-1], case.directions * case.hidden, generator=generator)
        return cls(case, padded, given, gradient)

    def layers(self) -> tuple[nn.RNNBase, nn.RNNBase]:
        """Theirs, and ours with the same weights."""
        their_class, our_class, _ = LAYERS[self.case.cell]
        size, both_ways = self.case.hidden, self.case.directions == 2
        theirs = their_class(size, size, bidirectional=both_ways)
        compiled = our_class(size, size, bidirectional=both_ways, backend="compiled")
        compiled.load_state_dict(theirs.state_dict())
        return theirs, compiled

    def output(self, layer: nn.RNNBase) -> Tensor:
        """What the layer makes of every real step."""
        output: Tensor | PackedSequence = layer(self.input)[0]
        return output.data if isinstance(output, PackedSequence) else output  # N x D*H, or T x B x D*H

    def work(self, layer: nn.RNNBase) -> Work:
        """One pass through a layer."""
        leaves = [self.input.data if self.case.packed else self.padded, *layer.parameters()]

        def forward() -> None:
            with torch.no_grad():
                layer(self.input)

        def both() -> None:
            torch.autograd.grad(self.output(layer), leaves, self.gradient)

        return both if self.case.backward else forward


class JaxLayer:
    """A layer of PyTorch's as one would write it in JAX: the input projected at once, a scan over the steps.

    There is no packed batch in JAX: every row is run to the end, and keeps its state where it is padding.
    """

    def __init__(self, batch: LayerBatch, layer: nn.RNNBase) -> None:
        with _on_cores(torch.get_num_threads()):  # JAX starts as many threads as it sees cores
            self.jax: Any = import_module("jax")
            self.numpy: Any = import_module("jax.numpy")
            self.jax.devices()
        self.case = batch.case
        self.x = self.numpy.asarray(batch.padded.detach().numpy())  # T x B x I
        suffixes = ("", "_reverse")[: batch.case.directions]
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        self.weights = [
            [self.numpy.asarray(getattr(layer, name + suffix).detach().numpy()) for name in names]
            for suffix in suffixes
        ]
        steps = torch.arange(batch.case.steps).unsqueeze(1)
        real = (steps < batch.case.lengths).unsqueeze(2).numpy()  # T x B x 1
        self.real = self.numpy.asarray(real)

    def work(self) -> Work:
        """One pass, compiled."""
        shape = (*self.x.shape[:2], self.case.directions * self.case.hidden)
        gradient = self.jax.random.normal(self.jax.random.key(0), shape)
        forward = self.jax.jit(self.output)
        both = self.jax.jit(self.jax.value_and_grad(lambda x, w: (self.output(x, w) * gradient).sum(), argnums=(0, 1)))
        chosen = both if self.case.backward else forward
        return lambda: self.jax.block_until_ready(chosen(self.x, self.weights))

    def output(self, x: Any, weights: Any) -> Any:
        """Both directions side by side: T x B x D*H, zero where there is padding."""
        halves = [self._direction(x, one, reverse=place == 1) for place, one in enumerate(weights)]
        return self.numpy.concatenate(halves, axis=-1)

    def _direction(self, x: Any, weights: Any, reverse: bool) -> Any:
        weight_ih, weight_hh, bias_ih, bias_hh = weights
        projected = x @ weight_ih.T + bias_ih  # T x B x G*H
        first = self.numpy.zeros((self.case.batch, self.case.hidden))

        def step(state: Any, now: Any) -> Any:
            gates, real = now
            new = self._step(state, gates, state[0] @ weight_hh.T + bias_hh)
            if self.case.packed:
                new = tuple(self.numpy.where(real, part, old) for part, old in zip(new, state, strict=True))
                return new, self.numpy.where(real, new[0], 0.0)
            return new, new[0]

        parts = 2 if self.case.cell == "lstm" else 1
        return self.jax.lax.scan(step, (first,) * parts, (projected, self.real), reverse=reverse)[1]

    def _step(self, state: Any, x: Any, h: Any) -> Any:
        """The cell's equations, from the gates' part of the input and of the state."""
        tanh, sigmoid, H = self.numpy.tanh, self.jax.nn.sigmoid, self.case.hidden
        if self.case.cell == "rnn":
            return (tanh(x + h),)
        if self.case.cell == "gru":
            r, z = (sigmoid(x[:, i * H : (i + 1) * H] + h[:, i * H : (i + 1) * H]) for i in (0, 1))
            n = tanh(x[:, 2 * H :] + r * h[:, 2 * H :])
            return ((1 - z) * n + z * state[0],)
        i, f, g, o = self.numpy.split(x + h, 4, axis=1)
        c = sigmoid(f) * state[1] + sigmoid(i) * tanh(g)
        return sigmoid(o) * tanh(c), c


@contextmanager
def _on_cores(count: int) -> Iterator[None]:
    """Threads that are started inside share `count` cores, where the system can say so."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:count])
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def product_between_calls(seconds: float) -> dict[str, dict[str, float]]:
    """The best and the median microseconds of a product of PyTorch's: alone, right after `torch.nn.GRU`, after ours.

    A second pool of threads would show here: PyTorch's would have to fight it for the cores. On a machine that
    has other work to do only the best means much.
    """
    theirs, compiled = (batch := LayerBatch.of(LayerCase("gru", 128, 32, 16))).layers()
    left, right = torch.randn(256, 512), torch.randn(512, 512)
    before: dict[str, Work] = {"alone": lambda: None, "torch": batch.work(theirs), "elman": batch.work(compiled)}
    times: dict[str, list[float]] = {name: [] for name in before}
    end = time.perf_counter() + seconds
    while len(times["alone"]) < 20 or time.perf_counter() < end:
        for name, work in before.items():
            for place in range(11):
                work()
                start = time.perf_counter()
                torch.mm(left, right)
                if place:  # the first stood beside work of another kind
                    times[name].append(time.perf_counter() - start)
    return {name: {"best": min(found) * 1e6, "median": statistics.median(found) * 1e6} for name, found in times.items()}
