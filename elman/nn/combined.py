"""A simple recurrent network whose output is made of what its state is made of."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.nn.cells import NONLINEARITIES, ElmanCell, State


class CombinedCell(ElmanCell):
    """The simple recurrent network of a well-known tutorial, whose output reads [x; h] and not h'.

        u = [x; h]
        h' = f(W_ih x + b_ih + W_hh h + b_hh)

    u leaves the cell, the input beside the state before it, so that a linear layer on top is a layer of both; h' is
    carried on. The state is (u, h). One layer only: a second one would read what is not of its size.

    >>> u, h = CombinedCell(3, 5, nonlinearity="identity")(torch.ones(2, 3))
    >>> u.shape, h.shape, u[0].tolist()
    (torch.Size([2, 8]), torch.Size([2, 5]), [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    """

    letters = "uh"

    @property
    def output_size(self) -> int:
        return self.input_size + self.hidden_size

    @property
    def state_sizes(self) -> tuple[int, ...]:
        return (self.output_size, self.hidden_size)

    def shapes(self) -> dict[str, tuple[int, ...] | None]:
        return {**super().shapes(), "weight_hh": (self.hidden_size, self.hidden_size)}

    def project(self, x: Tensor) -> Tensor:
        """The input itself beside what the state is moved by (... x I + H)."""
        return torch.cat((x, super().project(x)), dim=-1)

    def step(self, projected: Tensor, state: State) -> State:
        _, h = state
        x, moved = projected[..., : self.input_size], projected[..., self.input_size :]
        f = NONLINEARITIES[self.nonlinearity]
        return torch.cat((x, h), dim=-1), f(moved + linear(h, self.weight_hh, self.bias_hh))
