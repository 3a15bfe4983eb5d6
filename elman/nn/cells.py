"""Recurrent cells, one class an equation.

This file is the specification: every faster path has to agree with it. In the equations h is the state that
leaves the cell (h' the next one), x the input, σ the logistic function, * the product element by element.
Parameters have PyTorch's names and the gates PyTorch's order, so the weights of `torch.nn.LSTM` are the
weights of `LSTMCell`.
"""

import copy
import math
from collections.abc import Callable
from typing import ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

State = tuple[Tensor, ...]
"""What a cell carries from step to step, each B x size; the first is its output h."""

Gates = dict[str, Tensor]
"""What a cell decides at a step, by the equation's letters, each B x H."""

Shapes = dict[str, tuple[int, ...] | None]
"""The shape of every weight of a cell; None for one that the options leave out."""

NONLINEARITIES: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "logistic": torch.sigmoid,
    "identity": lambda x: x,
}
"""Of the plain cell; with the identity, layers stacked on each other are one linear map of the whole sequence."""


class Cell(nn.Module):
    """One step of a recurrent network: a subclass says its equation in `project` and `step`.

    `project` holds all that depends on the input only, so that a layer can do it for all steps at once. `blocks` is
    how many matrices of H rows stand on each other in a weight: one for each gate, and for what the state is moved to.
    A cell that carries more than its output h from step to step has the size of each part in `state_sizes`, their
    letters in `letters`, and one with other weights than two matrices and two biases has them in `shapes`.

    >>> cell = LSTMCell(input_size=3, hidden_size=5)
    >>> h, c = cell(torch.zeros(2, 3))
    >>> h.shape, c.shape
    (torch.Size([2, 5]), torch.Size([2, 5]))
    """

    blocks: ClassVar[int]
    letters: ClassVar[str] = "hc"
    """The parts of the state as the equation calls them; a cell may have the first alone."""

    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        if input_size <= 0 or hidden_size <= 0:
            raise ValueError(f"sizes must be greater than zero, got input {input_size}, hidden {hidden_size}")
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        for name, shape in self.shapes().items():
            weight = None if shape is None else nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, weight)
        self.reset_parameters()

    @property
    def output_size(self) -> int:
        """The size of h."""
        return self.hidden_size

    @property
    def state_sizes(self) -> tuple[int, ...]:
        """The size of each part of the state, the output h first."""
        return (self.output_size,)

    def shapes(self) -> Shapes:
        """The shape of every weight: for each gate one block of H rows."""
        rows = self.blocks * self.hidden_size
        bias = (rows,) if self.bias else None
        return {
            "weight_ih": (rows, self.input_size),
            "weight_hh": (rows, self.output_size),
            "bias_ih": bias,
            "bias_hh": bias,
        }

    def reset_parameters(self) -> None:
        """Draw every weight from uniform(-1/√H, 1/√H), as PyTorch does."""
        bound = 1 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            if not weight.is_meta:  # which has no numbers; and vmap allows no draw
                nn.init.uniform_(weight, -bound, bound)

    def with_weights(self, **weights: Tensor | None) -> Self:
        """A cell with the same options that computes with the tensors given; this one stays as it is."""
        twin = copy.copy(self)
        twin._parameters = {name: w for name, w in self._parameters.items() if name not in weights}
        twin.__dict__.update(weights)
        return twin

    def initial_state(self, batch_size: int, like: Tensor) -> State:
        """Zeros, of the type and on the device of `like`."""
        return tuple(like.new_zeros(batch_size, size) for size in self.state_sizes)

    def project(self, x: Tensor) -> Tensor:
        """All that depends on the input only; `x` may hold one step or all of them (... x I)."""
        return linear(x, self.weight_ih, self.bias_ih)  # ... x blocks*H

    def gates(self, projected: Tensor, state: State) -> Gates:
        """The gates of one step, from its projected input and the state before it; a cell may have none."""
        return {}

    def step(self, projected: Tensor, state: State) -> State:
        """The next state, from the projected input of one step and the state before it."""
        raise NotImplementedError

    def forward(self, x: Tensor, state: State | None = None) -> State:
        """The state after the input x (B x I); from zeros where no state is given."""
        if x.dim() != 2 or x.size(-1) != self.input_size:
            raise ValueError(f"a step's input must be B x {self.input_size}, got {tuple(x.shape)}")
        state = self.initial_state(x.size(0), x) if state is None else state
        expected = [(x.size(0), size) for size in self.state_sizes]
        if [tuple(part.shape) for part in state] != expected:
            raise RuntimeError(f"expected a state of {expected}, got {[tuple(part.shape) for part in state]}")
        return self.step(self.project(x), state)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")


class ElmanCell(Cell):
    """The simple recurrent network (Elman, 1990).

        h' = f(W_ih x + b_ih + W_hh h + b_hh)

    with f = tanh, relu, logistic (Elman's own) or the identity, which leaves a linear map: what is read twice as large
    is answered twice as large, however many layers there are.

    >>> (h,) = ElmanCell(3, 5, nonlinearity="logistic")(torch.zeros(2, 3))
    >>> bool((h > 0).all())
    True
    >>> linear_cell, x = ElmanCell(3, 5, bias=False, nonlinearity="identity"), torch.ones(2, 3)
    >>> torch.allclose(linear_cell(2 * x)[0], 2 * linear_cell(x)[0])
    True
    """

    blocks = 1

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        nonlinearity: str = "tanh",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if nonlinearity not in NONLINEARITIES:
            raise ValueError(f"unknown nonlinearity {nonlinearity!r}, known are: {', '.join(NONLINEARITIES)}")
        super().__init__(input_size, hidden_size, bias, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        f = NONLINEARITIES[self.nonlinearity]
        return (f(projected + linear(h, self.weight_hh, self.bias_hh)),)


class LSTMCell(Cell):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997; forget gate: Gers et al., 2000).

        i = σ(W_ii x + b_ii + W_hi h + b_hi)
        f = σ(W_if x + b_if + W_hf h + b_hf)
        g = tanh(W_ig x + b_ig + W_hg h + b_hg)
        o = σ(W_io x + b_io + W_ho h + b_ho)
        c' = f * c + i * g
        h' = o * tanh(c')

    With `proj_size`, h' = W_hr (o * tanh(c')) (Sak et al., 2014).

    >>> h, c = LSTMCell(3, 5, proj_size=2)(torch.zeros(4, 3))
    >>> h.shape, c.shape
    (torch.Size([4, 2]), torch.Size([4, 5]))
    """

    blocks = 4

    weight_hr: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        *,
        proj_size: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        if not 0 <= proj_size < hidden_size:
            raise ValueError(f"proj_size must be smaller than hidden_size {hidden_size}, got {proj_size}")
        # nn.Module's own attributes do not exist yet; a plain number may be set before they do.
        self.proj_size = proj_size
        super().__init__(input_size, hidden_size, bias, device=device, dtype=dtype)

    @property
    def output_size(self) -> int:
        return self.proj_size or self.hidden_size

    @property
    def state_sizes(self) -> tuple[int, ...]:
        return (self.output_size, self.hidden_size)

    def shapes(self) -> Shapes:
        projection = (self.proj_size, self.hidden_size) if self.proj_size else None
        return {**super().shapes(), "weight_hr": projection}

    def gates(self, projected: Tensor, state: State) -> Gates:
        i, f, g, o = (projected + linear(state[0], self.weight_hh, self.bias_hh)).chunk(4, dim=-1)
        return {"i": torch.sigmoid(i), "f": torch.sigmoid(f), "g": torch.tanh(g), "o": torch.sigmoid(o)}

    def step(self, projected: Tensor, state: State) -> State:
        _, c = state
        i, f, g, o = self.gates(projected, state).values()
        c = f * c + i * g
        h = o * torch.tanh(c)
        return (h if self.weight_hr is None else linear(h, self.weight_hr), c)


class GRUCell(Cell):
    """The gated recurrent unit with the reset gate after the product, as in PyTorch and cuDNN.

        r = σ(W_ir x + b_ir + W_hr h + b_hr)
        z = σ(W_iz x + b_iz + W_hz h + b_hz)
        n = tanh(W_in x + b_in + r * (W_hn h + b_hn))
        h' = (1 - z) * n + z * h

    The paper's own form, with the reset before the product, is `ChoGRUCell`.

    >>> (h,) = GRUCell(3, 5)(torch.zeros(2, 3))
    >>> h.shape
    torch.Size([2, 5])
    """

    blocks = 3

    def gates(self, projected: Tensor, state: State) -> Gates:
        x_r, x_z, x_n = projected.chunk(3, dim=-1)
        h_r, h_z, h_n = linear(state[0], self.weight_hh, self.bias_hh).chunk(3, dim=-1)
        r = torch.sigmoid(x_r + h_r)
        z = torch.sigmoid(x_z + h_z)
        return {"r": r, "z": z, "n": torch.tanh(x_n + r * h_n)}

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        _, z, n = self.gates(projected, state).values()
        return ((1 - z) * n + z * h,)


class ChoGRUCell(Cell):
    """The gated recurrent unit as published, the reset gate before the product (Cho et al., 2014).

        r = σ(W_r x + U_r h + b_r)
        z = σ(W_z x + U_z h + b_z)
        h~ = tanh(W x + U (r * h) + b)
        h' = z * h + (1 - z) * h~

    W_r, W_z, W are the blocks of `weight_ih`, U_r, U_z, U those of `weight_hh`, the biases those of
    `bias_ih`; a second bias would add nothing, so there is no `bias_hh`.

    >>> (h,) = ChoGRUCell(3, 5)(torch.zeros(2, 3))
    >>> h.shape
    torch.Size([2, 5])
    """

    blocks = 3

    def shapes(self) -> Shapes:
        return {**super().shapes(), "bias_hh": None}

    def gates(self, projected: Tensor, state: State) -> Gates:
        x_rz = projected[..., : 2 * self.hidden_size]
        U_rz = self.weight_hh[: 2 * self.hidden_size]
        r, z = torch.sigmoid(torch.addmm(x_rz, state[0], U_rz.t())).chunk(2, dim=-1)  # both in one product
        return {"r": r, "z": z}

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        r, z = self.gates(projected, state).values()
        x_h, U = projected[..., 2 * self.hidden_size :], self.weight_hh[2 * self.hidden_size :]
        h_new = torch.tanh(torch.addmm(x_h, r * h, U.t()))
        return (torch.lerp(h_new, h, z),)  # z h + (1 - z) h~
