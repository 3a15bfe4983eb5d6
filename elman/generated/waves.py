"""Noisy seasonal series, made by rule: a daily and a weekly rhythm, a slow drift, shocks that fade."""

from collections.abc import Iterator

import numpy as np

SEED = 7
STEPS = 600
NAMES = ("amber", "basalt", "cedar", "dune", "elm", "fjord", "grove", "harbour")
DAY, WEEK = 24, 7  # steps of a day, days of a week


def waves(steps: int = STEPS) -> Iterator[tuple[str, int, float]]:
    """The name of the series, the step and the value of each row; the same every time.

    >>> rows = list(waves(steps=2))
    >>> len(rows), rows[0][:2], rows[-1][:2]
    (16, ('amber', 1), ('harbour', 2))
    """
    for number, name in enumerate(NAMES):
        values = _wave(np.random.default_rng((SEED, number)), max(steps, 1))
        yield from ((name, step, round(value, 3)) for step, value in enumerate(values[:steps], 1))


def _wave(chance: np.random.Generator, steps: int) -> list[float]:
    level, height = 10 ** chance.uniform(1, 3), chance.uniform(0.2, 0.4)
    phase, sharp = chance.uniform(0, 2 * np.pi), chance.uniform(0.2, 0.6)
    time = np.arange(steps)
    angle = 2 * np.pi * time / DAY + phase
    day = np.sin(angle) + sharp * np.sin(2 * angle)
    resting = (time // DAY) % WEEK >= WEEK - 2  # two days a week the rhythm is weaker
    drift = np.cumsum(chance.normal(0, 0.01, steps))
    shock = np.zeros(steps)
    for step in range(1, steps):
        shock[step] = 0.8 * shock[step - 1] + chance.normal(0, 0.08)
    shape = 1 + height * (day * np.where(resting, 0.4, 1.0)) + drift + shock * height
    return (level * shape).tolist()  # type: ignore[no-any-return]
