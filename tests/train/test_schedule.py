import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.train.optimizer import learning_rate
from elman.train.recipe import TrainSettings

SHAPES = ("constant", "linear", "cosine", "exponential")


@pytest.mark.parametrize(
    ("schedule", "middle", "end"),
    [("constant", 2.0, 2.0), ("linear", 1.1, 0.2), ("cosine", 1.1, 0.2), ("exponential", 2.0 * math.sqrt(0.1), 0.2)],
)
def test_begin_middle_and_end(schedule: str, middle: float, end: float) -> None:
    settings = TrainSettings(lr=2.0, schedule=schedule, final_lr=0.1)
    rates = [learning_rate(settings, step, step / 100) for step in (0, 50, 100)]
    assert rates == pytest.approx([2.0, middle, end])


@given(st.sampled_from(SHAPES), st.floats(0, 1), st.integers(0, 1000), st.integers(0, 50))
def test_never_above_lr_and_never_below_zero(schedule: str, fraction: float, step: int, warmup: int) -> None:
    settings = TrainSettings(lr=0.3, schedule=schedule, warmup=warmup)
    assert 0 <= learning_rate(settings, step, fraction) <= 0.3 + 1e-12


def test_warmup_grows_in_equal_steps_to_lr() -> None:
    settings = TrainSettings(lr=1.0, schedule="constant", warmup=4)
    assert [learning_rate(settings, step, 0.0) for step in range(6)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_plateau_lowers_by_its_factor_for_each_plateau() -> None:
    settings = TrainSettings(lr=20.0, schedule="plateau", plateau_factor=0.25)
    assert [learning_rate(settings, 0, 0.5, plateaus) for plateaus in range(3)] == [20.0, 5.0, 1.25]
