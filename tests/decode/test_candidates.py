"""The best continuations are those that a sort finds, whoever computes them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from elman import kernels
from elman.decode.candidates import Best, Layout, best


def sorted_best(log_probs: np.ndarray, running: np.ndarray, layout: Layout) -> Best:
    """By sorting everything; among equals the first hypothesis and the smallest id."""
    ends = np.append(layout.first, len(running))
    found = []
    for begin, end in pairwise(ends):
        scores = (log_probs[begin:end].astype(np.float64) + running[begin:end, None]).ravel()
        order = np.argsort(-scores, kind="stable")[: layout.size]
        found.append((scores[order], begin + order // log_probs.shape[1], order % log_probs.shape[1]))
    return Best(*map(np.array, zip(*found, strict=True)))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_equals_sorting_everything(data: st.DataObject) -> None:
    counts = np.array(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    vocabulary, size = data.draw(st.integers(4, 150)), 4
    rough = st.floats(-8, 0, width=16).map(lambda x: round(x, 1))  # so that many are equal
    cells = st.one_of(rough, st.just(-np.inf))
    log_probs = data.draw(arrays.arrays(np.float32, (int(counts.sum()), vocabulary), elements=cells, fill=rough))
    running = data.draw(arrays.arrays(np.float64, int(counts.sum()), elements=st.floats(-30, 0)))
    layout = Layout.of(counts, size)
    right = sorted_best(log_probs, running, layout)
    real = right.log_probs > -np.inf
    for given_probs in (log_probs, log_probs.astype(np.float64)):
        found = best(given_probs, running, layout)
        np.testing.assert_array_equal(found.log_probs, right.log_probs)
        assert found.parents.min() >= 0 and found.parents.max() < len(running)
        scores = log_probs[found.parents, found.tokens].astype(np.float64) + running[found.parents]
        np.testing.assert_array_equal(scores[real], right.log_probs[real])
        pairs = [set(zip(*row, strict=True)) for row in zip(found.parents.tolist(), found.tokens.tolist(), strict=True)]
        assert all(len(each) >= known for each, known in zip(pairs, real.sum(axis=1), strict=True))


@pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
@pytest.mark.parametrize("name", kernels.instruction_sets())
def test_every_instruction_set_keeps_the_first_of_equals(name: str) -> None:
    generator = np.random.default_rng(0)
    log_probs = generator.normal(size=(7, 1003)).astype(np.float32).round(1)
    running, layout = generator.normal(size=7), Layout.of(np.array([3, 1, 3]), 5)
    before = kernels.instruction_set()
    kernels.use(name)
    try:
        found = best(log_probs, running, layout)
    finally:
        kernels.use(before or name)
    for part, right in zip(found, sorted_best(log_probs, running, layout), strict=True):
        np.testing.assert_array_equal(part, right)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("place", [0, 500, 999])
def test_a_number_that_is_none_comes_out_on_top(dtype: type, place: int) -> None:
    log_probs = np.random.default_rng(0).normal(size=(2, 1000)).astype(dtype)
    log_probs[1, place] = np.nan
    assert np.isnan(best(log_probs, np.zeros(2), Layout.of(np.array([2]), 3)).log_probs).any()
