"""Gradients that autograd makes of an equation, for functions that have their own way back."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Parts = tuple[Tensor | None, ...]
"""Tensors, None for one that there is not."""


def is_batched(*tensors: Tensor | None) -> bool:
    """Whether a way back is that of many gradients at once: `torch.autograd.grad(..., is_grads_batched=True)`.

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
    found = [function(*(part[i] if isinstance(part, tuple) else part for part in parts)) for i in range(count)]
    stacked = [None if each[0] is None else torch.stack(each) for each in zip(*found, strict=True)]
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
    given = tuple(part for part in d if part is not None)
    if not given:
        return (None,) * len(inputs)
    places = [place for place, asked in enumerate(needed) if asked]

    def of_needed(*own: Tensor) -> Parts:
        named = dict(zip(places, own, strict=True))
        outputs = equation(*(named.get(place, x) for place, x in enumerate(inputs)))
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        return tuple(y for y, d_y in zip(outputs, d, strict=True) if d_y is not None)

    with torch.enable_grad():
        pull = torch.func.vjp(of_needed, *(inputs[place] for place in places))[1]
    found = dict(zip(places, pull(given), strict=True))
    return tuple(found.get(place) for place in range(len(inputs)))
