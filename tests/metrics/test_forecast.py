"""MASE, sMAPE and coverage against their definitions, written out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.batches.numbers import naive_errors
from elman.metrics.forecast import coverage, forecast_scores, mase, smape

NUMBERS = st.floats(-1e6, 1e6)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=20)


@given(PAIRS, st.lists(NUMBERS, min_size=4, max_size=20), st.integers(1, 3))
def test_mase_is_that_of_hyndman_and_koehler(pairs: list[tuple[float, float]], past: list[float], m: int) -> None:
    total = 0.0
    for place in range(m, len(past)):
        total += abs(past[place] - past[place - m])
    naive = total / (len(past) - m)
    if naive < 1:
        return
    expected = sum(abs(forecast - truth) / naive for forecast, truth in pairs) / len(pairs)
    forecast, truth = np.array(pairs).T
    scale = naive_errors(np.array(past)[:, None], m)
    assert mase(forecast, truth, scale) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(PAIRS)
def test_smape_is_that_of_the_m4_competition(pairs: list[tuple[float, float]]) -> None:
    total = 0.0
    for forecast, truth in pairs:
        if abs(forecast) + abs(truth) > 0:
            total += 2 * abs(truth - forecast) / (abs(truth) + abs(forecast))
    found = smape(*np.array(pairs).T)
    assert found == pytest.approx(total / len(pairs)) and 0 <= found <= 2 + 1e-9


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_coverage_counts_what_lies_between(rows: list[tuple[float, float, float]]) -> None:
    low, high, truth = np.array(rows).T
    assert coverage(low, high, truth) == sum(a <= y <= b for a, b, y in rows) / len(rows)


def test_every_series_counts_by_its_own_scale() -> None:
    values, truth = np.array([[[[2.0]]], [[[200.0]]]]), np.array([[[1.0]], [[100.0]]])
    assert forecast_scores(values, truth, np.array([[[1.0]], [[100.0]]]))["mase"] == 1.0


def test_an_interval_is_scored_where_there_are_two_quantiles() -> None:
    values, truth = np.zeros((1, 3, 2, 1)), np.zeros((1, 2, 1))
    assert forecast_scores(values, truth, 1.0)["coverage"] == 1.0
    assert "coverage" not in forecast_scores(values[:, :2], truth, 1.0)
