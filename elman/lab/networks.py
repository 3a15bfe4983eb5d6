"""What every experiment is made of: cells by name, their weights, and the spread of numbers over seeds."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from elman.errors import nearest
from elman.nn.cells import Cell
from elman.nn.initialise import initialise
from elman.nn.recurrent import CELLS, Recurrent
from elman.train.recipe import Section

SHOWN = ("rnn", "rnn-relu", "lstm", "gru", "mut1", "mut2", "mut3")
"""The cells that are compared unless told."""


class CellOptions(Section):
    """What every experiment that compares cells can be asked."""

    cells: tuple[Any, ...] = Field(SHOWN, description="Cells to compare (rnn, rnn-relu, lstm, gru, ...); repeat it.")
    seeds: int = Field(3, ge=1, le=100, description="So many times, with other random numbers.")
    hidden: int = Field(32, ge=2, le=2048, description="Units of the layer.")

    @field_validator("cells")
    @classmethod
    def _known(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [*CELLS, "rnn-relu"]
        for cell in value:
            own = isinstance(cell, type) and issubclass(cell, Cell)
            if not own and not (isinstance(cell, str) and cell in names):
                raise ValueError(f"there is no cell {cell!r}: {nearest(str(cell), names)}")
        if not value:
            raise ValueError("give at least one cell")
        return value


def name_of(cell: str | type[Cell]) -> str:
    """What a cell is called in tables.

    >>> name_of("rnn-relu"), name_of(CELLS["gru"])
    ('RNN (ReLU)', 'GRUCell')
    """
    if isinstance(cell, type):
        return cell.__name__
    return {"rnn": "RNN (tanh)", "elman": "RNN (tanh)", "rnn-relu": "RNN (ReLU)", "gru-cho": "GRU (Cho)"}.get(
        cell, cell.upper()
    )


def layer_of(cell: str | type[Cell], input_size: int, hidden: int) -> Recurrent:
    """A layer of a cell, B x T x I in; of a class of the user's own as well."""
    relu = cell == "rnn-relu"
    kind = "rnn" if relu else cell
    return Recurrent(kind, input_size, hidden, nonlinearity="relu" if relu else "tanh", batch_first=True)


@torch.no_grad()
def set_weights(layer: nn.Module, how: str, forget_bias: float | None = None) -> None:
    """Draw the weights anew: "normal 0.1" (zero biases), or a name of `elman.nn.initialise`."""
    if how.startswith("normal"):
        for name, weight in layer.named_parameters():
            if "bias" in name:
                weight.zero_()
            else:
                nn.init.normal_(weight, std=float(how.split()[1]))
        initialise(layer, forget_bias=forget_bias)
    else:
        initialise(layer, how, forget_bias=forget_bias)


class LabNetwork(nn.Module):
    """A recurrent layer and a linear one: B x T x I in, B x T x O out."""

    def __init__(self, cell: str | type[Cell], input_size: int, hidden: int, output_size: int) -> None:
        super().__init__()
        self.body, self.output = layer_of(cell, input_size, hidden), nn.Linear(hidden, output_size)

    def forward(self, x: Tensor) -> Tensor:
        return self.output(self.body(x)[0])  # type: ignore[no-any-return]


def fit(
    network: nn.Module,
    batch: Callable[[], tuple[Tensor, ...]],
    loss: Callable[..., Tensor],
    steps: int,
    *,
    lr: float = 3e-3,
    clip: float = 1.0,
    after: Callable[[int], bool] = lambda step: False,
) -> None:
    """Train by Adam on fresh batches; `after` each step says whether it is enough."""
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    for step in range(1, steps + 1):
        optimizer.zero_grad()
        loss(network, *batch()).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), clip)
        optimizer.step()
        if after(step):
            return


@dataclass(frozen=True)
class Spread:
    """Numbers of several seeds: their mean, and how far they are from it."""

    mean: float
    deviation: float
    each: list[float]

    def __str__(self) -> str:
        return f"{self.mean:.3g} ± {self.deviation:.2g}"


def spread(numbers: Iterable[float]) -> Spread:
    """Mean and standard deviation.

    >>> str(spread([1.0, 3.0]))
    '2 ± 1.4'
    """
    each = [float(number) for number in numbers]
    return Spread(fmean(each), stdev(each) if len(each) > 1 else 0.0, each)


def means(rows: Sequence[Sequence[float]]) -> list[float]:
    """The mean of several curves, point by point."""
    return [fmean(column) for column in zip(*rows, strict=True)]
