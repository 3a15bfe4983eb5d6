"""The three cells that a search over thousands of architectures found (Jozefowicz et al., 2015).

Their weights come in blocks of H rows in the order r, z, h: in `weight_ih` those that read the input, in
`weight_hh` those that read the state, in `bias_ih` the biases. Where the paper adds the input itself to a
state (MUT1, MUT2), the two must be of one size; where they are not, x^ = W_x x (`weight_x`, H x I) stands in
its place.
"""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.nn.cells import Cell, Shapes, State


class MutantCell(Cell):
    """What MUT1, MUT2 and MUT3 share: one bias a gate, and x^, the input at the size of the state."""

    input_blocks: int = 3
    state_blocks: int = 3
    adds_input: bool = True

    weight_x: Tensor | None

    def shapes(self) -> Shapes:
        H = self.hidden_size
        resized = self.adds_input and self.input_size != H
        return {
            "weight_ih": (self.input_blocks * H, self.input_size),
            "weight_hh": (self.state_blocks * H, H),
            "weight_x": (H, self.input_size) if resized else None,
            "bias_ih": (3 * H,) if self.bias else None,
        }

    def resize(self, x: Tensor) -> Tensor:
        """x^: the input itself where it has the size of the state, W_x x where it has not."""
        return x if self.weight_x is None else linear(x, self.weight_x)

    def biased(self, r: Tensor, z: Tensor, h: Tensor) -> Tensor:
        """The three parts side by side (... x 3H), with their biases b_r, b_z, b_h."""
        projected = torch.cat((r, z, h), dim=-1)
        return projected if self.bias_ih is None else projected + self.bias_ih


class MUT1Cell(MutantCell):
    """MUT1 (Jozefowicz et al., 2015): the update gate z sees the input only.

        z = σ(W_xz x + b_z)
        r = σ(W_xr x + W_hr h + b_r)
        h' = tanh(W_hh (r * h) + tanh(x^) + b_h) * z + h * (1 - z)

    x^ = x where input and state have one size, else x^ = W_x x.

    >>> (h,) = MUT1Cell(3, 5)(torch.zeros(2, 3))
    >>> h.shape
    torch.Size([2, 5])
    """

    input_blocks = 2
    state_blocks = 2

    def project(self, x: Tensor) -> Tensor:
        r, z = linear(x, self.weight_ih).chunk(2, dim=-1)
        return self.biased(r, z, torch.tanh(self.resize(x)))

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        x_r, x_z, x_h = projected.chunk(3, dim=-1)
        W_hr, W_hh = self.weight_hh.chunk(2)
        z = torch.sigmoid(x_z)
        r = torch.sigmoid(x_r + linear(h, W_hr))
        return (torch.tanh(linear(r * h, W_hh) + x_h) * z + h * (1 - z),)


class MUT2Cell(MutantCell):
    """MUT2 (Jozefowicz et al., 2015): the reset gate r takes the input as it is.

        z = σ(W_xz x + W_hz h + b_z)
        r = σ(x^ + W_hr h + b_r)
        h' = tanh(W_hh (r * h) + W_xh x + b_h) * z + h * (1 - z)

    x^ = x where input and state have one size, else x^ = W_x x.

    >>> (h,) = MUT2Cell(5, 5)(torch.zeros(2, 5))
    >>> h.shape
    torch.Size([2, 5])
    """

    input_blocks = 2

    def project(self, x: Tensor) -> Tensor:
        z, h = linear(x, self.weight_ih).chunk(2, dim=-1)
        return self.biased(self.resize(x), z, h)

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        x_r, x_z, x_h = projected.chunk(3, dim=-1)
        W_hr, W_hz, W_hh = self.weight_hh.chunk(3)
        z = torch.sigmoid(x_z + linear(h, W_hz))
        r = torch.sigmoid(x_r + linear(h, W_hr))
        return (torch.tanh(linear(r * h, W_hh) + x_h) * z + h * (1 - z),)


class MUT3Cell(MutantCell):
    """MUT3 (Jozefowicz et al., 2015): the update gate z sees tanh of the state.

        z = σ(W_xz x + W_hz tanh(h) + b_z)
        r = σ(W_xr x + W_hr h + b_r)
        h' = tanh(W_hh (r * h) + W_xh x + b_h) * z + h * (1 - z)

    >>> (h,) = MUT3Cell(3, 5)(torch.zeros(2, 3))
    >>> h.shape
    torch.Size([2, 5])
    """

    adds_input = False

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        x_r, x_z, x_h = projected.chunk(3, dim=-1)
        W_hr, W_hz, W_hh = self.weight_hh.chunk(3)
        z = torch.sigmoid(x_z + linear(torch.tanh(h), W_hz))
        r = torch.sigmoid(x_r + linear(h, W_hr))
        return (torch.tanh(linear(r * h, W_hh) + x_h) * z + h * (1 - z),)
