"""Small runs of forecasters that take a second or less."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

SMALL = (
    "data.horizon=4",
    "data.season=8",
    "model.hidden=12",
    "model.output_dropout=0",
    "batch.size=16",
    "train.lr=0.01",
    "train.steps=60",
    "train.evaluate_every=30",
    "train.log_every=1",
    "train.threads=1",
)


def wave(steps: int = 120, phase: float = 0.0, height: float = 1.0) -> list[float]:
    """A season of a little less than eight steps, so that no whole number of them is one, and a little noise."""
    noise = np.random.default_rng(3).normal(0, 0.05, steps)
    values = height * (3 + np.sin(np.arange(steps) * 2 * np.pi / 7.3 + phase) + noise)
    return [round(value, 4) for value in values.tolist()]


def write(path: Path, columns: dict[str, Sequence[object]] | None = None) -> Path:
    """A table with these columns; one wave and its times if none are given."""
    columns = columns or {"day": range(1, 121), "height": wave()}
    rows = zip(*columns.values(), strict=True)
    path.write_text("\n".join([",".join(columns), *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def keyed(names: Sequence[str] = ("north", "south", "west"), steps: int = 60) -> dict[str, Sequence[object]]:
    """The columns of several waves, each with a place and a number of its own."""
    waves = [wave(steps, number, 10.0**number) for number in range(len(names))]
    return {
        "place": [name for name in names for _ in range(steps)],
        "day": [*range(1, steps + 1)] * len(names),
        "height": [value for values in waves for value in values],
        "size": [float(number) for number in range(len(names)) for _ in range(steps)],
    }
