"""Stacked recurrent layers, described in plain words, and their weights as the kernels take them."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from elman import kernels
from elman.runtime.weights import Float, Packable, Shapes, Weights

if TYPE_CHECKING:
    from elman.nn.recurrent import Recurrent
    from elman.nn.towers import Towers

MODES = {
    **{(cell, f): f"RNN_{f.upper()}" for cell in ("rnn", "elman") for f in ("tanh", "relu", "logistic", "identity")},
    ("lstm", "tanh"): "LSTM",
    ("gru", "tanh"): "GRU",
}
"""What the kernels call a cell and its nonlinearity."""
GATES = {"LSTM": 4, "GRU": 3}
"""How many matrices a weight has; one where it is not said."""


@dataclass(frozen=True)
class Layers:
    """Stacked layers as `elman.nn.Recurrent` has them; the names of their weights begin with `name`.

    >>> layers = Layers("body", "lstm", input_size=3, hidden_size=5, num_layers=2, bidirectional=True)
    >>> layers.output_size, layers.state_sizes, layers.shapes()["body.layers.1.weight_ih_l0_reverse"]
    (10, (5, 5), (20, 10))
    >>> Layers("body", "mut1", 3, 5).refusal() or "the kernels run it"
    "the engine runs rnn, lstm and gru, and this network's cell is mut1"
    """

    name: str
    cell: str
    input_size: int
    hidden_size: int
    num_layers: int = 1
    nonlinearity: str = "tanh"
    bidirectional: bool = False
    merge: str = "concat"
    connections: str = "plain"
    proj_size: int = 0
    learned_state: bool = False
    bias: bool = True
    direction: str | None = None
    """Of `elman.nn.towers.Towers`: forward, backward or both; None for a `Recurrent`."""

    @classmethod
    def of(cls, body: "Recurrent | Towers", name: str) -> "Layers":
        """The description of layers of PyTorch's, which have this name in their network."""
        from torch import nn

        from elman.nn.towers import Towers

        if isinstance(body, Towers):
            alike = cls.of(cast("Recurrent", body.towers[0]), name)
            return replace(alike, direction=body.direction, bidirectional=body.bidirectional)
        first: Any = body.layers[0]
        cell, nonlinearity = body.cell, "tanh"
        if isinstance(first, nn.RNNBase):
            cell, nonlinearity = next(pair for pair, mode in MODES.items() if mode == first.mode)
        elif cell in ("rnn", "elman"):
            cell, nonlinearity = "rnn", first.cells[0].nonlinearity
        return cls(
            name,
            cell,
            body.input_size,
            body.hidden_size,
            body.num_layers,
            nonlinearity,
            body.bidirectional,
            body.merge,
            body.connections,
            body.state_sizes[0] if body.state_sizes[0] != body.hidden_size else 0,
            len(body.initial) > 0,
            (first if isinstance(first, nn.RNNBase) else first.cells[0]).bias is not False,
        )

    @property
    def mode(self) -> str | None:
        """What the kernels call the cell; None for one that they do not run."""
        nonlinearity = self.nonlinearity if self.cell in ("rnn", "elman") else "tanh"
        return MODES.get((self.cell, nonlinearity))

    @property
    def directions(self) -> int:
        """D."""
        return 2 if self.bidirectional else 1

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """The size of each part of the state: h, and c of an LSTM."""
        h = self.proj_size or self.hidden_size
        return (h, self.hidden_size) if self.cell == "lstm" else (h,)

    @property
    def output_size(self) -> int:
        """The size of what the last layer gives at a step."""
        return self.state_sizes[0] * (self.directions if self.merge == "concat" else 1)

    @property
    def gates(self) -> int:
        """How many rows the weights of a layer have: all its gates."""
        return GATES.get(self.mode or "LSTM", 1) * self.hidden_size

    def refusal(self) -> str | None:
        """Why the kernels do not run these layers, in one sentence; None if they do."""
        if not kernels.available():
            return f"the compiled kernels are not installed ({kernels.missing})"
        if self.mode is None:
            return f"the engine runs rnn, lstm and gru, and this network's cell is {self.cell}"
        two = self.direction == "both" and self.connections == "residual"
        if two and self.input_size in (self.hidden_size, self.output_size):  # added to each tower, not to both
            return "the engine does not add the input to the outputs of two towers, and this network does"
        return None

    def input_size_of(self, depth: int) -> int:
        """The size of what a layer sees; of a tower's, what it has weights for."""
        below = self.output_size if self.direction is None else self.state_sizes[0]
        if self.connections == "dense":
            return self.input_size + depth * below
        return below if depth else self.input_size

    def names(self, depth: int, reverse: bool = False) -> dict[str, str]:
        """The names of a layer's weights in one direction, by those of csrc/recurrence_kernel.hpp."""
        prefix, suffix = self._inside(f"layers.{depth}"), "_reverse" if reverse else ""
        if self.direction is not None:
            prefix, suffix = self._inside(f"towers.{int(reverse)}.layers.{depth}"), ""
        kinds = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else [])]
        if self.mode == "RNN_LOGISTIC":  # which `Recurrent` runs by its equation
            place = int(reverse and self.direction is None)  # a tower has one direction
            return {kind: f"{prefix}.cells.{place}.{kind}" for kind in kinds}
        return {kind: f"{prefix}.{kind}_l0{suffix}" for kind in (*kinds, *(["weight_hr"] if self.proj_size else []))}

    def shapes(self) -> Shapes:
        """The shape of every weight by its name."""
        h, rows, found = self.state_sizes[0], self.gates, Shapes()
        for depth in range(self.num_layers):
            shapes: Shapes = {"weight_ih": (rows, self.input_size_of(depth)), "weight_hh": (rows, h)}
            shapes |= {"bias_ih": (rows,), "bias_hh": (rows,), "weight_hr": (h, self.hidden_size)}
            for side in range(self.directions):
                found |= {name: shapes[kind] for kind, name in self.names(depth, side == 1).items()}
        if self.learned_state and self.direction is not None:
            sizes = list(enumerate(self.state_sizes))
            towers = [self._inside(f"towers.{side}.initial") for side in range(self.directions)]
            found |= {f"{tower}.{i}": (self.num_layers, 1, size) for tower in towers for i, size in sizes}
        elif self.learned_state:
            count = self.num_layers * self.directions
            found |= {self._inside(f"initial.{i}"): (count, 1, size) for i, size in enumerate(self.state_sizes)}
        return found

    def description(self) -> dict[str, Any]:
        """What the kernels have to know of all layers."""
        return {
            "cell": self.mode,
            "hidden": self.hidden_size,
            "residual": self.connections == "residual",
            "dense": self.connections == "dense",
        }

    def weight_ih(self, weights: Weights, depth: int, reverse: bool = False) -> Packable:
        """The matrix of what one direction of a layer sees.

        Of two towers side by side, each layer sees its own below: with zeros for those of the other, it is a layer that
        sees both, which is what the kernels run.
        """
        own = weights.matrix(self.names(depth, reverse)["weight_ih"])
        if self.direction != "both" or depth == 0:
            return own
        matrix, *scales = own if isinstance(own, tuple) else (own,)
        H, first = self.state_sizes[0], self.input_size if self.connections == "dense" else 0
        seen = [np.arange(first)]  # the columns that there are weights for
        for layer in range(depth if self.connections == "dense" else 1):
            seen.append(first + (2 * layer + reverse) * H + np.arange(H))
        wide = np.zeros((len(matrix), first + 2 * H * (len(seen) - 1)), matrix.dtype)
        wide[:, np.concatenate(seen)] = matrix
        return (wide, scales[0]) if scales else wide

    def packed(self, weights: Weights, depth: int, reverse: bool = False) -> dict[str, Any]:
        """One direction of a layer as the kernels take it, with the sum of both biases.

        The GRU's candidate has a bias of its own inside the reset gate.
        """
        names, H = self.names(depth, reverse), self.hidden_size
        outer, inner = (weights.bias(names.get(kind, ""), self.gates) for kind in ("bias_ih", "bias_hh"))
        bias, hidden_bias = outer + inner, None
        if self.mode == "GRU":
            bias[2 * H :], hidden_bias = outer[2 * H :], np.ascontiguousarray(inner[2 * H :])
        return {
            "input": self.weight_ih(weights, depth, reverse),
            "hidden": weights.matrix(names["weight_hh"]),
            "projection": weights.matrix(names["weight_hr"]) if self.proj_size else None,
            "bias": bias,
            "table": None,
            "labels": None,
            "hidden_bias": hidden_bias,
        }

    def numbers(self, weights: Weights, kind: str, depth: int, reverse: bool = False) -> Float:
        """One weight of one direction of a layer as float32, by its name in csrc/recurrence_kernel.hpp."""
        if kind != "weight_ih":
            return weights.numbers(self.names(depth, reverse)[kind])
        found = self.weight_ih(weights, depth, reverse)
        return found[0].astype(np.float32) * found[1][:, None] if isinstance(found, tuple) else found

    def initial(self, weights: Weights) -> tuple[Float, ...]:
        """The learned state before the first step, each part L*D x size; empty where it is zeros."""
        parts = range(len(self.state_sizes) if self.learned_state else 0)
        if self.direction is None:
            return tuple(weights.numbers(self._inside(f"initial.{i}"))[:, 0] for i in parts)
        towers = [self._inside(f"towers.{side}.initial") for side in range(self.directions)]
        every = ([weights.numbers(f"{tower}.{i}")[:, 0] for tower in towers] for i in parts)  # D of L x size
        return tuple(np.stack(each, axis=1).reshape(-1, each[0].shape[1]) for each in every)

    def _inside(self, name: str) -> str:
        return f"{self.name}.{name}" if self.name else name
