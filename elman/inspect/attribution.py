"""A number for each token of a text: how much of a score a method holds it to account for; how far methods agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman.inspect.subject import Cut


@dataclass(frozen=True)
class Attribution:
    """What a method makes of one text."""

    values: list[float]
    """T: positive where a token speaks for the target, negative where against it."""
    score: float
    """The score that is explained."""
    edges: float = 0.0
    """What falls to the end tokens before and behind the text."""
    rest: float | None = None
    """What falls to no token: the biases (relevance), the score of a text of zeros (integrated)."""
    gap: float | None = None
    """Integrated gradients: by how much values, edges and rest miss the score, as a share of |score - rest|, taken as
    0.1 where it is smaller."""
    steps: int | None = None
    """Integrated gradients: points on the way from zeros to the text."""

    @classmethod
    def of(cls, cut: Cut, values: NDArray[np.floating], score: float, **more: float | int | None) -> "Attribution":
        """From values for all tokens that were read, the end tokens among them."""
        own = cut.own(values)
        return cls(own.tolist(), score, float(values.sum() - own.sum()), **more)  # type: ignore[arg-type]


def spearman(one: ArrayLike, other: ArrayLike) -> float:
    """How far two rows of numbers rank alike: the correlation of their ranks, from -1 to 1; 0 where one is constant.

    >>> spearman([1, 2, 3], [10, 20, 90]), spearman([1, 2, 3], [3, 2, 1]), spearman([1, 1], [1, 2])
    (1.0, -1.0, 0.0)
    """
    ranks = np.stack([_ranks(np.asarray(row, np.float64)) for row in (one, other)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    size = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return round(float((ranks[0] * ranks[1]).sum()) / size, 12) if size else 0.0


def agreement(rows: Sequence[ArrayLike]) -> list[list[float | None]]:
    """The rank correlation of each row of numbers with each other (M x M); None where a row is a single number.

    >>> agreement([[1.0], [2.0]])
    [[None, None], [None, None]]
    """
    if rows and np.size(rows[0]) < 2:
        return [[None] * len(rows) for _ in rows]
    return [[1.0 if one is other else spearman(one, other) for other in rows] for one in rows]


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each value; equal values have the mean of theirs."""
    _, same, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: NDArray[np.float64] = (2 * last - counts - 1) / 2
    return mean[same]
