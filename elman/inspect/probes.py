"""Whether hidden states hold a feature of the text: single units, and a linear probe over all of them.

Both learn from the first half of the tokens and are measured on the second. Beside them stands what the same gives
where the feature is moved along the text by chance, which keeps how it comes and goes and takes away what it has to do
with the tokens: what is not well above that is not found.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError
from elman.inspect.calibration import auc

Floats = NDArray[np.float64]

ON = ("no", "yes")
FEWEST = 200  # tokens that a probe needs
EACH = 5  # tokens of a name that each half needs
PENALTY = 0.1  # of the ridge regression, for each token that it learns from


@dataclass(frozen=True)
class Values:
    """A feature at each of N tokens: numbers, or the numbers of names."""

    numbers: Floats
    names: tuple[str, ...] | None = None

    def take(self, places: slice) -> "Values":
        """Those of some tokens."""
        return Values(self.numbers[places], self.names)


@dataclass(frozen=True)
class Verdict:
    """A held-out score beside those of features that were moved by chance."""

    measure: Literal["AUC", "correlation"]
    score: float
    chance: float
    """The mean where the feature was moved."""
    best_of_chance: float
    found: bool
    """Whether the score is above the best of chance by more than the spread of these."""


def check_enough(values: Values, feature: str) -> None:
    """Refuse too little text, and a feature that never changes or hardly ever."""
    count = len(values.numbers)
    if count < FEWEST:
        raise UserError(
            f"{count} tokens are too few to find out what units follow: give a corpus of at least {FEWEST} tokens"
        )
    if np.ptp(values.numbers) == 0:
        how = f"the same at each of {count:,} tokens"
        if values.names == ON:
            how = f"{'always' if values.numbers[0] else 'never'} there in {count:,} tokens"
        raise UserError(f"'{feature}' is {how}: name something that comes and goes, or give more text")
    if values.names is None:
        return
    halves = np.split(values.numbers.astype(np.int64), [count // 2])
    fewest = np.min([np.bincount(half, minlength=len(values.names)) for half in halves], axis=0)
    if (fewest >= EACH).sum() < 2:
        raise UserError(
            f"'{feature}' changes too seldom in {count:,} tokens: each half of them needs at least {EACH} tokens of "
            "two kinds; give more text"
        )


class Halves:
    """States and a feature, the first half to learn from and the second to measure on; and the feature moved."""

    def __init__(self, states: NDArray[np.float32], values: Values, random: np.random.Generator, shuffles: int) -> None:
        count = len(states)
        self.values, self.half = values, count // 2
        self.x = [_standard(part) for part in np.split(states, [self.half])]  # each N/2 x D
        shifts = random.integers(count // 10, count - count // 10, size=shuffles)
        self.features = [values.numbers, *(np.roll(values.numbers, int(shift)) for shift in shifts)]
        self.known, self.held = (self._correlations(part, self.features[0]) for part in (0, 1))  # each D

    def unit(self) -> Verdict:
        """Of the unit that follows the feature best in the first half, measured on the second."""
        scores = [abs(float(self.held[np.abs(self.known).argmax()]))]
        for moved in self.features[1:]:
            best = int(np.abs(self._correlations(0, moved)).argmax())
            scores.append(abs(float(self._correlations(1, moved, best)[0])))
        return _verdict("correlation", scores)

    def probe(self) -> Verdict:
        """Of a linear probe (ridge regression) over all units."""
        x = self.x[0]
        columns = [self._columns(0, feature) for feature in self.features]  # each N/2 x K
        gram = (x.T @ x).astype(np.float64) + PENALTY * len(x) * np.eye(x.shape[1])  # D x D
        weights = np.linalg.solve(gram, x.T @ np.concatenate(columns, axis=1).astype(np.float32))
        said = np.asarray(self.x[1] @ weights.astype(np.float32), np.float64)  # N/2 x K for each feature
        width = columns[0].shape[1]
        scores = [
            self._score(said[:, place * width : (place + 1) * width], feature)
            for place, feature in enumerate(self.features)
        ]
        return _verdict("correlation" if self.values.names is None else "AUC", scores)

    def _of(self, part: int, feature: Floats) -> Floats:
        return np.split(feature, [self.half])[part]

    def _columns(self, part: int, feature: Floats) -> Floats:
        """What the probe is to say of each token: the number, or one for its name and zero for the others; centred."""
        own = self._of(part, feature)
        if self.values.names is None:
            return np.asarray(own - own.mean())[:, None]
        ones = own[:, None] == np.arange(len(self.values.names))
        return np.asarray(ones - ones.mean(axis=0))

    def _score(self, said: Floats, feature: Floats) -> float:
        own = self._of(1, feature)
        if self.values.names is None:
            return float(np.corrcoef(said[:, 0], own)[0, 1]) if np.ptp(own) and np.ptp(said) else 0.0
        found = [
            auc(said[own != number, number], said[own == number, number])
            for number in range(len(self.values.names))
            if EACH <= (own == number).sum() <= len(own) - EACH
        ]
        return float(np.mean(found)) if found else 0.5

    def _correlations(self, part: int, feature: Floats, unit: int | None = None) -> Floats:
        """How each unit, or one, goes with the feature: Pearson's correlation, or the correlation ratio of names."""
        own, x = self._of(part, feature), self.x[part]
        x = x if unit is None else x[:, unit : unit + 1]
        if self.values.names is None or len(self.values.names) == 2:
            y = own - own.mean()
            return np.asarray(x.T @ (y / (y.std() or 1.0)).astype(np.float32) / len(y), np.float64)
        ones = (own[:, None] == np.arange(len(self.values.names))).astype(np.float32)
        counts = np.maximum(ones.sum(axis=0), 1)
        means = x.T @ ones / counts  # D x K
        return np.asarray(np.sqrt((means**2 * counts).sum(axis=1) / len(own)), np.float64)


def _standard(states: NDArray[np.float32]) -> NDArray[np.float32]:
    """Each unit with mean 0 and spread 1; one that never moves with zeros."""
    spread = states.std(axis=0)
    return np.asarray((states - states.mean(axis=0)) / np.where(spread > 1e-6, spread, np.inf), np.float32)


def _verdict(measure: Literal["AUC", "correlation"], scores: list[float]) -> Verdict:
    """The first score beside the others, which are those of chance."""
    chance = np.array(scores[1:])
    found = scores[0] > chance.max() + chance.std()
    return Verdict(measure, scores[0], float(chance.mean()), float(chance.max()), bool(found))
