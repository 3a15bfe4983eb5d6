"""The compiled scores of additive attention against the equation in PyTorch."""

import pytest
import torch
from torch import Tensor

from elman import kernels
from elman.nn.attention import AdditiveAttention
from elman.nn.fast.attention import SharedMemory, SharedScores, additive_scores

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels are not installed")
LENGTHS = torch.tensor([5, 1, 3])


def given(size: int, queries: int = 4) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    torch.manual_seed(1)
    padding = torch.arange(5) >= LENGTHS.unsqueeze(1)  # B x S
    parts = (torch.randn(3, queries, size), torch.randn(3, 5, size), torch.randn(size))
    query, keys, v = (part.requires_grad_() for part in parts)
    return query, keys, v, padding


def equation(query: Tensor, keys: Tensor, v: Tensor, padding: Tensor) -> Tensor:
    scores = (query.unsqueeze(2) + keys.unsqueeze(1)).tanh() @ v  # B x T x S
    return scores.masked_fill(padding.unsqueeze(1), -torch.inf)


@pytest.mark.parametrize("isa", kernels.instruction_sets())
@pytest.mark.parametrize("size", [1, 8, 19, 64])
def test_scores_and_gradients_are_those_of_the_equation(isa: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels.instruction_set()
    assert before is not None
    monkeypatch.setattr(kernels, "FEW", 0)  # so that all threads take part
    kernels.use(isa)
    try:
        query, keys, v, padding = given(size)
        found, right = additive_scores(query, keys, v, padding), equation(query, keys, v, padding)
        torch.testing.assert_close(found, right, atol=1e-5, rtol=1e-5)
        weight = torch.randn(3, 4, 5)
        gradients = [
            torch.autograd.grad((scores.softmax(dim=-1) * weight).sum(), (query, keys, v)) for scores in (found, right)
        ]
        for one, other in zip(*gradients, strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    finally:
        kernels.use(before)


def test_queries_beyond_the_count_are_not_attended_to() -> None:
    query, keys, v, padding = given(8)
    counts = torch.tensor([4, 2, 0])
    scores = additive_scores(query, keys, v, padding, counts)
    real = torch.arange(4) < counts.unsqueeze(1)  # B x T
    assert torch.allclose(scores[real], equation(query, keys, v, padding)[real], atol=1e-5)
    assert (scores[1, 2:, 0] == 0).all()
    d_query, _, _ = torch.autograd.grad(scores[~padding.unsqueeze(1).expand_as(scores)].sum(), (query, keys, v))
    assert (d_query[~real] == 0).all()
    assert (d_query[real] != 0).any()


def test_wrong_sizes_are_refused() -> None:
    query, keys, v, padding = (part.detach() for part in given(8))
    with torch.no_grad():
        for wrong in (
            (query[:2], keys, v, padding),
            (query, keys, v[:7], padding),
            (query, keys, v, padding[:, :4]),
            (query, keys, v, padding, torch.tensor([4, 5, 0])),
        ):
            with pytest.raises(ValueError, match=r"should (be|have)"):
                additive_scores(*wrong)


@pytest.mark.parametrize("grad", [False, True])
def test_the_module_is_the_same_with_and_without_the_kernels(grad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(2)
    attention = AdditiveAttention(7, 6)
    memory, query = torch.randn(3, 5, 6), torch.randn(3, 1, 7)
    padding = torch.arange(5) >= LENGTHS.unsqueeze(1)
    with torch.set_grad_enabled(grad):
        compiled = attention(query, attention.keys(memory), padding)
        monkeypatch.setattr(kernels, "native", None)
        plain = attention(query, attention.keys(memory), padding)
    assert torch.allclose(compiled, plain, atol=1e-6)
    assert compiled.requires_grad == grad
    assert (compiled[padding.unsqueeze(1)] == 0).all()


@pytest.mark.parametrize("counts", [None, torch.tensor([4, 2, 0])])
def test_a_second_derivative_is_the_equations(counts: torch.Tensor | None) -> None:
    query, keys, v, padding = given(6)
    real = torch.arange(4) < (torch.tensor([4, 4, 4]) if counts is None else counts).unsqueeze(1)  # B x T
    seen = real.unsqueeze(2) & ~padding.unsqueeze(1)  # B x T x S
    found = []
    for scores in (additive_scores(query, keys, v, padding, counts), equation(query, keys, v, padding)):
        slopes = torch.autograd.grad(scores[seen].square().sum(), (query, keys, v), create_graph=True)
        found.append(torch.autograd.grad(sum(slope.square().sum() for slope in slopes), (query, keys, v)))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-3, rtol=1e-3)


def test_a_second_derivative_where_the_query_is_made_of_the_keys() -> None:
    _, keys, v, padding = given(6)
    found = []
    for function in (additive_scores, equation):
        scores = function(keys.cumsum(dim=1), keys, v, padding)
        (slope,) = torch.autograd.grad(scores[scores.isfinite()].square().sum(), keys, create_graph=True)
        found.append((slope, *torch.autograd.grad(slope.square().sum(), keys)))
    torch.testing.assert_close(*found, atol=1e-3, rtol=1e-3)


def test_many_gradients_at_once() -> None:
    query, keys, v, padding = given(6)
    memory = SharedMemory(keys, padding)
    for output, inputs in (
        (additive_scores(query, keys, v, padding), (query, keys, v)),
        (SharedScores(keys, v, padding)(query[:, 0]), (query, keys, v)),
        (memory(query[:, 0, :5].masked_fill(padding, 0)), (query, keys)),
    ):
        ways = torch.randn(3, *output.shape).masked_fill(output.isinf(), 0)
        together = torch.autograd.grad(output, inputs, ways, is_grads_batched=True, retain_graph=True)
        alone = [torch.autograd.grad(output, inputs, way, retain_graph=True) for way in ways]
        for many, each in zip(together, zip(*alone, strict=True), strict=True):
            torch.testing.assert_close(many, torch.stack(each), atol=1e-5, rtol=1e-4)
