"""Attention for a network that learns: what the kernels compute of it, and its gradients made once for all steps.

Nothing of B x T x S x K numbers is kept, and nothing is computed for padding.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.fast.autograd import by_autograd, can_call, is_last_pass
from elman.nn.fast.shared import Combine, Factors, Recorder, share


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
    scores: Tensor = _Scores.apply(query, keys, v, padding, counts)  # type: ignore[no-untyped-call]
    return scores


class _Scores(torch.autograd.Function):
    """The scores of all steps; the backward pass computes the tangents again."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None) -> Tensor:
        ctx.save_for_backward(query, keys, v, padding, counts)
        return _scores(query, keys, v, padding, counts)

    @staticmethod
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, v, padding, counts = ctx.saved_tensors
        if not is_last_pass(d_scores):
            equation = partial(_equation, padding=padding, counts=counts)
            return *by_autograd(equation, (query, keys, v), ctx.needs_input_grad[:3], d_scores), None, None
        return *_gradients(query, keys, v, padding, counts, d_scores), None, None


class SharedScores:
    """Additive scores of one query a source, step after step; the gradients of keys and v are made once.

    >>> keys, v, padding = torch.randn(3, 5, 4), torch.randn(4), torch.zeros(3, 5, dtype=torch.bool)
    >>> query = torch.randn(2, 4)
    >>> right = (query.unsqueeze(1) + keys[:2]).tanh() @ v
    >>> not kernels.available() or torch.allclose(SharedScores(keys, v, padding)(query), right, atol=1e-5)
    True
    """

    def __init__(self, keys: Tensor, v: Tensor, padding: Tensor) -> None:
        self.padding = padding
        self.recorder, (self.keys, self.v) = share(_score_gradients(keys.detach(), v.detach(), padding), keys, v)

    def __call__(self, query: Tensor) -> Tensor:
        """R x K to R x S, of the first R sources."""
        R = len(query)
        if self.recorder is None:
            return additive_scores(query.unsqueeze(1), self.keys[:R], self.v, self.padding[:R]).squeeze(1)
        tensors = (query, self.keys, self.v, self.padding)
        scores: Tensor = _StepScores.apply(*tensors, self.recorder)  # type: ignore[no-untyped-call]
        return scores


class _StepScores(torch.autograd.Function):
    """One use of `SharedScores`."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, recorder: Recorder) -> Tensor:
        ctx.save_for_backward(query, keys, v, padding)
        ctx.recorder = recorder
        R = len(query)
        return _scores(query.unsqueeze(1), keys[:R], v, padding[:R], None).squeeze(1)

    @staticmethod
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, v, padding = ctx.saved_tensors
        R = len(query)
        if not is_last_pass(d_scores):

            def equation(query: Tensor, keys: Tensor, v: Tensor) -> Tensor:
                return _equation(query.unsqueeze(1), keys[:R], v, padding[:R]).squeeze(1)

            return *by_autograd(equation, (query, keys, v), ctx.needs_input_grad[:3], d_scores), None, None
        d_query = torch.empty_like(query, memory_format=torch.contiguous_format)
        parts = (query.unsqueeze(1), keys[:R], v, padding[:R], None, d_scores.unsqueeze(1).contiguous())
        _call(*parts, d_query.unsqueeze(1), None, None)
        ctx.recorder.record(query, d_scores)
        return d_query, None, None, None, None


def _equation(query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None = None) -> Tensor:
    """The scores in PyTorch's own operations, where the gradient is to be differentiated again."""
    scores = (query.unsqueeze(2) + keys.unsqueeze(1)).tanh() @ v  # B x T x S
    if counts is not None:
        scores = scores.masked_fill((torch.arange(query.shape[1]) >= counts.unsqueeze(1)).unsqueeze(2), 0.0)
    return scores.masked_fill(padding.unsqueeze(1), -torch.inf)


def _score_gradients(keys: Tensor, v: Tensor, padding: Tensor) -> Combine:
    def combine(factors: list[Factors]) -> tuple[Tensor, Tensor]:
        query, d_scores = (_by_source(parts, len(keys)) for parts in zip(*factors, strict=True))  # B x T x ...
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
    arguments = [None if part is None else to_dlpack(part) for part in (*read, counts, *written)]
    kernels.native.additive_scores(*arguments, _threads(query, keys))


def _threads(query: Tensor, keys: Tensor) -> int:
    return kernels.threads_for(query.numel() * keys.shape[1])


class SharedMemory:
    """The memory (B x S x M) of all steps, each of which has the contexts of its first R sources: c = Σ_s a_s m_s.

    The weights where `padding` (B x S) is true have to be 0.

    >>> states, weights = torch.randn(3, 5, 4, requires_grad=True), torch.rand(2, 5)
    >>> memory = SharedMemory(states, torch.zeros(3, 5, dtype=torch.bool))
    >>> memory(weights).sum().backward()
    >>> torch.allclose(states.grad[:2], weights.unsqueeze(2).expand(2, 5, 4)), bool(states.grad[2].any())
    (True, False)
    """

    def __init__(self, states: Tensor, padding: Tensor) -> None:
        self.padding = padding
        self.recorder, (self.states,) = share(_state_gradients(len(states)), states)

    def __call__(self, weights: Tensor) -> Tensor:
        """The contexts of R rows with their weights (R x S to R x M)."""
        if self.recorder is None:
            return _context(weights, self.states, self.padding)
        tensors = (weights, self.states, self.padding)
        context: Tensor = _Context.apply(*tensors, self.recorder)  # type: ignore[no-untyped-call]
        return context


class _Context(torch.autograd.Function):
    """One use of a `SharedMemory`."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor, states: Tensor, padding: Tensor, recorder: Recorder) -> Tensor:
        ctx.save_for_backward(weights, states, padding)
        ctx.recorder = recorder
        return _context(weights, states, padding)

    @staticmethod
    def backward(ctx: Any, d_context: Tensor) -> tuple[Tensor | None, ...]:
        weights, states, padding = ctx.saved_tensors
        of_weights, of_states, _, _ = ctx.needs_input_grad
        d_weights = _weight_gradient(d_context, states, padding) if of_weights else None  # R x S
        if not of_states:
            return d_weights, None, None, None
        if is_last_pass(d_context):
            ctx.recorder.record(weights, d_context)
            return d_weights, None, None, None
        own = weights.unsqueeze(2) * d_context.unsqueeze(1)  # R x S x M
        return d_weights, functional.pad(own, (0, 0, 0, 0, 0, len(states) - len(weights))), None, None


def _context(weights: Tensor, states: Tensor, padding: Tensor) -> Tensor:
    """Σ_s a_s m_s (R x M)."""
    if torch.is_grad_enabled() or not can_call(states, weights):
        return (weights.unsqueeze(1) @ states[: len(weights)]).squeeze(1)
    context = states.new_empty(len(weights), states.shape[2])
    _mix(weights, states, padding, context, backward=False)
    return context


def _weight_gradient(d_context: Tensor, states: Tensor, padding: Tensor) -> Tensor:
    """The gradient of the weights (R x S)."""
    if not (is_last_pass(d_context) and can_call(states, d_context)):
        return (states[: len(d_context)] @ d_context.unsqueeze(2)).squeeze(2)
    d_weights = states.new_empty(len(d_context), states.shape[1])
    _mix(d_weights, states, padding, d_context, backward=True)
    return d_weights


def _mix(weights: Tensor, states: Tensor, padding: Tensor, context: Tensor, *, backward: bool) -> None:
    """By the kernels, which skip the padding."""
    parts = (weights, states, padding.view(torch.uint8), context)
    threads = kernels.threads_for(len(weights) * states[0].numel())
    kernels.native.contexts(*(to_dlpack(part.detach().contiguous()) for part in parts), backward, threads)


def _state_gradients(sources: int) -> Combine:
    def combine(factors: list[Factors]) -> tuple[Tensor]:
        weights, d_context = (_by_source(parts, sources) for parts in zip(*factors, strict=True))
        return (weights.transpose(1, 2) @ d_context,)  # B x S x M

    return combine


def _by_source(parts: Factors, sources: int) -> Tensor:
    """The rows of all steps by their source, zeros for those that a step has not (each R x K to B x T x K)."""
    grid = parts[0].new_zeros(len(parts), sources, parts[0].shape[1])  # T x B x K
    for place, part in zip(grid, parts, strict=True):
        place[: len(part)] = part
    return grid.transpose(0, 1)
