"""The minimal character model in NumPy beside Elman's: from the same weights and windows the same losses, faster."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import nn

from elman.draw.panels import Line, Lines, Panel, Table
from elman.errors import UserError
from elman.files import read_own_text
from elman.lab import minimal_numpy
from elman.lab.experiment import Experiment, Say
from elman.lab.networks import LabNetwork
from elman.train.recipe import Section

LARGEST = 10_000_000  # bytes of a text to learn
STREAMS = 32  # that Elman reads side by side where it need not follow the other


class MinimalOptions(Section):
    """What can be asked of the minimal model."""

    text: str | None = Field(None, description="A file to learn; else numbers in words.")
    seeds: int = Field(1, ge=1, le=100, description="So many times, with other random numbers.")
    hidden: int = Field(100, ge=1, le=2048, description="Units of the layer.")
    steps: int = Field(25, ge=1, le=1000, description="Characters of a window.")
    rate: float = Field(
        0.01, gt=0, le=10, description="Of learning; at 0.1 a rounding error grows tenfold every few updates."
    )
    updates: int = Field(400, ge=2, le=1_000_000, description="Windows to learn.")


@dataclass(frozen=True)
class Race:
    """What the experiment measured."""

    numpy: list[list[float]]
    elman: list[list[float]]
    """The loss of every window, for each seed, by either."""
    difference: float
    """The largest between the two."""
    numpy_rate: float
    elman_rate: float
    batched_rate: float
    """Characters learned in a second: by NumPy, by Elman window for window, and with 32 windows side by side."""
    sample: str
    """What the NumPy model writes at the end."""


def default_text() -> str:
    """Text to learn where none is given: the names of numbers, in words."""
    from elman.generated.numbers import english

    return "\n".join(f"{number} is {english(number)}" for number in range(0, 3000, 7))


def network_of(weights: minimal_numpy.Arrays) -> LabNetwork:
    """Elman's network with the weights of the minimal one, in double precision."""
    hidden, vocabulary = weights["W_xh"].shape
    network = LabNetwork("rnn", vocabulary, hidden, vocabulary).double()
    layer: Any = network.body.layers[0]
    pairs = {"weight_ih_l0": "W_xh", "weight_hh_l0": "W_hh", "bias_ih_l0": "b_h"}
    with torch.no_grad():
        for name, own in pairs.items():
            getattr(layer, name).copy_(torch.from_numpy(weights[own]))
        layer.bias_hh_l0.zero_()
        network.output.weight.copy_(torch.from_numpy(weights["W_hy"]))
        network.output.bias.copy_(torch.from_numpy(weights["b_y"]))
    layer.bias_hh_l0.requires_grad_(False)  # the minimal model has one bias
    return network


def train_elman(network: LabNetwork, ids: list[int], updates: int, steps: int, rate: float) -> list[float]:
    """The minimal model's windows, loss, clipping and Adagrad with Elman's layer; the loss of each window."""
    optimizer = torch.optim.Adagrad(
        [p for p in network.parameters() if p.requires_grad], lr=rate, eps=1e-10, fused=True
    )
    size, state, losses = network.output.out_features, None, list[float]()
    vectors = torch.eye(size, dtype=torch.float64)
    for _, (begins, inputs, targets) in zip(range(updates), minimal_numpy.windows(ids, steps), strict=False):
        hidden, state = network.body(vectors[inputs].unsqueeze(0), None if begins else state)  # 1 x T x H
        loss = nn.functional.cross_entropy(network.output(hidden[0]), torch.tensor(targets), reduction="sum")
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_value_(network.parameters(), 5)
        optimizer.step()
        assert state is not None
        state = state.detach()
        losses.append(loss.item())
    return losses


def batched_rate(network: LabNetwork, ids: list[int], updates: int, steps: int) -> float:
    """Characters learned in a second with many windows side by side."""
    network = network.float()
    optimizer = torch.optim.Adagrad(network.parameters(), lr=0.1)
    size = network.output.out_features
    text = torch.tensor(ids)
    starts = torch.randint(len(ids) - steps - 1, (updates, STREAMS))
    began = time.perf_counter()
    for row in starts:
        places = row[:, None] + torch.arange(steps + 1)
        windows = text[places]
        logits = network(nn.functional.one_hot(windows[:, :-1], size).float())
        optimizer.zero_grad()
        nn.functional.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_value_(network.parameters(), 5)
        optimizer.step()
    return updates * STREAMS * steps / (time.perf_counter() - began)


class MinimalExperiment(Experiment[Race]):
    """The minimal character model in NumPy and with Elman's layer, trained side by side."""

    name = "minimal"
    about = "the minimal character model in NumPy beside Elman's: the same losses, and how many times faster"
    claim = "A character model with its backward pass, clipping at 5, Adagrad and sampling is about 100 lines of NumPy."
    Options = MinimalOptions

    def measure(self, options: MinimalOptions, say: Say) -> Race:
        text = default_text() if options.text is None else read_own_text(Path(options.text), LARGEST)
        characters = sorted(set(text))
        if len(text) < options.steps + 2 or len(characters) < 2:
            raise UserError(f"the text is too short: give at least {options.steps + 2} characters of several kinds")
        ids = [characters.index(one) for one in text]
        theirs, ours, seconds, sample = list[list[float]](), list[list[float]](), [0.0, 0.0], ""
        for seed in range(options.seeds):
            chance = np.random.default_rng(seed)
            weights = minimal_numpy.draw_weights(len(characters), options.hidden, chance)
            network = network_of(weights)
            say(f"seed {seed}: NumPy")
            began = time.perf_counter()
            theirs.append(list(minimal_numpy.train(weights, ids, options.updates, options.steps, options.rate)))
            seconds[0] += time.perf_counter() - began
            say(f"seed {seed}: Elman")
            began = time.perf_counter()
            ours.append(train_elman(network, ids, options.updates, options.steps, options.rate))
            seconds[1] += time.perf_counter() - began
            written = minimal_numpy.sample(weights, np.zeros(options.hidden), ids[0], 200, chance)
            sample = sample or "".join(characters[one] for one in written)
        characters_learned = options.seeds * options.updates * options.steps
        return Race(
            theirs,
            ours,
            float(np.abs(np.array(theirs) - np.array(ours)).max()),
            characters_learned / seconds[0],
            characters_learned / seconds[1],
            batched_rate(network, ids, max(options.updates // 10, 10), options.steps),
            sample,
        )

    def verdict(self, data: Race) -> tuple[bool | None, str]:
        lines = len(Path(minimal_numpy.__file__).read_text(encoding="utf-8").splitlines())
        return data.difference < 1e-6, (
            f"{lines} lines with their comments; {len(data.numpy[0])} losses differ by {data.difference:.1e} at most; "
            "Elman learns "
            f"{data.batched_rate / data.numpy_rate:.0f} times as fast with {STREAMS} windows side by side, and "
            f"{data.elman_rate / data.numpy_rate:.1f} times window for window, where calls of PyTorch take the time."
        )

    def panels(self, data: Race) -> list[Panel]:
        x = list(range(len(data.numpy[0])))
        rates = {"NumPy": data.numpy_rate, "Elman": data.elman_rate, f"Elman, {STREAMS} windows": data.batched_rate}
        rows = [[name, f"{rate:,.0f}", f"{rate / data.numpy_rate:.1f}"] for name, rate in rates.items()]
        lines = [
            Line("NumPy", x, _smooth(data.numpy[0])),
            Line("Elman", x, _smooth(data.elman[0]), dashed=True),
        ]
        return [
            Lines("loss of a window", lines, "update", "nats"),
            Table("speed", ["", "characters a second", "times"], rows),
            Table("what it writes", ["after its last update"], [[line] for line in data.sample.splitlines()[:6]]),
        ]


def _smooth(values: list[float], width: int = 20) -> list[float | None]:
    """A running mean."""
    return [float(np.mean(values[max(0, place - width) : place + 1])) for place in range(len(values))]
