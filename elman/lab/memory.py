"""How long a cell remembers: tasks that need something from long ago, at growing distance, within a budget."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from elman.draw.panels import Bars, Line, Lines, Panel, Table
from elman.errors import UserError
from elman.lab.experiment import Experiment, Say
from elman.lab.networks import CellOptions, LabNetwork, Spread, fit, name_of, set_weights, spread
from elman.nn.cells import Cell

DISTANCES = (2, 5, 10, 20, 50, 100, 200)
FURTHEST = 100_000
SYMBOLS, TOLD = 8, 3  # that the copy task has, and remembers at a time
LEARNED = 0.95
"""Of the symbols of the copy task; of the variance of the adding task."""


class MemoryOptions(CellOptions):
    """What can be asked of the memory tests."""

    cells: tuple[Any, ...] = Field(("rnn", "rnn-relu", "lstm", "gru"), description="Cells to compare; repeat it.")
    distances: tuple[int, ...] = Field(DISTANCES, description="Steps that something is to be remembered; repeat it.")
    updates: int = Field(500, ge=1, le=1_000_000, description="The budget of each distance: updates at most.")


@dataclass(frozen=True)
class CellMemory:
    """How far one cell came in one task."""

    cell: str
    task: str
    scores: dict[int, list[float | None]]
    """By distance, for each seed: the share that is right; None beyond the first distance that was not learned."""
    longest: Spread
    """The longest distance that was learned, over the seeds."""


@dataclass(frozen=True)
class Memories:
    """What the experiment measured."""

    distances: list[int]
    updates: int
    results: list[CellMemory]


def copy_batch(count: int, distance: int, chance: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Three symbols, noise for some steps, then a sign to tell them: B x T x I, and the symbols (B x 3)."""
    symbols = chance.integers(SYMBOLS, size=(count, TOLD))
    noise = SYMBOLS + chance.integers(SYMBOLS, size=(count, distance - 1))  # which has symbols of its own
    ids = np.concatenate([symbols, noise, np.full((count, TOLD), 2 * SYMBOLS)], axis=1)
    return nn.functional.one_hot(torch.from_numpy(ids), 2 * SYMBOLS + 1).float(), torch.from_numpy(symbols)


def adding_batch(count: int, distance: int, chance: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Random numbers, two of them marked, the first at the beginning: B x T x 2, and the sum of the two (B x 1)."""
    steps = distance + 1
    numbers = chance.random((count, steps)).astype(np.float32)
    marks = np.zeros_like(numbers)
    marks[:, 0] = 1
    marks[np.arange(count), chance.integers(1, steps, size=count)] = 1
    sums = (numbers * marks).sum(axis=1, keepdims=True)
    return torch.from_numpy(np.stack([numbers, marks], axis=2)), torch.from_numpy(sums)


@dataclass(frozen=True)
class MemoryTask:
    """A task that needs memory: its batches, and the sizes, loss and score of a network for it."""

    name: str
    batch: Callable[[int, int, np.random.Generator], tuple[Tensor, Tensor]]
    inputs: int
    outputs: int

    def loss(self, network: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        """Cross-entropy of the symbols, or the square of the error, at the last steps."""
        last: Tensor = network(x)[:, -y.shape[1] :]  # B x n x O
        if self.outputs > 1:
            return nn.functional.cross_entropy(last.flatten(0, 1), y.flatten())
        return ((last[:, :, 0] - y) ** 2).mean()

    @torch.no_grad()
    def score(self, network: nn.Module, x: Tensor, y: Tensor) -> float:
        """The share of symbols that are right, or of the variance that is explained."""
        last = network(x)[:, -y.shape[1] :]
        if self.outputs > 1:
            return float((last.argmax(dim=2) == y).float().mean())
        return max(0.0, 1 - float(((last[:, :, 0] - y) ** 2).mean() / y.var()))


TASKS = (MemoryTask("adding", adding_batch, 2, 1), MemoryTask("copy", copy_batch, 2 * SYMBOLS + 1, SYMBOLS))


def longest_distance(scores: Mapping[int, float | None]) -> int:
    """The longest distance before the first that was not learned; 0 where none was.

    >>> longest_distance({5: 1.0, 10: 0.97, 20: 0.2, 50: None})
    10
    """
    reached = 0
    for distance in sorted(scores):
        score = scores[distance]
        if score is None or score < LEARNED:
            break
        reached = distance
    return reached


def remember(
    task: MemoryTask,
    cell: str | type[Cell],
    distances: Sequence[int],
    hidden: int,
    updates: int,
    seeds: int,
    *,
    weights: str = "uniform",
    forget_bias: float | None = 1.0,
) -> CellMemory:
    """How far a cell comes in a task: a network that has learned one distance goes on to the next, up to the first
    that it does not learn within so many updates."""
    each: list[dict[int, float | None]] = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        chance = np.random.default_rng(seed)
        network = LabNetwork(cell, task.inputs, hidden, task.outputs)
        set_weights(network.body, weights, forget_bias)
        scores: dict[int, float | None] = dict.fromkeys(sorted(distances))
        for distance in scores:
            score = scores[distance] = _learn(network, task, distance, updates, chance)
            if score < LEARNED:
                break
        each.append(scores)
    table = {distance: [one[distance] for one in each] for distance in sorted(distances)}
    return CellMemory(name_of(cell), task.name, table, spread(longest_distance(one) for one in each))


def _learn(network: LabNetwork, task: MemoryTask, distance: int, updates: int, chance: np.random.Generator) -> float:
    """The score at one distance, after at most so many updates."""
    x, y = task.batch(256, distance, chance)

    def enough(step: int) -> bool:
        return step % 25 == 0 and task.score(network, x, y) >= LEARNED

    fit(network, lambda: task.batch(32, distance, chance), task.loss, updates, lr=5e-3, after=enough)
    return task.score(network, x, y)


class MemoryExperiment(Experiment[Memories]):
    """The copy task and the adding task, at growing distance."""

    name = "memory"
    about = "the longest distance at which each cell learns to remember, within a budget"
    claim = (
        "An LSTM makes it much easier to preserve information over many steps: in practice about 100 steps, where a "
        "plain recurrent network has about 7."
    )
    Options = MemoryOptions

    def measure(self, options: MemoryOptions, say: Say) -> Memories:
        if min(options.distances, default=0) < 1 or max(options.distances) > FURTHEST:
            raise UserError(f"the experiment 'memory': distances are whole numbers from 1 to {FURTHEST:,}")
        results = []
        for task in TASKS:
            for cell in options.cells:
                say(f"{task.name}: {name_of(cell)}")
                sizes = options.hidden, options.updates, options.seeds
                results.append(remember(task, cell, options.distances, *sizes))
        return Memories(sorted(options.distances), options.updates, results)

    def verdict(self, data: Memories) -> tuple[bool | None, str]:
        by_cell = {one.cell: one.longest.mean for one in data.results if one.task == "adding"}
        told = ", ".join(f"{cell} {mean:.0f}" for cell, mean in by_cell.items())
        plain, gated = by_cell.get("RNN (tanh)"), by_cell.get("LSTM")
        told = f"within {data.updates} updates a number was remembered for so many steps at most: {told}."
        if plain is None or gated is None or max(plain, gated) == 0:
            return None, told
        return gated > plain, told

    def panels(self, data: Memories) -> list[Panel]:
        panels: list[Panel] = []
        for task in dict.fromkeys(one.task for one in data.results):
            rows = [one for one in data.results if one.task == task]
            lines = []
            for one in rows:
                mean, low, high = zip(*(_range(one.scores[d]) for d in data.distances), strict=True)
                lines.append(Line(one.cell, data.distances, mean, low, high))
            panels.append(Lines(f"{task}: what is right, by distance", lines, "steps", "share", log_x=True))
            panels.append(
                Bars(
                    f"{task}: the longest distance learned",
                    [one.cell for one in rows],
                    [one.longest.mean for one in rows],
                    [one.longest.deviation for one in rows],
                    unit="steps",
                    note=f"{LEARNED:.0%} right within {data.updates} updates of 32 texts; mean over seeds.",
                )
            )
        table = []
        for one in data.results:
            shown = [_range(one.scores[d])[0] for d in data.distances]
            table.append([one.task, one.cell, *("–" if mean is None else f"{mean:.2f}" for mean in shown)])
        panels.append(Table("scores", ["task", "cell", *map(str, data.distances)], table))
        return panels


def _range(scores: Sequence[float | None]) -> tuple[float | None, float | None, float | None]:
    """The mean, the lowest and the highest of those seeds that came so far."""
    tried = [score for score in scores if score is not None]
    return (sum(tried) / len(tried), min(tried), max(tried)) if tried else (None, None, None)
