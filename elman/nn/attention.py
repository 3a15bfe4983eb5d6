"""Attention scores, one class an equation.

A query q attends to the S places of a memory m_1 .. m_S. Every class here gives each place a score e_j; then

    a_j = exp(e_j) / Σ_k exp(e_k)  are the attention weights, and  c = Σ_j a_j m_j  is the context

All are called alike, so one can stand in the place of another: `keys` is what of a score depends on the memory only, so
that it is computed once for a source, and `forward` takes one query a row or many at once.
"""

import math
from collections.abc import Callable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from elman.nn.fast.attention import SharedScores, additive_scores
from elman.nn.fast.autograd import can_call
from elman.nn.fast.shared import SharedLinear


class Attention(nn.Module):
    """Weights over the places of a memory; a subclass says its equation in `keys` and `scores`.

        a_j = exp(e_j) / Σ_k exp(e_k)

    with e_j the score of place j. The context is c = Σ_j a_j m_j, with m_j what the memory holds at place j.

    >>> attention = AdditiveAttention(query_size=4, memory_size=6)
    >>> memory, padding = torch.randn(2, 5, 6), torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    >>> weights = attention(torch.randn(2, 7, 4), attention.keys(memory), padding)
    >>> weights.shape, bool(weights[1, :, 3:].any()), torch.allclose(weights.sum(-1), torch.ones(2, 7))
    (torch.Size([2, 7, 5]), False, True)
    """

    sees_input: ClassVar[bool] = False
    """Whether the query is the input of the step beside the state."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()
        self.query_size, self.memory_size = query_size, memory_size

    def keys(self, memory: Tensor) -> Tensor:
        """What of the scores depends on the memory only (B x S x M to B x S x K, or N x M to N x K)."""
        return memory

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """How well each query fits each place (B x T x Q and B x S x K to B x T x S)."""
        raise NotImplementedError

    def forward(self, query: Tensor, keys: Tensor, padding: Tensor, counts: Tensor | None = None) -> Tensor:
        """The weights (B x T x S); places where `padding` (B x S) is true have none.

        `counts` (B) says how many of the T queries are real, where what comes of the others does not matter.
        """
        scores = self.scores(query, keys)  # B x T x S
        return scores.masked_fill(padding.unsqueeze(1), -math.inf).softmax(dim=-1)

    def unrolled(self, keys: Tensor, padding: Tensor) -> Callable[[Tensor], Tensor]:
        """For a loop over steps: from one query of each of the first R sources (R x Q) to its weights (R x S).

        >>> weights = DotAttention(2, 2).unrolled(torch.randn(4, 5, 2), torch.zeros(4, 5, dtype=torch.bool))
        >>> weights(torch.randn(3, 2)).shape
        torch.Size([3, 5])
        """
        return lambda query: self(query.unsqueeze(1), keys[: len(query)], padding[: len(query)]).squeeze(1)

    def extra_repr(self) -> str:
        return f"{self.query_size}, {self.memory_size}"


class _SameSize(Attention):
    """Scores that compare a query with a place entry by entry."""

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        if query_size != memory_size:
            raise ValueError(
                f"{type(self).__name__} needs queries as long as the vectors of the memory, "
                f"got {query_size} and {memory_size}"
            )


class DotAttention(_SameSize):
    """e_j = q · m_j (Luong, Pham and Manning 2015)

    >>> DotAttention(2, 2).scores(torch.tensor([[[1.0, 2.0]]]), torch.tensor([[[3.0, 4.0], [0.0, 1.0]]]))
    tensor([[[11.,  2.]]])
    """

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


class ScaledDotAttention(_SameSize):
    """e_j = q · m_j / √M (Vaswani et al. 2017)

    >>> ScaledDotAttention(4, 4).scores(torch.ones(1, 1, 4), torch.ones(1, 2, 4))
    tensor([[[2., 2.]]])
    """

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2) / math.sqrt(self.memory_size)


class CosineAttention(_SameSize):
    """e_j = β cos(q, m_j), content-based, with a learned sharpness β > 0 (Graves, Wayne and Danihelka 2014)

    >>> attention = CosineAttention(2, 2)
    >>> keys = attention.keys(torch.tensor([[[3.0, 0.0], [0.0, 7.0]]]))
    >>> scores = attention.scores(torch.tensor([[[1.0, 0.0]]]), keys)
    >>> (scores / attention.log_beta.exp()).tolist()
    [[[1.0, 0.0]]]
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.log_beta = nn.Parameter(torch.tensor(math.log(5.0)))  # a cosine alone can hardly choose one place

    def keys(self, memory: Tensor) -> Tensor:
        return normalize(memory, dim=-1)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return self.log_beta.exp() * (normalize(query, dim=-1) @ keys.transpose(1, 2))


class PlainCosineAttention(_SameSize):
    """e_j = cos(q, m_j), content-based, with nothing to learn: the weights are near to even, at most e² apart.

    >>> attention = PlainCosineAttention(2, 2)
    >>> attention.scores(torch.tensor([[[2.0, 0.0]]]), attention.keys(torch.tensor([[[3.0, 0.0], [0.0, 7.0]]])))
    tensor([[[1., 0.]]])
    """

    def keys(self, memory: Tensor) -> Tensor:
        return normalize(memory, dim=-1)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return normalize(query, dim=-1) @ keys.transpose(1, 2)


class GeneralAttention(Attention):
    """e_j = qᵀ W m_j, bilinear (Luong, Pham and Manning 2015)

    >>> GeneralAttention(4, 6).keys(torch.zeros(1, 5, 6)).shape
    torch.Size([1, 5, 4])
    """

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.W = nn.Linear(memory_size, query_size, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        return self.W(memory)  # type: ignore[no-any-return]

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        return query @ keys.transpose(1, 2)


class ReducedRankAttention(Attention):
    """e_j = (U q) · (V m_j): bilinear with W = Uᵀ V of a rank that is smaller than both sizes

    >>> attention = ReducedRankAttention(4, 6, rank=2)
    >>> attention.keys(torch.zeros(1, 5, 6)).shape
    torch.Size([1, 5, 2])
    """

    def __init__(self, query_size: int, memory_size: int, rank: int | None = None) -> None:
        super().__init__(query_size, memory_size)
        rank = max(1, min(query_size, memory_size) // 8) if rank is None else rank
        self.U, self.V = nn.Linear(query_size, rank, bias=False), nn.Linear(memory_size, rank, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        return self.V(memory)  # type: ignore[no-any-return]

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        scores: Tensor = self.U(query) @ keys.transpose(1, 2)
        return scores


class AdditiveAttention(Attention):
    """e_j = v · tanh(W q + U m_j + b) (Bahdanau, Cho and Bengio 2015)

    >>> attention = AdditiveAttention(4, 6, size=3)
    >>> attention.keys(torch.zeros(1, 5, 6)).shape
    torch.Size([1, 5, 3])
    """

    def __init__(self, query_size: int, memory_size: int, size: int | None = None) -> None:
        super().__init__(query_size, memory_size)
        size = query_size if size is None else size
        self.W, self.U = nn.Linear(query_size, size, bias=False), nn.Linear(memory_size, size)
        self.v = nn.Linear(size, 1, bias=False)

    def keys(self, memory: Tensor) -> Tensor:
        return self.U(memory)  # type: ignore[no-any-return]

    def forward(self, query: Tensor, keys: Tensor, padding: Tensor, counts: Tensor | None = None) -> Tensor:
        if not can_call(keys, query):
            return super().forward(query, keys, padding)
        return additive_scores(self.W(query), keys, self.v.weight[0], padding, counts).softmax(dim=-1)

    def unrolled(self, keys: Tensor, padding: Tensor) -> Callable[[Tensor], Tensor]:
        if not can_call(keys):
            return super().unrolled(keys, padding)
        W, scores = SharedLinear(self.W.weight), SharedScores(keys, self.v.weight[0], padding)
        return lambda query: scores(W(query)).softmax(dim=-1)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        sums = self.W(query).unsqueeze(2) + keys.unsqueeze(1)  # B x T x S x K
        # The sums are the largest tensor of a model: they are overwritten, and `v` is a product of two matrices.
        scores: Tensor = torch.mv(sums.tanh_().flatten(0, 2), self.v.weight[0])
        return scores.view(sums.shape[:3])  # B x T x S


class LocationAttention(Attention):
    """e_j = w_j · q: the places follow from the query alone (Luong, Pham and Manning 2015)

    There is a vector w_j for each of the first `longest` places, and none for those after them.

    >>> attention = LocationAttention(4, 6, longest=3)
    >>> attention(torch.zeros(1, 1, 4), torch.zeros(1, 5, 6), torch.zeros(1, 5, dtype=torch.bool)).detach()
    tensor([[[0.3333, 0.3333, 0.3333, 0.0000, 0.0000]]])
    """

    def __init__(self, query_size: int, memory_size: int, longest: int) -> None:
        super().__init__(query_size, memory_size)
        self.w = nn.Linear(query_size, longest, bias=False)

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        length, longest = keys.shape[1], self.w.out_features
        scores: Tensor = self.w(query)[..., :length]  # B x T x min(S, longest)
        return nn.functional.pad(scores, (0, max(0, length - longest)), value=-math.inf)


class FixedLengthAttention(LocationAttention):
    """e_j = w_j · [x; q] + b_j: location-based, of the input of the step too; for a fixed maximum length

    >>> FixedLengthAttention(4, 6, longest=3).sees_input
    True
    """

    sees_input = True

    def __init__(self, query_size: int, memory_size: int, longest: int) -> None:
        super().__init__(query_size, memory_size, longest)
        self.w = nn.Linear(query_size, longest)


ATTENTIONS: dict[str, type[Attention]] = {
    "dot": DotAttention,
    "scaled-dot": ScaledDotAttention,
    "general": GeneralAttention,
    "reduced-rank": ReducedRankAttention,
    "additive": AdditiveAttention,
    "cosine": CosineAttention,
    "plain-cosine": PlainCosineAttention,
    "location": LocationAttention,
    "fixed-length": FixedLengthAttention,
}
"""Every attention score by its name."""
