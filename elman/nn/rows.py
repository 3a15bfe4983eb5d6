"""One step of a few rows: the products that a search over one sentence makes again and again.

The kernel reads the matrix once, as it lies; for two to six rows that was quicker than PyTorch's product.
"""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.backends import can_compile
from elman.nn.cells import State

MOST_ROWS = 6
"""With more, or with a single one, PyTorch's product is as fast."""
NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
FEW = 2**15
"""Weights that are not worth a second thread."""


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`torch.nn.functional.linear`, by the kernel where x is a few rows and nothing is to be differentiated.

    >>> x, weight = torch.randn(3, 5), torch.randn(7, 5)
    >>> with torch.no_grad():
    ...     torch.allclose(linear(x, weight), x @ weight.t(), atol=1e-5)
    True
    """
    if not _can_compile(x, weight):
        return functional.linear(x, weight, bias)
    y = x.new_empty(len(x), len(weight))
    given = [to_dlpack(part.detach()) for part in (x.contiguous(), weight)]
    threads = kernels.threads() if weight.numel() > FEW else 1
    kernels.native.linear(*given, None if bias is None else to_dlpack(bias.detach()), to_dlpack(y), threads)
    return y


def _can_compile(x: Tensor, weight: Tensor) -> bool:
    return (
        not torch.is_grad_enabled()
        and x.dim() == 2
        and 1 < len(x) <= MOST_ROWS
        and x.dtype == weight.dtype == torch.float32
        and x.shape[1] == weight.shape[1]
        and weight.is_contiguous()
        and can_compile(x, weight)
        and not torch._C._are_functorch_transforms_active()
    )


def can_step(layer: nn.Module) -> bool:
    """Whether `step` knows the equations of a layer."""
    return isinstance(layer, nn.RNNBase) and layer.num_layers == 1 and not (layer.bidirectional or layer.proj_size)


def step(layer: nn.RNNBase, x: Tensor, state: State) -> State:
    """The state (each R x H) of a layer of `torch.nn` in one direction after one more step (R x I).

    >>> layer = nn.LSTM(3, 5)
    >>> x, state = torch.randn(2, 3), (torch.randn(2, 5), torch.randn(2, 5))
    >>> _, (h, c) = layer(x.unsqueeze(0), tuple(part.unsqueeze(0) for part in state))
    >>> torch.allclose(step(layer, x, state)[1], c[0], atol=1e-6)
    True
    """
    weight_ih, weight_hh, bias_ih, bias_hh = (getattr(layer, f"{name}_l0", None) for name in NAMES)
    h, H = state[0], layer.hidden_size
    seen = linear(x, cast(Tensor, weight_ih), bias_ih)  # R x G*H
    kept = linear(h, cast(Tensor, weight_hh), bias_hh)  # R x G*H
    if layer.mode == "GRU":
        r, z = (seen[:, : 2 * H] + kept[:, : 2 * H]).sigmoid_().chunk(2, dim=1)
        n = torch.addcmul(seen[:, 2 * H :], r, kept[:, 2 * H :]).tanh_()
        return (torch.lerp(n, h, z),)
    seen += kept
    if layer.mode == "LSTM":
        i, f, g, o = seen.chunk(4, dim=1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    return (seen.tanh_() if layer.mode == "RNN_TANH" else seen.relu_(),)
