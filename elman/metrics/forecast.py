"""How good forecasts are: MASE, sMAPE, and how often an interval holds the truth."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def mase(forecast: Floats, truth: Floats, scale: Floats | float) -> float:
    """Mean absolute scaled error (Hyndman and Koehler 2006): errors as multiples of the naive ones, `scale`.

    >>> mase(np.array([3.0]), np.array([4.0]), scale=2.0)
    0.5
    """
    return float((np.abs(forecast - truth) / scale).mean())


def smape(forecast: Floats, truth: Floats) -> float:
    """Symmetric mean absolute percentage error, from 0 to 2: 2 |f - y| / (|f| + |y|).

    >>> smape(np.array([1.0, 0.0]), np.array([3.0, 0.0]))
    0.5
    """
    size = np.abs(forecast) + np.abs(truth)
    return float((2 * np.abs(forecast - truth) / np.where(size > 0, size, 1)).mean())


def coverage(low: Floats, high: Floats, truth: Floats) -> float:
    """The share of true values that lie between two quantiles.

    >>> coverage(np.array([0.0, 0.0]), np.array([1.0, 1.0]), np.array([0.5, 2.0]))
    0.5
    """
    return float(((low <= truth) & (truth <= high)).mean())


def forecast_scores(values: Floats, truth: Floats, scale: Floats | float) -> dict[str, float]:
    """What a report holds of forecasts: the mean and quantiles (B x 1+Q x h x C) of what came (B x h x C).

    The interval is that between the first and the last quantile.

    >>> forecast_scores(np.array([[[[1.0]]]]), np.array([[[2.0]]]), scale=2.0)
    {'mase': 0.5, 'smape': 0.6666666666666666, 'windows': 1}
    """
    mean = values[:, 0]
    inside = {"coverage": coverage(values[:, 1], values[:, -1], truth)} if values.shape[1] > 2 else {}
    return {"mase": mase(mean, truth, scale), "smape": smape(mean, truth), **inside, "windows": len(truth)}
