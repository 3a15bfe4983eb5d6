"""Tensors that every step of a loop multiplies with, and whose gradient is made once.

Autograd makes a gradient as large as the tensor at every step and adds it to that of the others, which moves more
memory than all the rest of a small step. Here each step of the backward pass records the factors of its share; when
all have, one product over all of them makes the gradient.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from elman.nn.fast.autograd import can_defer, is_last_pass

Factors = tuple[Tensor, ...]
"""What one step's share of a gradient is made of."""

Combine = Callable[[list[Factors]], tuple[Tensor | None, ...]]
"""From the factors of all steps to the gradient of each shared tensor."""


class Recorder:
    """The factors that the steps of a backward pass record; each pass has its own."""

    def __init__(self) -> None:
        self._factors: dict[int, list[Factors]] = {}

    def record(self, *factors: Tensor) -> None:
        """Called in the backward pass, by a step."""
        self._factors.setdefault(torch._C._current_graph_task_id(), []).append(factors)

    def take(self) -> list[Factors]:
        """The factors of this pass, which are forgotten."""
        return self._factors.pop(torch._C._current_graph_task_id(), [])


def share(combine: Combine, *tensors: Tensor) -> tuple[Recorder | None, tuple[Tensor, ...]]:
    """The tensors under another name, and where functions that use them record the factors of their gradients.

    There is no recorder where a gradient cannot be deferred: functions then return the gradients themselves.
    """
    if not all(map(can_defer, tensors)):
        return None, tensors
    recorder = Recorder()
    return recorder, _Share.apply(recorder, combine, *tensors)  # type: ignore[no-untyped-call]


class _Share(torch.autograd.Function):
    """Hands tensors on. The engine comes back here when every use is done, though these return no gradient."""

    @staticmethod
    def forward(ctx: Any, recorder: Recorder, combine: Combine, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.recorder, ctx.combine = recorder, combine
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        factors = ctx.recorder.take()
        if not factors:
            return None, None, *gradients
        pairs = zip(ctx.combine(factors), gradients, strict=True)
        return None, None, *(made if own is None else own + made for made, own in pairs)


class SharedLinear:
    """`torch.nn.functional.linear` with one weight and bias for all steps.

    >>> weight, xs = torch.randn(5, 3, requires_grad=True), torch.randn(4, 2, 3)
    >>> shared = SharedLinear(weight)
    >>> sum(shared(x).sum() for x in xs).backward()
    >>> torch.allclose(weight.grad, xs.sum((0, 1)).expand(5, 3), atol=1e-6)
    True
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        own = (weight,) if bias is None else (weight, bias)
        self.recorder, (self.weight, *biases) = share(_weight_gradients if bias is None else _linear_gradients, *own)
        self.bias = biases[0] if biases else None

    def __call__(self, x: Tensor, more: Tensor | None = None) -> Tensor:
        """W x + b + more (R x I to R x O)."""
        if self.recorder is None:
            y = functional.linear(x, self.weight, self.bias)
            return y if more is None else y + more
        shared: Tensor = _Linear.apply(x, self.weight, self.bias, more, self.recorder)  # type: ignore[no-untyped-call]
        return shared


class _Linear(torch.autograd.Function):
    """One use of a `SharedLinear`."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, more: Tensor | None, recorder: Recorder
    ) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.recorder = recorder
        if more is None:
            return functional.linear(x, weight, bias)
        y = torch.addmm(more, x, weight.t())
        return y if bias is None else y.add_(bias)

    @staticmethod
    def backward(ctx: Any, d_y: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias, of_more, _ = ctx.needs_input_grad
        d_x = d_y @ weight if of_x else None
        d_more = d_y if of_more else None
        if is_last_pass(d_y):
            if of_weight or of_bias:
                ctx.recorder.record(d_y, x)
            return d_x, None, None, d_more, None
        return d_x, d_y.t() @ x if of_weight else None, d_y.sum(dim=0) if of_bias else None, d_more, None


def _weight_gradients(factors: list[Factors]) -> tuple[Tensor]:
    d_y, x = map(_joined, zip(*factors, strict=True))  # N x O, N x I
    return (d_y.t() @ x,)


def _linear_gradients(factors: list[Factors]) -> tuple[Tensor, Tensor]:
    d_y, x = map(_joined, zip(*factors, strict=True))
    return d_y.t() @ x, d_y.sum(dim=0)


def _joined(parts: Factors) -> Tensor:
    """The rows of all steps, one after the other."""
    return torch.cat(parts) if len(parts) > 1 else parts[0]
