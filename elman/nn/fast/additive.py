"""The scores of additive attention by the kernels: nothing of B x T x S x K numbers is kept, no padding computed."""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.derivatives import by_autograd
from elman.nn.fast.shared import Combine, Left, Uses, can_leave, can_share, share, side_by_side


def additive_scores(query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None = None) -> Tensor:
    """e_ts = v · tanh(q_t + k_s), float32 on the CPU: B x T x K, B x S x K and K to B x T x S, -inf where `padding`.

    `counts` (B) is how many of a source's T queries are real; the scores of the others are 0.

    >>> query, keys, v = torch.randn(2, 3, 4), torch.randn(2, 5, 4), torch.randn(4)
    >>> padding = torch.zeros(2, 5, dtype=torch.bool)
    >>> right = (query.unsqueeze(2) + keys.unsqueeze(1)).tanh() @ v
    >>> not kernels.available() or torch.allclose(additive_scores(query, keys, v, padding), right, atol=1e-5)
    True
    """
    if not torch.is_grad_enabled():
        return _scores(query, keys, v, padding, counts)
    found: Tensor = _Scores.apply(query, keys, v, padding, counts)  # type: ignore[no-untyped-call]
    return found


class _Scores(torch.autograd.Function):
    """The scores, and their gradients from tangents that are computed again."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None) -> Tensor:
        ctx.save_for_backward(query, keys, v, padding, counts)
        return _scores(query, keys, v, padding, counts)

    @staticmethod
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, v, padding, counts = ctx.saved_tensors
        if not can_leave(d_scores):
            equation = partial(_equation, padding=padding, counts=counts)
            return *by_autograd(equation, (query, keys, v), ctx.needs_input_grad[:3], d_scores), None, None
        return *_gradients(query, keys, v, padding, counts, d_scores), None, None


class SharedScores:
    """The same scores for one query of each source, at step after step, the gradients of keys and v made once.

    >>> keys, v, padding = torch.randn(3, 5, 4), torch.randn(4), torch.zeros(3, 5, dtype=torch.bool)
    >>> query = torch.randn(2, 4)
    >>> right = (query.unsqueeze(1) + keys[:2]).tanh() @ v
    >>> not kernels.available() or torch.allclose(SharedScores(keys, v, padding)(query), right, atol=1e-5)
    True
    """

    def __init__(self, keys: Tensor, v: Tensor, padding: Tensor) -> None:
        self.keys, self.v, self.padding = keys, v, padding
        self.uses = Uses() if can_share(keys) and can_share(v) else None
        if self.uses is not None:
            self.keys, self.v = share(self.uses, _of_keys_and_v(keys.detach(), v.detach(), padding), keys, v)

    def __call__(self, query: Tensor) -> Tensor:
        """R x K to R x S, of the first R sources."""
        R = len(query)
        if self.uses is None:
            return additive_scores(query.unsqueeze(1), self.keys[:R], self.v, self.padding[:R]).squeeze(1)
        found: Tensor = _Step.apply(query, self.keys, self.v, self.padding, self.uses)  # type: ignore[no-untyped-call]
        return found


class _Step(torch.autograd.Function):
    """One use of `SharedScores`."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, uses: Uses) -> Tensor:
        ctx.save_for_backward(query, keys, v, padding)
        ctx.uses = uses
        R = len(query)
        return _scores(query.unsqueeze(1), keys[:R], v, padding[:R], None).squeeze(1)

    @staticmethod
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, v, padding = ctx.saved_tensors
        if not can_leave(d_scores):
            equation = partial(_step_equation, padding=padding)
            return *by_autograd(equation, (query, keys, v), ctx.needs_input_grad[:3], d_scores), None, None
        R, d_query = len(query), torch.empty_like(query, memory_format=torch.contiguous_format)
        parts = (query.unsqueeze(1), keys[:R], v, padding[:R], None, d_scores.unsqueeze(1).contiguous())
        _call(*parts, d_query.unsqueeze(1), None, None)
        ctx.uses.leave(query, d_scores)
        return d_query, None, None, None, None


def _equation(query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None = None) -> Tensor:
    """The scores in PyTorch's own operations, where the gradient is to be differentiated again."""
    scores = (query.unsqueeze(2) + keys.unsqueeze(1)).tanh() @ v  # B x T x S
    if counts is not None:
        scores = scores.masked_fill((torch.arange(query.shape[1]) >= counts.unsqueeze(1)).unsqueeze(2), 0.0)
    return scores.masked_fill(padding.unsqueeze(1), -torch.inf)


def _step_equation(query: Tensor, keys: Tensor, v: Tensor, padding: Tensor) -> Tensor:
    R = len(query)
    return _equation(query.unsqueeze(1), keys[:R], v, padding[:R]).squeeze(1)


def _of_keys_and_v(keys: Tensor, v: Tensor, padding: Tensor) -> Combine:
    def combine(left: list[Left]) -> tuple[Tensor, Tensor]:
        query, d_scores = (side_by_side(parts, len(keys)) for parts in zip(*left, strict=True))  # B x T x ...
        return _gradients(query, keys, v, padding, None, d_scores)[1:]

    return combine


def _scores(query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None) -> Tensor:
    scores = query.new_empty(*query.shape[:2], keys.shape[1])  # B x T x S
    _call(query, keys, v, padding, counts, scores, None, None, None)
    return scores


def _gradients(
    query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None, d_scores: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Those of query, keys and v."""
    d_query, d_keys = (torch.empty_like(part, memory_format=torch.contiguous_format) for part in (query, keys))
    d_v = v.new_zeros(_threads(query, keys), len(v))
    _call(query, keys, v, padding, counts, d_scores.contiguous(), d_query, d_keys, d_v)
    return d_query, d_keys, d_v.sum(dim=0)


def _call(
    query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None, *written: Tensor | None
) -> None:
    read = [part.detach().contiguous() for part in (query, keys, v, padding.view(torch.uint8))]
    given = [None if part is None else to_dlpack(part) for part in (*read, counts, *written)]
    kernels.native.additive(*given, _threads(query, keys))


def _threads(query: Tensor, keys: Tensor) -> int:
    return kernels.threads_for(query.numel() * keys.shape[1])
