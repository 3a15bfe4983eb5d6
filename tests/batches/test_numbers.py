"""Windows of numbers: what a forecast sees, and what it has to say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.batches.numbers import SeriesFrame, autocorrelations, cut_ends, find_season, hold_out_ends, naive_errors
from elman.errors import UserError
from elman.records.series import Series, SeriesColumns


def series(values: object, name: str = "", label: float | None = None, beside: object = None) -> Series:
    """A series of one column."""
    column = np.asarray(values, np.float64)[:, None]
    covariates = np.zeros((len(column), 0)) if beside is None else np.asarray(beside, np.float64)[:, None]
    return Series(name, column, covariates, label=label)


def frame(horizon: int = 2, context: int = 3, **more: object) -> SeriesFrame:
    return SeriesFrame(**{"channels": 1, "horizon": horizon, "context": context, "naive": {"": (1.0,)}, **more})  # type: ignore[arg-type]


@given(st.lists(st.integers(-(10**6), 10**6).map(lambda number: number / 100), min_size=5, max_size=30))
def test_windows_hold_the_values_that_they_were_made_of(values: list[float]) -> None:
    one = series(values)
    windows = frame().every([one])
    expected = [values[place - 3 : place] for place in range(3, len(values) - 1)]
    size = max(1.0, max(map(abs, values)))
    np.testing.assert_allclose(windows.history()[:, :, 0], expected, atol=1e-5 * size)
    np.testing.assert_allclose(
        windows.truth()[:, :, 0], [values[place : place + 2] for place in range(3, len(values) - 1)], atol=1e-5 * size
    )


def test_a_window_says_the_same_on_any_scale() -> None:
    values = np.random.default_rng(1).normal(size=20)
    one, other = frame().every([series(values)]), frame().every([series(1000 * values + 7)])
    tiny = frame().every([series(1e-12 * values)])
    np.testing.assert_allclose(one.inputs.data, other.inputs.data, atol=1e-4)
    np.testing.assert_allclose(one.inputs.data, tiny.inputs.data, atol=1e-4)
    np.testing.assert_allclose(one.targets, other.targets, atol=1e-4)


def test_a_short_series_is_filled_up_for_the_linear_part_alone() -> None:
    windows = frame(context=5).before([(series([4, 6]), 2)])
    assert windows.lengths.tolist() == [2]
    assert windows.history()[0, :, 0].tolist() == [4, 4, 4, 4, 6]
    assert not windows.targets.size


def test_quantiles_never_cross_and_outputs_come_channel_by_channel() -> None:
    both = Series("", np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]), np.zeros((3, 0)))
    windows = frame(channels=2, naive={"": (1.0, 1.0)}).before([(both, 3)])
    outputs = np.array([[1, 2, 3, 4, 9, 9, 9, 9, 5, 5, 5, 5]], np.float32)  # the lower quantile above the higher
    values = windows.forecasts(outputs, horizon=2)
    assert values.shape == (1, 3, 2, 2)
    assert (values[0, 1] <= values[0, 2]).all()
    scale, offset = windows.scale[0, 0], windows.offset[0, 0]
    np.testing.assert_allclose(values[0, 0], np.array([[1, 3], [2, 4]]) * scale + offset)


def test_labels_and_covariates_are_on_scales_of_their_own() -> None:
    known = [series([1, 2, 3], str(n), float(label), [5, 6, 7]) for n, label in enumerate((10, 30))]
    made = SeriesFrame.fit(known, horizon=12)
    assert made.label == (20.0, 10.0) and made.horizon == 1 and made.covariates[0][0] == 6.0
    windows = made.every(known)
    assert windows.targets.ravel().tolist() == [-1, 1] and windows.truth().ravel().tolist() == [10, 30]


def test_the_ends_are_held_out_and_nothing_is_chosen_by_them() -> None:
    values = np.arange(100.0)
    values[80:] = 1e6
    train, parts, made = hold_out_ends([series(values)], {"test": 0.1, "dev": 0.1}, horizon=5, context=10, season=1)
    assert len(train[0]) == 81 and made.naive[""] == (pytest.approx(1, abs=1e5),)
    assert [len(parts[name][0]) for name in ("test", "dev")] == [20, 19]
    flat = np.concatenate([np.arange(60.0), np.full(40, 1e6)])
    _, _, unaware = hold_out_ends([series(flat)], {"test": 0.5}, horizon=5, context=10, season=1)
    assert unaware.naive[""] == (1.0,)


def test_a_cut_series_keeps_at_least_its_horizon() -> None:
    kept, ends = cut_ends([series(range(20)), series(range(3))], 0.1, least=5, context=4)
    assert [len(one) for one in kept] == [15, 3] and [len(one) for one in ends] == [9]


def test_each_series_has_its_own_naive_error_and_a_new_one_their_mean() -> None:
    small, large = series(np.arange(30.0), "small"), series(10 * np.arange(30.0), "large")
    made = SeriesFrame.fit([small, large], horizon=2, context=3, season=1)
    assert made.naive == {"small": (1.0,), "large": (10.0,)}
    assert made.before([(large, 5), (series([1, 2, 3], "new"), 3)]).naive.ravel().tolist() == [10, 5.5]


def test_a_season_is_found_or_there_is_none() -> None:
    rng = np.random.default_rng(5)
    trend, noise = 0.3 * np.arange(200), rng.normal(0, 0.2, 200)
    assert find_season([series(np.sin(np.arange(200) * 2 * np.pi / 12) + trend + noise)]) == 12
    assert find_season([series(rng.normal(size=200))]) == 1
    assert find_season([series(np.ones(200))]) == 1
    assert find_season([series([1, 2])]) == 1 and find_season([series([1])]) == 1
    assert find_season([series(np.sin(np.arange(9000) * 2 * np.pi / 1500))]) == 1  # too long to look back on
    walks = [find_season([series(rng.normal(size=1000).cumsum())]) for _ in range(20)]
    assert walks.count(1) >= 18


def test_naive_errors_of_what_never_changes_or_is_too_short_are_its_size() -> None:
    assert naive_errors(np.full((5, 2), 7.0)).tolist() == [7, 7] and naive_errors(np.zeros((5, 1))).tolist() == [1]
    assert naive_errors(np.array([[3.0]])).tolist() == [3]
    assert naive_errors(np.array([[1.0], [4.0]]), season=12).tolist() == [3]
    assert naive_errors(np.array([[1e38], [2e38]] * 8), season=2).tolist() == [1e38]  # every season is the same


def test_what_is_too_short_or_has_other_columns_is_told_of() -> None:
    with pytest.raises(UserError, match=r"longest series has 6 steps.*-s data.horizon=1 -s data.context=1"):
        SeriesFrame.fit([series(range(6))], horizon=12)
    with pytest.raises(UserError, match="look back 3 steps and ahead 2"):
        frame().every([series([1, 2, 3])])
    with pytest.raises(UserError, match=r"1 columns to forecast and 1 covariates.*trained on 1 and 0"):
        frame().before([(series([1, 2, 3], beside=[1, 2, 3]), 3)])


def test_autocorrelations_are_those_of_numpy() -> None:
    values = np.random.default_rng(2).normal(size=200).cumsum()
    expected = [np.corrcoef(values[:-lag], values[lag:])[0, 1] for lag in range(1, 60)]
    np.testing.assert_allclose(autocorrelations(values, 60), [1.0, *expected], atol=1e-9)


def test_a_flat_window_is_on_the_scale_of_its_series() -> None:
    low, high = (series([1, 1, 1, 1, 3, 1, 1, 1, 1, 5] * 4, name) for name in ("low", "high"))
    high = Series("high", 1e6 * high.values, high.covariates)
    made = SeriesFrame.fit([low, high], horizon=1, context=3, season=1)
    windows = made.before([(low, 3), (high, 3), (series([7e-4] * 3, "new"), 3), (series([0] * 3, "new"), 3)])
    assert windows.scale[1].item() == pytest.approx(1e6 * windows.scale[0].item())
    assert windows.scale[0].item() == made.naive["low"][0]
    assert windows.scale[2].item() == 7e-4  # not what series of another level need
    assert windows.scale[3].item() == np.mean([made.naive["low"], made.naive["high"]])


@pytest.mark.parametrize("level", [0.0, 5e-324, 1e-50, 3.0, 1e9])
def test_what_never_changes_is_learnt_as_that(level: float) -> None:
    made = SeriesFrame.fit([series([level] * 40)], horizon=2, context=4)
    windows = made.every([series([level] * 40)])
    assert not windows.inputs.data.any() and not windows.targets.any()
    assert windows.scale[0].item() == (level if level > 1e-100 else 1.0)


def test_small_changes_of_a_large_level_are_changes() -> None:
    windows = frame().every([series(1.7e9 + np.arange(8.0) % 3)])
    assert windows.scale.max() < 2 and np.abs(windows.targets).max() > 0.5


def test_a_run_that_starts_from_another_has_its_steps_and_errors_of_its_own() -> None:
    own = frame(horizon=2, context=3, season=4)
    assert own.going_on(frame(season=4, naive={"new": (2.0,)})).naive == {"": (1.0,), "new": (2.0,)}
    with pytest.raises(UserError, match=r"cannot be changed: say -s data.horizon=2 -s data.season=4"):
        own.going_on(frame(horizon=5))
    with pytest.raises(UserError, match="has other columns"):
        own.going_on(frame(channels=2, naive={"": (1.0, 1.0)}))


def test_what_is_left_out_is_said() -> None:
    columns = SeriesColumns(("x",), left_out=("town",))
    train = [replace(series(range(length), str(length)), columns=columns) for length in (30, 4)]
    said = SeriesFrame.fit(train, horizon=2, context=3, season=1).said(train)
    assert said.startswith("forecasting x: no season; forecasts look back 3 steps; left out, as they hold text: town")
    assert said.endswith("; 1 of 2 series are too short to train on, and left out")


def test_what_no_score_can_be_made_of_is_told_of() -> None:
    with pytest.raises(UserError, match="the data has numbers that are too far from those before them"):
        frame().every([series(10.0 ** np.arange(40))])
