"""The settings of a beam search."""

import math
from dataclasses import dataclass
from operator import index

from elman.errors import UserError

MOST_COVERAGE = 100.0
"""The greatest weight of the coverage penalty: papers have tenths, and of far more the scores are no numbers."""


@dataclass(frozen=True)
class Beam:
    """How a beam search goes about it; `docs/search.md` has the equations.

    `size` hypotheses of each sentence are followed, finished ones among them; `n_best` are given back. With `stop_at`
    n, finished ones are put aside in place of that, `size` others are followed beside them, and the search of a
    sentence ends once n are finished. `length`
    is the greatest number of new ids, `min_length` the smallest, both with the end token counted. The score of a
    hypothesis is its log-probability divided by its length (the end token counted) to the power of
    `length_power`: 0 is the plain log-probability, 1 the mean of its tokens. `coverage` is the weight of the
    penalty of Wu et al. (2016) for source words that were not attended to (0: off). With `block_ngrams` n, no n
    ids in a row occur twice in a hypothesis (0: off).

    >>> Beam(size=4, length_power=0.6)
    Beam(size=4, length=100, n_best=1, length_power=0.6, min_length=0, coverage=0.0, block_ngrams=0, \
stop_at=None)
    >>> Beam(size=0)
    Traceback (most recent call last):
    elman.errors.UserError: size must be the number of hypotheses to follow, 1 or more, not 0
    """

    size: int = 5
    length: int = 100
    n_best: int = 1
    length_power: float = 1.0
    min_length: int = 0
    coverage: float = 0.0
    block_ngrams: int = 0
    stop_at: int | None = None

    def __post_init__(self) -> None:
        for number in (self.size, self.length, self.n_best, self.min_length, self.block_ngrams):
            index(number)  # a fraction is no number of anything, and NaN is within every bound
        if self.size < 1:
            raise UserError(f"size must be the number of hypotheses to follow, 1 or more, not {self.size}")
        if self.length < 1:
            raise UserError(f"length must be the greatest number of new ids, 1 or more, not {self.length}")
        if not 1 <= self.n_best <= self.size:
            raise UserError(f"n_best must be from 1 to the size of the beam, {self.size}, not {self.n_best}")
        if self.stop_at is not None and index(self.stop_at) < self.n_best:
            raise UserError(
                f"stop_at must be the number of finished hypotheses to stop at, n_best = {self.n_best} or more, not "
                f"{self.stop_at}"
            )
        if not 0 <= self.length_power < math.inf:
            raise UserError(f"length_power must be 0 (no normalisation) or a number above it, not {self.length_power}")
        if self.min_length < 0:
            raise UserError(f"min_length must be 0 or a number of ids, not {self.min_length}")
        if self.min_length > self.length:
            raise UserError(
                f"min_length is {self.min_length} and the greatest length {self.length}: "
                "at least as many ids must be allowed as asked"
            )
        if not 0 <= self.coverage <= MOST_COVERAGE:
            raise UserError(
                f"coverage must be 0 (off) or the weight of the penalty, {MOST_COVERAGE:g} at most, not {self.coverage}"
            )
        if self.block_ngrams < 0:
            raise UserError(f"block_ngrams must be 0 (off) or the length of an n-gram, not {self.block_ngrams}")
