"""The three cells that a search over thousands of architectures found (Jozefowicz et al., 2015).

Their weights come in blocks of H rows in the order r, z, h: in `weight_ih` those that read the input, in
`weight_hh` those that read the state, in `bias_ih` the biases. Where the paper adds the input itself to a
state (MUT1, MUT2), the two must be of one size; where they are not, x^ = W_x x (`weight_x`, H x I) stands in
its place.
"""

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.nn.cells import Cell, Gates, Shapes, State


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

    def step(self, projected: Tensor, state: State) -> State:
        """h' = tanh(W_hh (r * h) + x_h) * z + h * (1 - z), with the gates of each mutant."""
        (h,) = state
        r, z = self.gates(projected, state).values()
        x_h, W_hh = projected[..., -self.hidden_size :], self.weight_hh[-self.hidden_size :]
        return (torch.lerp(h, torch.tanh(torch.addmm(x_h, r * h, W_hh.t())), z),)

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

    def gates(self, projected: Tensor, state: State) -> Gates:
        x_r, x_z, _ = projected.chunk(3, dim=-1)
        W_hr, _ = self.weight_hh.chunk(2)
        return {"r": torch.sigmoid(torch.addmm(x_r, state[0], W_hr.t())), "z": torch.sigmoid(x_z)}


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

    def gates(self, projected: Tensor, state: State) -> Gates:
        x_rz = projected[..., : 2 * self.hidden_size]
        W_rz = self.weight_hh[: 2 * self.hidden_size]
        r, z = torch.sigmoid(torch.addmm(x_rz, state[0], W_rz.t())).chunk(2, dim=-1)  # both in one product
        return {"r": r, "z": z}


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

    def gates(self, projected: Tensor, state: State) -> Gates:
        (h,) = state
        x_r, x_z, _ = projected.chunk(3, dim=-1)
        W_hr, W_hz, _ = self.weight_hh.chunk(3)
        r = torch.sigmoid(torch.addmm(x_r, h, W_hr.t()))
        return {"r": r, "z": torch.sigmoid(torch.addmm(x_z, torch.tanh(h), W_hz.t()))}
