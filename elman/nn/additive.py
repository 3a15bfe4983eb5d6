"""The scores of additive attention by the kernels: nothing of B x T x S x K numbers is kept, no padding computed."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels

FEW = 2**14
"""Numbers under the tangent that are not worth a second thread."""


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
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor | None, ...]:
        query, keys, v, padding, counts = ctx.saved_tensors
        d_query, d_keys = (torch.empty_like(part, memory_format=torch.contiguous_format) for part in (query, keys))
        d_v = v.new_zeros(_threads(query, keys), len(v))
        _call(query, keys, v, padding, counts, d_scores.contiguous(), d_query, d_keys, d_v)
        return d_query, d_keys, d_v.sum(dim=0), None, None


def _scores(query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None) -> Tensor:
    scores = query.new_empty(*query.shape[:2], keys.shape[1])  # B x T x S
    _call(query, keys, v, padding, counts, scores, None, None, None)
    return scores


def _call(
    query: Tensor, keys: Tensor, v: Tensor, padding: Tensor, counts: Tensor | None, *written: Tensor | None
) -> None:
    read = [part.detach().contiguous() for part in (query, keys, v, padding.view(torch.uint8))]
    given = [None if part is None else to_dlpack(part) for part in (*read, counts, *written)]
    kernels.native.additive(*given, _threads(query, keys))


def _threads(query: Tensor, keys: Tensor) -> int:
    return kernels.threads() if query.numel() * keys.shape[1] > FEW else 1
