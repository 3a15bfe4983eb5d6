"""What a search finds, and how it is scored."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Hypothesis:
    """One sequence that a search found: its ids (the stop id left out), log p, score, and whether it ended.

    `finished` is False where the limit of length came before the stop id.

    >>> Hypothesis(ids=[4, 2], log_prob=-1.5, score=-0.5, finished=True).ids
    [4, 2]
    """

    ids: list[int]
    log_prob: float
    score: float
    finished: bool


def normalised(log_prob: NDArray[np.float64], length: float | NDArray[np.int64], power: float) -> NDArray[np.float64]:
    """The score of a sequence: its log-probability divided by `length ** power`, the end token counted in `length`.

    >>> normalised(np.array([-6.0]), 4, 0.5).tolist()
    [-3.0]
    """
    return log_prob if power == 0 else np.asarray(log_prob / np.asarray(length, dtype=np.float64) ** power)
