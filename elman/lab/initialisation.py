"""What a network begins with: the forget gate's bias, and the recurrent weights; gradients and memory of each."""

from dataclasses import dataclass

import numpy as np
import torch
from pydantic import Field

from elman.draw.panels import Bars, Line, Lines, Panel, Table
from elman.lab.experiment import Experiment, Say
from elman.lab.gradients import SYMBOLS, brackets, input_gradients, one_hot, reach, steps_told
from elman.lab.memory import DISTANCES, TASKS, CellMemory, remember
from elman.lab.networks import LabNetwork, Spread, means, set_weights, spread
from elman.train.recipe import Section

SETTINGS: tuple[tuple[str, str, str, float | None], ...] = (
    ("LSTM, forget bias 0", "lstm", "uniform", 0.0),
    ("LSTM, forget bias 1", "lstm", "uniform", 1.0),
    ("LSTM, forget bias 2", "lstm", "uniform", 2.0),
    ("RNN, normal 0.1", "rnn", "normal 0.1", None),
    ("RNN, orthogonal", "rnn", "orthogonal", None),
)
"""Its name, the cell, how its weights are drawn, the bias of its forget gate."""


class InitOptions(Section):
    """What can be asked of the experiment."""

    seeds: int = Field(3, ge=1, le=100, description="So many times, with other random numbers.")
    hidden: int = Field(32, ge=2, le=2048, description="Units of the layer.")
    steps: int = Field(128, ge=8, le=2000, description="The error is injected at this step.")
    updates: int = Field(500, ge=1, le=1_000_000, description="The budget of the memory test at each distance.")


@dataclass(frozen=True)
class Beginning:
    """One way to begin."""

    name: str
    norms: list[list[float]]
    """The gradient at each step (T) as a share of the last, for each seed, before training."""
    reached: Spread
    """Steps back until 1 % is left."""
    memory: CellMemory
    """The adding task."""


@dataclass(frozen=True)
class Beginnings:
    """What the experiment measured."""

    steps: int
    results: list[Beginning]


class InitExperiment(Experiment[Beginnings]):
    """Biases of the forget gate, orthogonal and normal weights."""

    name = "init"
    about = "forget-gate biases of 0, 1, 2, orthogonal against normal weights: gradients and memory"
    claim = (
        "With its forget gate open and its input gate closed a cell keeps what it has: a positive bias of the forget "
        "gate lets gradients pass from the start. An orthogonal matrix neither shrinks nor stretches them."
    )
    Options = InitOptions

    def measure(self, options: InitOptions, say: Say) -> Beginnings:
        results = []
        for name, cell, weights, bias in SETTINGS:
            say(name)
            norms = []
            for seed in range(options.seeds):
                torch.manual_seed(seed)
                network = LabNetwork(cell, len(SYMBOLS), options.hidden, len(SYMBOLS))
                set_weights(network.body, weights, bias)
                text = brackets(16, options.steps, np.random.default_rng(seed))  # B x T
                norms.append(input_gradients(network.body, one_hot(text)))
            sizes = options.hidden, options.updates, options.seeds
            memory = remember(TASKS[0], cell, DISTANCES, *sizes, weights=weights, forget_bias=bias)
            results.append(Beginning(name, norms, spread(reach(one) for one in norms), memory))
        return Beginnings(options.steps, results)

    def verdict(self, data: Beginnings) -> tuple[bool | None, str]:
        reached = {one.name: one.reached.mean for one in data.results}
        told = "; ".join(
            f"{one.name} {steps_told(one.reached, data.steps)} steps, remembers {one.memory.longest.mean:.0f}"
            for one in data.results
        )
        zero, one, two, normal, orthogonal = reached.values()
        return zero < one < two and normal < orthogonal, f"1 % of the gradient is left after: {told}."

    def panels(self, data: Beginnings) -> list[Panel]:
        x = list(range(1, data.steps + 1))
        lines = [Line(one.name, x, [max(n, 1e-12) for n in means(one.norms)]) for one in data.results]
        rows = [[one.name, steps_told(one.reached, data.steps), str(one.memory.longest)] for one in data.results]
        return [
            Lines("before training", lines, "step", "gradient, as a share of the last", log_y=True),
            Bars(
                "the longest distance learned",
                [one.name for one in data.results],
                [one.memory.longest.mean for one in data.results],
                [one.memory.longest.deviation for one in data.results],
                unit="steps",
            ),
            Table("both", ["begins with", "steps until 1 % is left", "steps remembered"], rows),
        ]
