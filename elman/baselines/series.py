"""What a forecast has to beat: the last value, the value a season before, a linear autoregression."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
RIDGE = 1e-3  # times the mean square of the inputs: enough that a matrix can be solved


Rival = Callable[[Floats], Floats]
"""From windows (N x T x C) to what comes after each (N x h x C)."""


def series_baselines(
    horizon: int, season: int, train: tuple[Floats, Floats] | None, mean: float | None = None
) -> dict[str, Rival]:
    """All of them by name; the autoregression is fitted to windows and what came after them, where those are known.

    Where one number is predicted for a whole series there is the `mean` of those in training.

    >>> list(series_baselines(horizon=1, season=12, train=None))
    ['last value', 'seasonal value']
    """
    if mean is not None:
        return {"mean of training": lambda windows: np.full((len(windows), 1, 1), mean)}
    rivals: dict[str, Rival] = {
        "last value": lambda windows: last_value(windows, horizon),
        "seasonal value": lambda windows: seasonal_value(windows, horizon, season),
    }
    return rivals | ({"linear autoregression": Autoregression.fit(*train).predict} if train is not None else {})


def last_value(windows: Floats, horizon: int) -> Floats:
    """The last value of each window (N x T x C), for all steps to come (N x h x C).

    >>> last_value(np.array([[[1.0], [2.0]]]), 2).ravel().tolist()
    [2.0, 2.0]
    """
    return np.repeat(windows[:, -1:], horizon, axis=1)


def seasonal_value(windows: Floats, horizon: int, season: int) -> Floats:
    """The values of the last season of each window, again and again.

    >>> seasonal_value(np.array([[[1.0], [2.0], [3.0]]]), 3, season=2).ravel().tolist()
    [2.0, 3.0, 2.0]
    """
    season = min(season, windows.shape[1])
    return windows[:, windows.shape[1] - season + np.arange(horizon) % season]


class Autoregression:
    """Each step to come as a linear function of the window before it, one for all columns.

    >>> line = np.arange(30.0)[:, None]
    >>> model = Autoregression.fit(np.stack([line[i : i + 4] for i in range(20)]),
    ...                            np.stack([line[i + 4 : i + 6] for i in range(20)]))
    >>> model.predict(line[None, 20:24]).round().ravel().tolist()
    [24.0, 25.0]
    """

    def __init__(self, weights: Floats) -> None:
        self.weights = weights  # T x h: of differences to the last value

    @classmethod
    def fit(cls, windows: Floats, targets: Floats) -> "Autoregression":
        """From windows (N x T x C) and what came after each (N x h x C)."""
        inputs, last = _centred(windows)
        wanted = (targets - last).transpose(0, 2, 1).reshape(-1, targets.shape[1])
        gram = inputs.T @ inputs
        ridge = float(RIDGE * np.trace(gram) / len(gram)) or 1.0  # of nothing but zeros
        return cls(np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), inputs.T @ wanted), np.float64))

    def predict(self, windows: Floats) -> Floats:
        """The steps that come after each window."""
        inputs, last = _centred(windows)
        steps = (inputs @ self.weights).reshape(len(windows), windows.shape[2], -1)
        return np.asarray(steps.transpose(0, 2, 1) + last)


def _centred(windows: Floats) -> tuple[Floats, Floats]:
    """Windows as differences to their last value, a row for each column (N*C x T), and those values (N x 1 x C)."""
    last = windows[:, -1:]
    return (windows - last).transpose(0, 2, 1).reshape(-1, windows.shape[1]), last
