"""Learning rates over a run."""

import math

from elman.train.recipe import TrainSettings


def learning_rate(settings: TrainSettings, step: int, fraction: float, plateaus: int = 0) -> float:
    """The rate for update number `step` (from 0), when `fraction` of the whole run is done.

    `plateaus` counts the evaluations that brought no improvement; only the plateau schedule looks at it.

    >>> settings = TrainSettings(lr=1.0, schedule="cosine", warmup=10)
    >>> [round(learning_rate(settings, step, step / 100), 2) for step in (0, 4, 9, 50, 100)]
    [0.1, 0.5, 0.98, 0.5, 0.0]
    """
    warm = min(1.0, (step + 1) / settings.warmup) if settings.warmup else 1.0
    fraction, end = min(max(fraction, 0.0), 1.0), settings.final_lr
    match settings.schedule:
        case "constant":
            shape = 1.0
        case "linear":
            shape = 1.0 + (end - 1.0) * fraction
        case "cosine":
            shape = end + (1.0 - end) * 0.5 * (1.0 + math.cos(math.pi * fraction))
        case "exponential":
            shape = max(end, 1e-3) ** fraction
        case "plateau":
            shape = settings.plateau_factor**plateaus
    return settings.lr * warm * shape
