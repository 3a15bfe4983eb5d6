"""The continuous cache beside a plain transcription of its equation, place by place."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman import kernels
from elman.nn.cache import ContinuousCache

needs_kernels = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")


def transcription(
    hidden: np.ndarray, ids: np.ndarray, size: int, theta: float, vocabulary: int
) -> np.ndarray:  # N x V; NaN where nothing was seen
    rows = np.zeros((len(ids), vocabulary))
    for t in range(len(ids)):
        seen = range(max(0, t - size), t)
        weights = {i: math.exp(theta * float(hidden[t] @ hidden[i])) for i in seen}
        for i in seen:
            rows[t, ids[i]] += weights[i] / sum(weights.values())
        if not weights:
            rows[t] = np.nan
    return rows


@settings(max_examples=25, deadline=None)
@given(
    st.integers(1, 60), st.integers(1, 70), st.floats(0, 2), st.lists(st.integers(1, 20), min_size=1, max_size=4),
    st.booleans(),
)  # fmt: skip
def test_shares_and_distributions_are_the_equation(
    count: int, size: int, theta: float, cuts: list[int], single: bool
) -> None:
    random = np.random.default_rng(count)
    kind = torch.float32 if single else torch.float64  # compiled, and by PyTorch
    hidden, ids = (
        torch.from_numpy(random.normal(size=(count, 5))).to(kind),
        torch.from_numpy(random.integers(0, 4, count)),
    )
    expected = transcription(hidden.double().numpy(), ids.numpy(), size, theta, 4)
    cache, at = ContinuousCache(size, theta, 0.5), 0
    for length in [*cuts, count]:
        part = slice(at, min(at + length, count))
        if part.stop == at:
            break
        rows = cache.distributions(hidden[part], ids[part], 4)
        shares = cache.shares(hidden[part], ids[part])
        own = expected[part][np.arange(part.stop - at), ids[part].numpy()]
        np.testing.assert_allclose(shares, own, atol=2e-5)
        np.testing.assert_allclose(rows.numpy(), expected[part], atol=2e-5)
        cache.add(hidden[part], ids[part])
        at = part.stop
        assert len(cache) == min(at, size)


@needs_kernels
@pytest.mark.parametrize("isa", kernels.instruction_sets())
@pytest.mark.parametrize("size", [1, 15, 16, 17, 300, 2500])
def test_every_instruction_set_gives_the_same_shares(isa: str, size: int) -> None:
    torch.manual_seed(1)
    hidden, ids = torch.randn(1500, 8), torch.randint(0, 9, (1500,))
    cache = ContinuousCache(size, 0.7, 0.1)
    cache.add(hidden[:1300], ids[:1300])
    exact = ContinuousCache(size, 0.7, 0.1)
    exact.add(hidden[:1300].double(), ids[:1300])
    before = kernels.instruction_set()
    kernels.use(isa)
    try:
        found = cache.shares(hidden[1300:], ids[1300:])
    finally:
        kernels.use(str(before))
    np.testing.assert_allclose(found, exact.shares(hidden[1300:].double(), ids[1300:]), atol=1e-5)


@pytest.mark.parametrize("theta", [0.0, 1e6])
def test_extremes_of_theta(theta: float) -> None:
    """At 0 the cache counts words; at its largest only the likest state counts, and nothing overflows."""
    hidden = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [1.0, 0.0]])
    cache = ContinuousCache(10, theta, 0.1)
    cache.add(hidden[:3], torch.tensor([1, 2, 1]))
    assert cache.shares(hidden[3:], torch.tensor([2])) == pytest.approx([1 / 3 if not theta else 0.0])
    assert cache.shares(hidden[3:], torch.tensor([1])) == pytest.approx([2 / 3 if not theta else 1.0])


def test_a_mixture_is_a_distribution_and_a_weight_of_zero_leaves_the_softmax_as_it_is() -> None:
    torch.manual_seed(2)
    hidden, ids = torch.randn(30, 4), torch.randint(0, 6, (30,))
    log_probs = torch.randn(30, 6).log_softmax(dim=1).double().numpy()
    cache = ContinuousCache(12, 0.5, 0.3)
    rows = cache.mixed(log_probs, cache.distributions(hidden, ids, 6).double().numpy())
    np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1.0, atol=1e-6)
    assert (rows[0] == log_probs[0]).all() and not np.allclose(rows[1:], log_probs[1:])
    cache.weight = 0.0
    assert cache.mixed(log_probs, cache.distributions(hidden, ids, 6).double().numpy()) is log_probs


def test_a_copy_is_on_its_own() -> None:
    cache = ContinuousCache(3, 1.0, 0.1)
    cache.add(torch.eye(3), torch.tensor([0, 1, 2]))
    twin = cache.copy()
    twin.add(torch.ones(1, 3), torch.tensor([5]))
    assert cache.ids is not None and cache.ids.tolist() == [0, 1, 2]
    assert twin.ids is not None and twin.ids.tolist() == [1, 2, 5]
