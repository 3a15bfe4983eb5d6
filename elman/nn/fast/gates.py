"""The gates of a binary Tree-LSTM with their gradient by hand: one operation for autograd in the place of twenty."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def tree_lstm_states(gates: Tensor, pairs: Tensor) -> Tensor:
    """[h; c] of M nodes (M x 2H), from their gates before σ and tanh (M x 5H) and the states of both children.

    `pairs` is M x 2 x 2H; the blocks of `gates` are i, o, f_l, f_r, u, as `elman.nn.trees.TreeLSTMCell` has them.
    """
    return _States.apply(gates, pairs)  # type: ignore[no-untyped-call, no-any-return]


class _States(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gates: Tensor, pairs: Tensor) -> Tensor:
        H = gates.size(1) // 5
        sigmas, u = torch.sigmoid(gates[:, : 4 * H]), torch.tanh(gates[:, 4 * H :])
        i, o, left, right = sigmas.chunk(4, dim=1)
        states = gates.new_empty(len(gates), 2 * H)
        h, c = states[:, :H], states[:, H:]
        torch.mul(i, u, out=c)
        c.addcmul_(left, pairs[:, 0, H:]).addcmul_(right, pairs[:, 1, H:])
        squashed = torch.tanh(c)
        torch.mul(o, squashed, out=h)
        ctx.save_for_backward(sigmas, u, squashed, pairs)
        return states

    @staticmethod
    @once_differentiable  # type: ignore[misc, untyped-decorator]
    def backward(ctx: Any, d_states: Tensor) -> tuple[Tensor, Tensor]:
        sigmas, u, squashed, pairs = ctx.saved_tensors
        H = u.size(1)
        i, o, left, right = sigmas.chunk(4, dim=1)
        d_h = d_states[:, :H]
        d_c = torch.addcmul(d_states[:, H:], d_h * o, 1 - squashed * squashed)
        d_gates, d_pairs = sigmas.new_empty(len(u), 5 * H), torch.zeros_like(pairs)
        torch.mul(d_c, u, out=d_gates[:, :H])
        torch.mul(d_h, squashed, out=d_gates[:, H : 2 * H])
        torch.mul(d_c, pairs[:, 0, H:], out=d_gates[:, 2 * H : 3 * H])
        torch.mul(d_c, pairs[:, 1, H:], out=d_gates[:, 3 * H : 4 * H])
        d_gates[:, : 4 * H].mul_(sigmas - sigmas * sigmas)
        torch.mul(d_c * i, 1 - u * u, out=d_gates[:, 4 * H :])
        torch.mul(d_c, left, out=d_pairs[:, 0, H:])
        torch.mul(d_c, right, out=d_pairs[:, 1, H:])
        return d_gates, d_pairs
