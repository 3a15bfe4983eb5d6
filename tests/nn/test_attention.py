"""Every attention score against its equation, one query and one place at a time."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from elman.nn.attention import (
    ATTENTIONS,
    AdditiveAttention,
    Attention,
    CosineAttention,
    DotAttention,
    FixedLengthAttention,
    GeneralAttention,
    LocationAttention,
    PlainCosineAttention,
    ReducedRankAttention,
    ScaledDotAttention,
)

B, T, S, Q, M = 2, 3, 5, 4, 6


def cosine(q: Tensor, m: Tensor) -> Tensor:
    return (q @ m) / (q.norm() * m.norm())


EQUATIONS: dict[str, tuple[Attention, Callable[[Attention, Tensor, Tensor, int], Tensor]]] = {
    "dot": (DotAttention(M, M), lambda a, q, m, j: q @ m),
    "scaled-dot": (ScaledDotAttention(M, M), lambda a, q, m, j: q @ m / math.sqrt(M)),
    "cosine": (CosineAttention(M, M), lambda a, q, m, j: a.log_beta.exp() * cosine(q, m)),
    "plain-cosine": (PlainCosineAttention(M, M), lambda a, q, m, j: cosine(q, m)),
    "general": (GeneralAttention(Q, M), lambda a, q, m, j: q @ a.W.weight @ m),
    "reduced-rank": (ReducedRankAttention(Q, M, rank=2), lambda a, q, m, j: (a.U.weight @ q) @ (a.V.weight @ m)),
    "additive": (
        AdditiveAttention(Q, M, size=3),
        lambda a, q, m, j: a.v.weight[0] @ torch.tanh(a.W.weight @ q + a.U.weight @ m + a.U.bias),
    ),
    "location": (LocationAttention(Q, M, longest=7), lambda a, q, m, j: a.w.weight[j] @ q),
    "fixed-length": (FixedLengthAttention(Q, M, longest=7), lambda a, q, m, j: a.w.weight[j] @ q + a.w.bias[j]),
}


def example(attention: Attention) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, a memory and its padding, in double precision; the second source has three places."""
    torch.manual_seed(3)
    query = torch.randn(B, T, attention.query_size, dtype=torch.double)
    memory = torch.randn(B, S, attention.memory_size, dtype=torch.double)
    return query, memory, torch.tensor([[False] * 5, [False] * 3 + [True] * 2])


def test_every_name_is_tried_here() -> None:
    assert EQUATIONS.keys() == ATTENTIONS.keys()
    assert all(type(EQUATIONS[name][0]) is kind for name, kind in ATTENTIONS.items())


@pytest.mark.parametrize("name", EQUATIONS)
def test_weights_follow_the_equation_and_padding_gets_none(name: str) -> None:
    attention, equation = EQUATIONS[name]
    attention = attention.double()
    query, memory, padding = example(attention)
    weights = attention(query, attention.keys(memory), padding)
    expected = torch.zeros(B, T, S, dtype=torch.double)
    for b in range(B):
        places = [j for j in range(S) if not padding[b, j]]
        for t in range(T):
            raw = torch.stack([equation(attention, query[b, t], memory[b, j], j) for j in places])
            expected[b, t, places] = raw.exp() / raw.exp().sum()
    torch.testing.assert_close(weights, expected, rtol=1e-12, atol=1e-14)
    assert not weights[1, :, 3:].any()


@pytest.mark.parametrize("name", EQUATIONS)
def test_what_stands_in_the_padding_changes_nothing(name: str) -> None:
    attention = EQUATIONS[name][0].double()
    query, memory, padding = example(attention)
    other = memory.masked_fill(padding.unsqueeze(-1), 1e6)
    weights = [attention(query, attention.keys(m), padding) for m in (memory, other)]
    assert torch.equal(*weights)


@pytest.mark.parametrize("name", EQUATIONS)
def test_gradients(name: str) -> None:
    attention = EQUATIONS[name][0].double()
    query, memory, padding = example(attention)
    parameters = list(attention.parameters())

    def weights(query: Tensor, memory: Tensor, *_: Tensor) -> Tensor:
        return attention(query, attention.keys(memory), padding)

    assert torch.autograd.gradcheck(weights, (query.requires_grad_(), memory.requires_grad_(), *parameters))


@pytest.mark.parametrize("kind", [LocationAttention, FixedLengthAttention])
def test_places_beyond_the_longest_get_nothing(kind: type[LocationAttention]) -> None:
    attention = kind(Q, M, longest=3)
    weights = attention(torch.randn(1, 2, Q), torch.randn(1, 5, M), torch.zeros(1, 5, dtype=torch.bool))
    assert not weights[..., 3:].any()
    assert torch.allclose(weights.sum(-1), torch.ones(1, 2))


@pytest.mark.parametrize("kind", [DotAttention, ScaledDotAttention, CosineAttention, PlainCosineAttention])
def test_sizes_that_cannot_be_compared_are_refused(kind: type[Attention]) -> None:
    with pytest.raises(ValueError, match="got 4 and 6"):
        kind(4, 6)
