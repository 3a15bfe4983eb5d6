"""What forecasts have to beat."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elman.baselines.series import Autoregression, last_value, seasonal_value, series_baselines


@given(st.integers(1, 6), st.integers(1, 8), st.integers(1, 12))
def test_the_last_and_the_seasonal_value(steps: int, season: int, horizon: int) -> None:
    window = list(np.random.default_rng(steps).normal(size=steps))
    ahead = list(window)
    for _ in range(horizon):
        ahead.append(ahead[-min(season, steps)])
    given = np.array(window)[None, :, None]
    assert seasonal_value(given, horizon, season).ravel().tolist() == ahead[steps:]
    assert last_value(given, horizon).ravel().tolist() == [window[-1]] * horizon


def test_an_autoregression_finds_a_rule_that_is_there() -> None:
    values = [1.0, 0.5]
    for _ in range(80):
        values.append(1.8 * values[-1] - 0.95 * values[-2])
    line = np.array(values)[:, None]
    windows = np.stack([line[place : place + 4] for place in range(70)])
    targets = np.stack([line[place + 4 : place + 6] for place in range(70)])
    found = Autoregression.fit(windows[:60], targets[:60]).predict(windows[60:])
    worst = np.abs(last_value(windows[60:], 2) - targets[60:]).mean()
    assert np.abs(found - targets[60:]).mean() < 0.1 * worst


def test_several_columns_keep_their_places() -> None:
    rng = np.random.default_rng(2)
    windows, targets = rng.normal(size=(30, 5, 2)), rng.normal(size=(30, 3, 2))
    model = Autoregression.fit(windows, targets)
    swapped = model.predict(windows[:, :, ::-1])
    np.testing.assert_allclose(swapped, model.predict(windows)[:, :, ::-1])


def test_there_is_a_baseline_for_whatever_is_known() -> None:
    windows, targets = np.ones((4, 3, 1)), np.ones((4, 2, 1))
    assert set(series_baselines(2, 1, None)) == {"last value", "seasonal value"}
    for rival in series_baselines(2, 1, (windows, targets)).values():
        np.testing.assert_allclose(rival(windows), targets)
    (mean,) = series_baselines(1, 1, None, mean=0.0).values()
    assert mean(windows).tolist() == [[[0.0]]] * 4
