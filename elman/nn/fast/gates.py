"""The gates of the GRU as one function: a dozen small operations fewer on the way back of every step."""

from typing import Any

import torch
from torch import Tensor

from elman.nn.derivatives import by_autograd
from elman.nn.fast import rows

_sigmoid_back, _tanh_back = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


def gru(seen: Tensor, kept: Tensor, h: Tensor) -> Tensor:
    """`rows.after` for a GRU.

    >>> seen, kept, h = torch.randn(2, 12), torch.randn(2, 12), torch.randn(2, 4)
    >>> torch.equal(gru(seen, kept, h), rows.after("GRU", seen, kept, (h,))[0])
    True
    """
    found: Tensor = _GRU.apply(seen, kept, h)  # type: ignore[no-untyped-call]
    return found


class _GRU(torch.autograd.Function):
    """n = tanh(seen_n + r * kept_n), h' = (1 - z) * n + z * h; r and z are σ(seen + kept)."""

    @staticmethod
    def forward(ctx: Any, seen: Tensor, kept: Tensor, h: Tensor) -> Tensor:
        H = h.shape[1]
        r, z = (seen[:, : 2 * H] + kept[:, : 2 * H]).sigmoid_().chunk(2, dim=1)
        n = torch.addcmul(seen[:, 2 * H :], r, kept[:, 2 * H :]).tanh_()
        ctx.save_for_backward(seen, kept, h, r, z, n)
        return torch.lerp(n, h, z)

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, ...]:
        seen, kept, h, r, z, n = ctx.saved_tensors
        if torch.is_grad_enabled():
            return by_autograd(_equation, (seen, kept, h), ctx.needs_input_grad, d)
        d_h = d * z
        d_n = _tanh_back(d - d_h, n)
        d_z = _sigmoid_back(d * (h - n), z)
        d_r = _sigmoid_back(d_n * kept[:, 2 * h.shape[1] :], r)
        return torch.cat((d_r, d_z, d_n), dim=1), torch.cat((d_r, d_z, d_n * r), dim=1), d_h


def _equation(seen: Tensor, kept: Tensor, h: Tensor) -> Tensor:
    return rows.after("GRU", seen, kept, (h,))[0]
