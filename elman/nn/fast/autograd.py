"""Who follows an operation (autograd, `torch.func`, a tracer), and the gradients that autograd makes of an equation."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad

from elman import kernels

Parts = tuple[Tensor | None, ...]
"""Tensors, None for one that there is not."""

PLAIN = (Tensor, nn.Parameter)
"""The types of tensors that compute as themselves: a subclass may not."""


def in_forward_mode() -> bool:
    """Whether derivatives are computed in forward mode, of which no kernel knows."""
    return forward_ad._current_level >= 0


def is_transformed() -> bool:
    """Whether forward mode or a transform of `torch.func` follows the operations.

    >>> is_transformed(), torch.func.vmap(lambda x: x + is_transformed())(torch.zeros(1))
    (False, tensor([1.]))
    """
    return in_forward_mode() or torch._C._are_functorch_transforms_active()


def can_compile(data: Tensor, *others: Tensor) -> bool:
    """Whether the kernels can run on these tensors; what records or replaces operations needs PyTorch's own."""
    return (
        kernels.available()
        and data.dtype in (torch.float32, torch.float64)
        and data.numel() > 0
        and all(type(tensor) in PLAIN and tensor.is_cpu for tensor in (data, *others))
        and not torch.is_autocast_enabled("cpu")
        and not _is_traced()
        and torch._C._len_torch_dispatch_stack() == 0  # fake tensors, make_fx, counters of operations
        and not (torch._C._are_functorch_transforms_active() and _functionalizes())
    )


def can_call(data: Tensor, *others: Tensor) -> bool:
    """Whether a kernel can run that is for float32 alone, and that neither forward mode nor `torch.func` can follow.

    >>> can_call(torch.zeros(1)) == kernels.available(), can_call(torch.zeros(1).double())
    (True, False)
    """
    return data.dtype == torch.float32 and not is_transformed() and can_compile(data, *others)


def can_defer(tensor: Tensor) -> bool:
    """Whether a tensor's gradient can be made later: there will be one, and nothing but autograd follows it.

    >>> can_defer(torch.zeros(2, requires_grad=True)), can_defer(torch.zeros(2))
    (True, False)
    """
    return torch.is_grad_enabled() and tensor.requires_grad and only_autograd(tensor)


def only_autograd(tensor: Tensor) -> bool:
    """Whether nothing but autograd follows or replaces the operations on a tensor.

    >>> only_autograd(torch.zeros(2)), bool(torch.func.vmap(lambda x: x + only_autograd(x))(torch.zeros(1)))
    (True, False)
    """
    return not (is_transformed() or torch.is_autocast_enabled(tensor.device.type) or _is_traced())


def is_last_pass(d: Tensor) -> bool:
    """Whether nothing follows a backward pass that arrives with the gradient d, so that kernels may compute it."""
    return not (torch.is_grad_enabled() or torch._C._are_functorch_transforms_active() or is_batched(d))


def is_batched(*tensors: Tensor | None) -> bool:
    """Whether tensors hold many gradients at once: `torch.autograd.grad(..., is_grads_batched=True)`.

    >>> is_batched(torch.zeros(2), None)
    False
    """
    return any(x is not None and torch._C._functorch.is_legacy_batchedtensor(x) for x in tensors)


def one_by_one(function: Callable[..., Parts], *tensors: Tensor | None) -> Parts:
    """What `function` makes of each of many gradients, where `is_batched`: by a loop, as no kernel knows of them.

    They are batched by PyTorch's older vmap, which has no rule for functions of one's own.
    """
    level = torch._C._vmapmode_increment_nesting() - 1
    torch._C._vmapmode_decrement_nesting()
    parts = [x if x is None or not is_batched(x) else torch._remove_batch_dim(x, level, 0, 0).unbind() for x in tensors]
    count = next(len(part) for part in parts if isinstance(part, tuple))
    results = [function(*(part[i] if isinstance(part, tuple) else part for part in parts)) for i in range(count)]
    stacked = [None if each[0] is None else torch.stack(each) for each in zip(*results, strict=True)]
    return tuple(None if each is None else torch._add_batch_dim(each, 0, level) for each in stacked)


def by_autograd(
    equation: Callable[..., Tensor | Parts], inputs: Parts, needed: Sequence[bool], *d: Tensor | None
) -> Parts:
    """The gradients of the inputs needed, from those of each output; they can be differentiated again.

    Each is the input's own: one that is made of another adds nothing to the other's.

    >>> x = torch.ones(1, requires_grad=True)
    >>> (once,) = by_autograd(torch.exp, (x,), (True,), torch.ones(1))
    >>> torch.equal(torch.autograd.grad(once, x)[0], once)
    True
    """
    d_outputs = tuple(part for part in d if part is not None)
    if not d_outputs:
        return (None,) * len(inputs)
    places = [place for place, asked in enumerate(needed) if asked]

    def of_needed(*own: Tensor) -> Parts:
        named = dict(zip(places, own, strict=True))
        outputs = equation(*(named.get(place, x) for place, x in enumerate(inputs)))
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        return tuple(y for y, d_y in zip(outputs, d, strict=True) if d_y is not None)

    with torch.enable_grad():
        pull = torch.func.vjp(of_needed, *(inputs[place] for place in places))[1]
    gradients = dict(zip(places, pull(d_outputs), strict=True))
    return tuple(gradients.get(place) for place in range(len(inputs)))


def _is_traced() -> bool:
    return torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]


def _functionalizes() -> bool:
    """Whether `torch.func.functionalize` is under way, which knows no functions of one's own."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    return any(level.key() == torch._C._functorch.TransformType.Functionalize for level in stack)
