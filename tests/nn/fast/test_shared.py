"""Gradients that are made once for all steps against autograd's own, and again under whatever else differentiates."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from elman import kernels
from elman.nn.fast.attention import SharedMemory
from elman.nn.fast.shared import SharedLinear
from elman.nn.fast.torch_layers import GRUStep, next_state

DOUBLE = {"dtype": torch.double, "requires_grad": True}
ROWS = (4, 3, 3, 1)


def linear(x: Tensor, weight: Tensor, bias: Tensor, shared: bool) -> Tensor:
    """Four steps, each of which sees what the one before made of fewer and fewer rows."""
    own = SharedLinear(weight, bias)
    for count in ROWS:
        x = x[:count].tanh()
        x = own(x, x) if shared else torch.nn.functional.linear(x, weight, bias) + x
    return x


def memory(x: Tensor, states: Tensor, shared: bool) -> Tensor:
    """Four steps with a memory of B x S x S; the last source is never attended to."""
    own = SharedMemory(states, torch.zeros(states.shape[:2], dtype=torch.bool))
    for count in ROWS:
        x = x[:count].tanh()
        x = own(x) if shared else torch.einsum("rs,rsm->rm", x, states[:count])
    return x


def gru(x: Tensor, hh: Tensor, h: Tensor, shared: bool) -> Tensor:
    for _ in range(2):
        h = GRUStep.apply(x, hh, h) if shared else next_state("GRU", x, hh, (h,))[0]
    return h


def given(name: str) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    torch.manual_seed(3)
    if name == "linear":
        return linear, (torch.randn(4, 3, **DOUBLE), torch.randn(3, 3, **DOUBLE), torch.randn(3, **DOUBLE))
    if name == "memory":
        return memory, (torch.randn(4, 3, **DOUBLE), torch.randn(5, 3, 3, **DOUBLE))
    return gru, (torch.randn(3, 6, **DOUBLE), torch.randn(3, 6, **DOUBLE), torch.randn(3, 2, **DOUBLE))


NAMES = pytest.mark.parametrize("name", ["linear", "memory", "gru"])


@NAMES
def test_value_and_gradients_are_autograds(name: str) -> None:
    function, inputs = given(name)
    found, right = (function(*inputs, shared=shared) for shared in (True, False))
    torch.testing.assert_close(found, right)
    weight = torch.randn_like(found)
    for _ in range(2):  # a graph that is kept gives the same again
        gradients = torch.autograd.grad((found * weight).sum(), inputs, retain_graph=True)
        expected = torch.autograd.grad((right * weight).sum(), inputs, retain_graph=True)
        for one, other in zip(gradients, expected, strict=True):
            torch.testing.assert_close(one, other)


@NAMES
def test_first_and_second_derivatives(name: str) -> None:
    function, inputs = given(name)
    assert torch.autograd.gradcheck(lambda *them: function(*them, shared=True), inputs)
    assert torch.autograd.gradgradcheck(lambda *them: function(*them, shared=True), inputs)


@NAMES
def test_gradients_of_some_of_the_inputs(name: str) -> None:
    function, inputs = given(name)
    everything = torch.autograd.grad(function(*inputs, shared=True).sum(), inputs)
    for place, right in enumerate(everything):
        (alone,) = torch.autograd.grad(function(*inputs, shared=True).sum(), inputs[place])
        torch.testing.assert_close(alone, right)
        frozen = [part if i == place else part.detach() for i, part in enumerate(inputs)]
        (alone,) = torch.autograd.grad(function(*frozen, shared=True).sum(), inputs[place])
        torch.testing.assert_close(alone, right)


@NAMES
def test_gradients_side_by_side(name: str) -> None:
    function, inputs = given(name)
    found = function(*inputs, shared=True)
    ways = torch.randn(3, *found.shape, dtype=torch.double)
    batched = torch.autograd.grad(found, inputs, ways, retain_graph=True, is_grads_batched=True)
    for place, way in enumerate(ways):
        for one, all_of_it in zip(torch.autograd.grad(found, inputs, way, retain_graph=True), batched, strict=True):
            torch.testing.assert_close(all_of_it[place], one)


@pytest.mark.parametrize("name", ["linear", "memory"])
def test_torch_func(name: str) -> None:
    function, inputs = given(name)
    right = torch.autograd.grad(function(*inputs, shared=False).sum(), inputs)
    found = torch.func.grad(lambda *them: function(*them, shared=True).sum(), argnums=tuple(range(len(inputs))))(
        *inputs
    )
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one, other)
    tangents = tuple(torch.ones_like(part) for part in inputs)
    ways = [torch.func.jvp(lambda *them, s=s: function(*them, shared=s), inputs, tangents)[1] for s in (True, False)]
    torch.testing.assert_close(*ways)


@pytest.mark.parametrize("size", [1, 8, 19])
def test_compiled_memory_leaves_out_the_padding(
    instruction_set: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "FEW", 0)  # so that all threads take part
    torch.manual_seed(4)
    padding = torch.arange(6) >= torch.tensor([6, 1, 4, 2]).unsqueeze(1)  # B x S
    states = torch.randn(4, 6, size, requires_grad=True)
    scores = torch.randn(3, 6, requires_grad=True)
    weights = scores.masked_fill(padding[:3], -torch.inf).softmax(dim=1)
    with torch.no_grad():
        beyond = torch.where(padding.unsqueeze(2), torch.nan, states)  # which nothing may read
    found = SharedMemory(beyond.requires_grad_(), padding)(weights)
    right = (weights.unsqueeze(1) @ states[:3]).squeeze(1)
    torch.testing.assert_close(found, right)
    way = torch.randn_like(right)
    theirs = torch.autograd.grad(right, (scores, states), way, retain_graph=True)
    ours = torch.autograd.grad(found, (scores, beyond), way)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


def test_a_memory_in_forward_mode_without_gradients() -> None:
    states, weights = torch.randn(2, 3, 4), torch.rand(2, 3)
    with torch.no_grad(), forward_ad.dual_level():
        dual = forward_ad.make_dual(weights, torch.ones_like(weights))
        seen = SharedMemory(states, torch.zeros(2, 3, dtype=torch.bool))(dual)
        tangent = forward_ad.unpack_dual(seen).tangent
    assert tangent is not None
    torch.testing.assert_close(tangent, states.sum(dim=1))


def test_a_backward_pass_that_failed_leaves_nothing_behind() -> None:
    weight, x = torch.randn(3, 3, **DOUBLE), torch.randn(2, 3, **DOUBLE)
    shared = SharedLinear(weight)
    failing = []

    def fail(gradient: Tensor) -> None:
        if failing:
            raise KeyboardInterrupt

    below = shared(x)
    below.register_hook(fail)
    loss = shared(below).sum()
    failing.append(True)
    with pytest.raises(KeyboardInterrupt):
        loss.backward(retain_graph=True)
    failing.clear()
    (found,) = torch.autograd.grad(loss, weight)
    (right,) = torch.autograd.grad(((x @ weight.t()) @ weight.t()).sum(), weight)
    torch.testing.assert_close(found, right)
