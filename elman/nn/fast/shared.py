"""Tensors that every step of a loop multiplies with, and whose gradient is made once.

Autograd makes a gradient as large as the tensor at every step and adds it to that of the others, which moves more
memory than all the rest of a small step. Here each step leaves on its way back what its share is made of; when all
have, one product over all of them makes the gradient.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.nn import functional
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.backends import can_call
from elman.nn.derivatives import is_batched

Left = tuple[Tensor, ...]
"""What one use of a tensor leaves."""


class Uses:
    """What the uses of some tensors leave on the way back; each pass backwards has its own."""

    def __init__(self) -> None:
        self._left: dict[int, list[Left]] = {}

    def leave(self, *parts: Tensor) -> None:
        """Called on the way back, by a use."""
        self._left.setdefault(torch._C._current_graph_task_id(), []).append(parts)

    def take(self) -> list[Left]:
        """What there is of this pass, to be used up."""
        return self._left.pop(torch._C._current_graph_task_id(), [])


Combine = Callable[[list[Left]], tuple[Tensor | None, ...]]
"""From what the uses have left to the gradient of each shared tensor."""


def can_share(tensor: Tensor) -> bool:
    """Whether a gradient can be put off: there will be one, and nothing but autograd follows the operations.

    >>> can_share(torch.zeros(2, requires_grad=True)), can_share(torch.zeros(2))
    (True, False)
    """
    return (
        torch.is_grad_enabled()
        and tensor.requires_grad
        and forward_ad._current_level < 0
        and not torch._C._are_functorch_transforms_active()
        and not torch.is_autocast_enabled(tensor.device.type)
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
    )


def can_leave(d: Tensor) -> bool:
    """Whether a use can leave its share of the gradient `d` on the way back; else PyTorch has to see it made."""
    return not (torch.is_grad_enabled() or torch._C._are_functorch_transforms_active() or is_batched(d))


def share(uses: Uses, combine: Combine, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors under another name, to be used by functions that leave their shares in `uses`."""
    found: tuple[Tensor, ...] = _Share.apply(uses, combine, *tensors)  # type: ignore[no-untyped-call]
    return found


class _Share(torch.autograd.Function):
    """Hands tensors on. The engine comes back here when every use is done, though these return no gradient."""

    @staticmethod
    def forward(ctx: Any, uses: Uses, combine: Combine, *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.uses, ctx.combine = uses, combine
        ctx.set_materialize_grads(False)
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx: Any, *given: Tensor | None) -> tuple[Tensor | None, ...]:
        left = ctx.uses.take()
        if not left:
            return None, None, *given
        pairs = zip(ctx.combine(left), given, strict=True)
        return None, None, *(made if own is None else own + made for made, own in pairs)


class SharedLinear:
    """`torch.nn.functional.linear` with the same weight and bias at every step.

    >>> weight, xs = torch.randn(5, 3, requires_grad=True), torch.randn(4, 2, 3)
    >>> shared = SharedLinear(weight)
    >>> sum(shared(x).sum() for x in xs).backward()
    >>> torch.allclose(weight.grad, xs.sum((0, 1)).expand(5, 3), atol=1e-6)
    True
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight, self.bias = weight, bias
        self.uses = Uses() if can_share(weight) else None
        if self.uses is not None and bias is None:
            (self.weight,) = share(self.uses, _of_weight, weight)
        elif self.uses is not None and bias is not None:
            self.weight, self.bias = share(self.uses, _of_weight_and_bias, weight, bias)

    def __call__(self, x: Tensor, more: Tensor | None = None) -> Tensor:
        """W x + b + more (R x I to R x O)."""
        if self.uses is None:
            y = functional.linear(x, self.weight, self.bias)
            return y if more is None else y + more
        found: Tensor = _Linear.apply(x, self.weight, self.bias, more, self.uses)  # type: ignore[no-untyped-call]
        return found


class _Linear(torch.autograd.Function):
    """One use of a `SharedLinear`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, more: Tensor | None, uses: Uses) -> Tensor:
        ctx.save_for_backward(x, weight)
        ctx.uses = uses
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
        if can_leave(d_y):
            if of_weight or of_bias:
                ctx.uses.leave(d_y, x)
            return d_x, None, None, d_more, None
        return d_x, d_y.t() @ x if of_weight else None, d_y.sum(dim=0) if of_bias else None, d_more, None


def _of_weight(left: list[Left]) -> tuple[Tensor]:
    d_y, x = (joined(parts) for parts in zip(*left, strict=True))  # N x O, N x I
    return (d_y.t() @ x,)


def _of_weight_and_bias(left: list[Left]) -> tuple[Tensor, Tensor]:
    d_y, x = (joined(parts) for parts in zip(*left, strict=True))
    return d_y.t() @ x, d_y.sum(dim=0)


def joined(parts: Left) -> Tensor:
    """The rows of all steps, one after the other."""
    return torch.cat(parts) if len(parts) > 1 else parts[0]


class SharedMemory:
    """The same memory (B x S x M) at every step, of whose first R sources each step mixes the places.

    Where `padding` (B x S) is true there is nothing to be seen: the weights there are to be 0.

    >>> states, weights = torch.randn(3, 5, 4, requires_grad=True), torch.rand(2, 5)
    >>> memory = SharedMemory(states, torch.zeros(3, 5, dtype=torch.bool))
    >>> memory(weights).sum().backward()
    >>> torch.allclose(states.grad[:2], weights.unsqueeze(2).expand(2, 5, 4)), bool(states.grad[2].any())
    (True, False)
    """

    def __init__(self, states: Tensor, padding: Tensor) -> None:
        self.states, self.padding = states, padding
        self.uses = Uses() if can_share(states) else None
        if self.uses is not None:
            (self.states,) = share(self.uses, _of_states(len(states)), states)

    def __call__(self, weights: Tensor) -> Tensor:
        """What R rows see of their sources (R x S to R x M)."""
        if self.uses is None:
            return _seen(weights, self.states, self.padding)
        found: Tensor = _Mix.apply(weights, self.states, self.padding, self.uses)  # type: ignore[no-untyped-call]
        return found


class _Mix(torch.autograd.Function):
    """One use of a `SharedMemory`."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, states: Tensor, padding: Tensor, uses: Uses) -> Tensor:
        ctx.save_for_backward(weights, states, padding)
        ctx.uses = uses
        return _seen(weights, states, padding)

    @staticmethod
    def backward(ctx: Any, d_seen: Tensor) -> tuple[Tensor | None, ...]:
        weights, states, padding = ctx.saved_tensors
        of_weights, of_states, _, _ = ctx.needs_input_grad
        d_weights = _seen_back(d_seen, states, padding) if of_weights else None  # R x S
        if not of_states:
            return d_weights, None, None, None
        if can_leave(d_seen):
            ctx.uses.leave(weights, d_seen)
            return d_weights, None, None, None
        own = weights.unsqueeze(2) * d_seen.unsqueeze(1)  # R x S x M
        return d_weights, functional.pad(own, (0, 0, 0, 0, 0, len(states) - len(weights))), None, None


def _seen(weights: Tensor, states: Tensor, padding: Tensor) -> Tensor:
    """Σ_s w_s m_s (R x M)."""
    if torch.is_grad_enabled() or not can_call(states, weights):
        return (weights.unsqueeze(1) @ states[: len(weights)]).squeeze(1)
    seen = states.new_empty(len(weights), states.shape[2])
    _mix(weights, states, padding, seen, backward=False)
    return seen


def _seen_back(d_seen: Tensor, states: Tensor, padding: Tensor) -> Tensor:
    """The gradient of the weights (R x S)."""
    if not (can_leave(d_seen) and can_call(states, d_seen)):
        return (states[: len(d_seen)] @ d_seen.unsqueeze(2)).squeeze(2)
    d_weights = states.new_empty(len(d_seen), states.shape[1])
    _mix(d_weights, states, padding, d_seen, backward=True)
    return d_weights


def _mix(weights: Tensor, states: Tensor, padding: Tensor, seen: Tensor, *, backward: bool) -> None:
    """By the kernels, which leave the padding out."""
    given = (weights, states, padding.view(torch.uint8), seen)
    threads = kernels.threads_for(len(weights) * states[0].numel())
    kernels.native.mixture(*(to_dlpack(part.detach().contiguous()) for part in given), backward, threads)


def _of_states(sources: int) -> Combine:
    def combine(left: list[Left]) -> tuple[Tensor]:
        weights, d_seen = (side_by_side(parts, sources) for parts in zip(*left, strict=True))
        return (weights.transpose(1, 2) @ d_seen,)  # B x S x M

    return combine


def side_by_side(parts: Left, sources: int) -> Tensor:
    """The rows of all steps by their source, zeros for those that a step has not (each R x K to B x T x K)."""
    grid = parts[0].new_zeros(len(parts), sources, parts[0].shape[1])  # T x B x K
    for place, part in zip(grid, parts, strict=True):
        place[: len(part)] = part
    return grid.transpose(0, 1)
