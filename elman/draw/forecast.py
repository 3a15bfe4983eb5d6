"""A picture of a forecast: its mean, its interval, what came before and what came."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.files import write_aside

SHOWN = 50  # steps before a forecast, or series of one number each, at most
DRAWN = 8  # columns


def shown_forecast(values: NDArray[Any], truth: NDArray[Any], history: NDArray[Any] | None) -> dict[str, Any]:
    """What a report keeps of forecasts (B x 1+Q x h x C) and the truth (B x h x C) to draw: the last one, after its
    history (B x T x C); or the first of many where each is of one number, and nothing came before.

    >>> shown_forecast(np.zeros((2, 3, 4, 1)), np.zeros((2, 4, 1)), np.ones((2, 5, 1)))["history"]
    [[1.0], [1.0], [1.0], [1.0], [1.0]]
    """
    if history is None:
        values, truth = values[:SHOWN, :, 0].transpose(1, 0, 2)[None], truth[None, :SHOWN, 0]
        history = np.empty((1, 0, 1))
    return {"forecast": values[-1].tolist(), "truth": truth[-1].tolist(), "history": history[-1, -SHOWN:].tolist()}


def draw_forecast(shown: Mapping[str, Any], path: Path) -> None:
    """A PNG of what `shown_forecast` kept, an axis for each of the first columns."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    forecast, truth = np.array(shown["forecast"])[..., :DRAWN], np.array(shown["truth"])
    history = np.array(shown["history"]).reshape(-1, truth.shape[1])[:, :DRAWN]
    truth = truth[:, :DRAWN]
    figure = Figure(figsize=(7, 1.2 + 2.4 * truth.shape[1]), layout="constrained")
    steps, before = np.arange(1, len(truth) + 1), np.arange(1 - len(history), 1)
    rows = figure.subplots(truth.shape[1], 1, sharex=True, squeeze=False)[:, 0]
    for column, axes in enumerate(rows):
        if len(forecast) > 2:
            axes.fill_between(steps, forecast[1, :, column], forecast[-1, :, column], color="#8fb4d9", alpha=0.4)
        axes.plot(before, history[:, column], color="#555555", lw=1)
        axes.plot(steps, truth[:, column], color="#c0392b", marker="o", ms=3, lw=1, label="truth")
        axes.plot(steps, forecast[0, :, column], color="#2c6fad", marker="o", ms=3, lw=1, label="forecast")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
    rows[-1].set_xlabel("steps ahead" if len(history) else "series")
    with write_aside(path) as aside:
        figure.savefig(aside, format="png", dpi=120)
