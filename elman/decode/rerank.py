"""Choosing again among the n best, by more than the model that found them.

A hypothesis y of a source x has features, and its score is their weighted sum. With log p(y | x) of the model,
log p(x | y) of one that translates back and log p(y) of a language model this is the noisy channel (Yee et al.
2019); the length is a feature as well, and anything else that is a number.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import index

import numpy as np

from elman.decode.scores import Floats, Ints
from elman.errors import UserError

Features = Sequence[Sequence[Mapping[str, float]]]  # of every sentence, of each of its hypotheses


@dataclass(frozen=True)
class Tuned:
    """Weights, and the quality that they reach on what they were tuned on."""

    weights: dict[str, float]
    quality: float


def rerank(features: Features, weights: Mapping[str, float]) -> list[int]:
    """Which hypothesis of each sentence has the greatest weighted sum of features; the first of equals.

    >>> sentence = [{"forward": -1.0, "channel": -9.0}, {"forward": -2.0, "channel": -3.0}]
    >>> rerank([sentence], {"forward": 1.0}), rerank([sentence], {"forward": 1.0, "channel": 0.5})
    ([0], [1])
    """
    names = list(weights)
    return [int(place) for place in _Pool(features, names).choose(np.array([weights[name] for name in names]))]


def tune(
    features: Features,
    quality: Callable[[list[int]], float],
    *,
    start: Mapping[str, float],
    rounds: int = 5,
    restarts: int = 3,
    points: int = 50,
    seed: int = 0,
) -> Tuned:
    """The weights under which the chosen hypotheses have the best `quality`, which is told the chosen places.

    One weight after another is moved along its line to where the choices are best (Och 2003); only values at
    which some sentence's choice changes matter, of which at most `points` are tried. This is repeated until
    nothing improves, `rounds` at most, from `start` and from `restarts` random places. The same seed gives the
    same weights. They are scaled so that their sizes sum to one.

    >>> sentences = [[{"a": 2.0, "b": 0.0}, {"a": 0.0, "b": 1.0}], [{"a": 2.5, "b": 1.0}, {"a": 0.0, "b": 2.0}]]
    >>> tuned = tune(sentences, lambda chosen: sum(chosen), start={"a": 1.0, "b": 0.0})
    >>> tuned.quality, rerank(sentences, tuned.weights)
    (2, [1, 1])
    """
    rounds, restarts, points = index(rounds), index(restarts), index(points)
    if rounds < 1 or restarts < 0 or points < 1:
        raise UserError("tuning needs at least 1 round, 0 restarts and 1 point a line")
    names = list(start)
    search = _LineSearch(_Pool(features, names), quality, points)
    first = np.array([start[name] for name in names], dtype=np.float64)  # F
    scale = 1 / np.maximum(np.abs(search.pool.values).mean(axis=(0, 1), where=search.pool.there[..., None]), 1e-9)
    if seed < 0:
        raise UserError(f"seed must be an integer from 0, not {seed}")
    starts = np.random.default_rng(seed).uniform(-1, 1, (restarts, len(names))) * scale  # so that each counts alike
    best = max((search.climb(weights, rounds) for weights in [first, *starts]), key=lambda found: found[1])
    size = np.abs(best[0]).sum() or 1.0
    return Tuned(dict(zip(names, (best[0] / size).tolist(), strict=True)), best[1])


class _Pool:
    """The features of all hypotheses as one table, D sentences x N hypotheses x F features."""

    def __init__(self, features: Features, names: list[str]) -> None:
        if not names:
            raise UserError("reranking needs the weight of at least one feature")
        if not features:
            raise UserError("there are no sentences to choose hypotheses for")
        empty = next((place for place, sentence in enumerate(features) if not sentence), None)
        if empty is not None:
            raise UserError(f"sentence {empty + 1} has no hypotheses to choose from")
        self.values = np.zeros((len(features), max(map(len, features)), len(names)))  # D x N x F
        self.there = np.zeros(self.values.shape[:2], dtype=bool)  # D x N
        for row, sentence in enumerate(features):
            for place, hypothesis in enumerate(sentence):
                missing = next((name for name in names if name not in hypothesis), None)
                if missing is not None:
                    raise UserError(f"hypothesis {place + 1} of sentence {row + 1} has no feature '{missing}'")
                self.values[row, place] = [hypothesis[name] for name in names]
                self.there[row, place] = True
        if not np.isfinite(self.values).all():
            raise UserError("features must be finite numbers: leave out hypotheses that a model finds impossible")

    def choose(self, weights: Floats) -> Ints:
        """The best hypothesis of each sentence (D)."""
        return np.asarray(np.where(self.there, self.values @ weights, -np.inf).argmax(axis=1))

    def borders(self, weights: Floats, place: int) -> Floats:
        """The values of one weight, rising, at which the best hypothesis of some sentence may change."""
        slopes = self.values[:, :, place]  # D x N
        others = self.values @ np.where(np.arange(len(weights)) == place, 0.0, weights)  # D x N
        crossings = []
        for slope, other, there in zip(slopes, others, self.there, strict=True):
            crossings.append(_envelope(slope[there], other[there]))
        return np.unique(np.concatenate(crossings))


def _envelope(slopes: Floats, offsets: Floats) -> Floats:
    """Where the highest of the lines offset + slope * x passes from one to another."""
    order = np.lexsort((-offsets, slopes))
    hull: list[tuple[float, float, float]] = []  # where it begins to be the highest, slope, offset
    for slope, offset in zip(slopes[order].tolist(), offsets[order].tolist(), strict=True):
        if hull and hull[-1][1] == slope:
            continue  # as steep as the one before, which is the higher of the two
        begins = -np.inf
        while hull:
            begins = (hull[-1][2] - offset) / (slope - hull[-1][1])
            if begins > hull[-1][0]:
                break
            hull.pop()
            begins = -np.inf
        hull.append((begins, slope, offset))
    return np.array([begins for begins, _, _ in hull[1:]])


class _LineSearch:
    """Climbs one weight at a time; what was chosen before is not judged twice."""

    def __init__(self, pool: _Pool, quality: Callable[[list[int]], float], points: int) -> None:
        self.pool, self.quality, self.points = pool, quality, points
        self.known: dict[bytes, float] = {}

    def judge(self, weights: Floats) -> float:
        """The quality of what these weights choose."""
        chosen = self.pool.choose(weights)
        key = chosen.tobytes()
        if key not in self.known:
            self.known[key] = self.quality(chosen.tolist())
        return self.known[key]

    def climb(self, weights: Floats, rounds: int) -> tuple[Floats, float]:
        """Better weights, by coordinate search from `weights`, and their quality."""
        reached = self.judge(weights)
        for _ in range(rounds):
            before = reached
            for place in range(len(weights)):
                for value in self._values(weights, place):
                    moved = np.where(np.arange(len(weights)) == place, value, weights)
                    judged = self.judge(moved)
                    if judged > reached:
                        weights, reached = moved, judged
            if reached == before:
                break
        return weights, reached

    def _values(self, weights: Floats, place: int) -> list[float]:
        """One value of a weight for each stretch between two borders, the nearest to the present one first."""
        borders = self.pool.borders(weights, place)
        if not len(borders):
            return []
        margin = max(1.0, float(borders[-1] - borders[0])) / 2
        middles = (borders[1:] + borders[:-1]) / 2
        values = np.concatenate([[borders[0] - margin], middles, [borders[-1] + margin]])
        if len(values) > self.points:
            values = values[np.linspace(0, len(values) - 1, self.points).round().astype(np.int64)]
        return sorted(values.tolist(), key=lambda value: (abs(value - weights[place]), value))
