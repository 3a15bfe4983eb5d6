"""The settings by which a language model adapts best to held-out text: found by climbing, one setting at a time."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from elman.batches.stream import IdStream
from elman.errors import UserError
from elman.nn.cache import ContinuousCache
from elman.tasks.adapting import AdaptingSettings, AdaptSettings, CacheSettings
from elman.tasks.task import Say

if TYPE_CHECKING:
    from elman.tasks.adapting import AdaptingModel
    from elman.tasks.adaptive_scoring import Piece

TOKENS = 20_000
"""Of the held-out text, at most, unless the user says."""
SIZES = (100, 300, 1000, 2000, 4000, 8000)
MOST_WEIGHT = 0.999
MOST_STEPS = 12  # up or down, in factors
WORTH = 3e-4  # of the loss: a step that gains less is the last


def tune(model: "AdaptingModel", ids: IdStream, tokens: int | None, say: Say) -> "AdaptingModel":
    """The model with the settings that give held-out text the lowest loss.

    First the rate and the decay of dynamic evaluation; then, with the weights that they lead to, theta, size and weight
    of the cache. The segment stays as it is.
    """
    most = TOKENS if tokens is None else tokens
    if most < 2:
        raise UserError(f"the number of tokens to tune on should be at least 2, not {most}")
    ids = _beginning(ids, model.reading.unit == "line", most)
    if len(ids) < 2:
        raise UserError("the text to tune on has fewer than two tokens: give more")
    settings = model.adapting_settings
    adapt = settings.adapt
    if adapt is not None:
        adapt = _tune_adapt(model, ids, adapt, say)
    cache = None
    if settings.cache is not None:
        read = model.with_settings(AdaptingSettings(cache=settings.cache, adapt=adapt))
        with read._following(0) as follower:
            pieces = list(follower.pieces(ids))
        cache = _tune_cache(pieces, settings.cache, say)
    return model.with_settings(AdaptingSettings(cache=cache, adapt=adapt))


def _beginning(ids: IdStream, lines: bool, tokens: int) -> IdStream:
    """The first tokens of a text; whole lines where it has such."""
    if len(ids) <= tokens:
        return ids
    if not lines:
        return ids.view(0, tokens)
    fitting = max(1, int(np.searchsorted(ids.document_ends, tokens, side="right")))
    return ids.view(0, int(ids.document_ends[fitting - 1]))


def _tune_adapt(model: "AdaptingModel", ids: IdStream, start: AdaptSettings, say: Say) -> AdaptSettings:
    """Rate, then decay, then the rate once more in smaller steps."""
    known: dict[AdaptSettings, float] = {}

    def loss(settings: AdaptSettings) -> float:
        if settings not in known:
            twin = model.with_settings(AdaptingSettings(adapt=settings))
            with np.errstate(all="ignore"):
                found = -float(np.mean(twin.log_probs(ids)))
            known[settings] = found if math.isfinite(found) else math.inf
            say(f"dynamic: rate {settings.rate:g}, decay {settings.decay:g}: loss {known[settings]:.4f}")
        return known[settings]

    begin = start.model_copy(update={"rate": start.rate or AdaptSettings().rate})
    best = _climb(begin, "rate", 3.0, loss)
    begin = best.model_copy(update={"decay": best.decay or AdaptSettings().decay})
    best = min([best, _climb(begin, "decay", 10.0, loss), best.model_copy(update={"decay": 0.0})], key=loss)
    return _climb(best, "rate", 3.0**0.5, loss)


def _climb(start: AdaptSettings, key: str, factor: float, loss: Callable[[AdaptSettings], float]) -> AdaptSettings:
    """Go up or down by a factor as long as that helps."""
    best = start
    for direction in (factor, 1 / factor):
        for _ in range(MOST_STEPS):
            other = best.model_copy(update={key: rounded(getattr(best, key) * direction)})
            if loss(best) * (1 - WORTH) <= loss(other):
                break
            best = other
        if best != start:
            break
    return best


def _tune_cache(pieces: "Sequence[Piece]", start: CacheSettings, say: Say) -> CacheSettings:
    """Theta for the size that is given, then the size; the weight is the best for each."""
    log_probs = np.concatenate([piece.log_probs for piece in pieces])
    found: dict[tuple[int, float], tuple[float, float]] = {}

    def loss(size: int, theta: float) -> float:
        if (size, theta) not in found:
            weight, value = best_weight(log_probs, _shares(pieces, size, theta))
            found[size, theta] = value, weight
            say(f"cache: size {size}, theta {theta:g}, weight {weight:.3g}: loss {value:.4f}")
        return found[size, theta][0]

    theta = start.theta or CacheSettings().theta
    for factor in (2.0, 2.0**0.5):
        for direction in (factor, 1 / factor):
            for _ in range(MOST_STEPS):
                other = rounded(theta * direction)
                if loss(start.size, theta) * (1 - WORTH) <= loss(start.size, other):
                    break
                theta = other
    sizes: Iterable[int] = {start.size, *(size for size in SIZES if size < 2 * len(log_probs))}
    size = min(sorted(sizes), key=lambda one: loss(one, theta))
    return CacheSettings(size=size, theta=theta, weight=rounded(found[size, theta][1]))


def _shares(pieces: "Sequence[Piece]", size: int, theta: float) -> np.ndarray:
    """What a cache says of every token."""
    found, cache = [], ContinuousCache(size, theta, 0.5)
    for piece in pieces:
        if piece.begins:
            cache = ContinuousCache(size, theta, 0.5)
        found.append(cache.shares(piece.hidden, piece.targets))
        cache.add(piece.hidden, piece.targets)
    return np.concatenate(found)


def best_weight(log_probs: np.ndarray, shares: np.ndarray) -> tuple[float, float]:
    """The weight of a cache that makes a text likeliest, and the mean loss then; where a share is NaN it has none.

    The mean of log((1 - λ) p + λ s) is concave in λ, so the place where its slope is 0 is found by halving.

    >>> weight, loss = best_weight(np.log([0.5, 0.1]), np.array([0.1, 0.9]))
    >>> round(weight, 2), round(loss, 3)
    (0.56, 0.944)
    """
    there = ~np.isnan(shares)
    p, s = np.exp(log_probs[there]), shares[there]
    low, high = 0.0, MOST_WEIGHT
    for _ in range(30):
        middle = (low + high) / 2
        slope = float(np.sum((s - p) / np.maximum((1 - middle) * p + middle * s, 1e-300)))
        low, high = (middle, high) if slope > 0 else (low, middle)
    mixed = log_probs.copy()
    mixed[there] = np.log(np.maximum((1 - low) * p + low * s, 1e-300)) if low else log_probs[there]
    return low, -float(mixed.mean())


def rounded(value: float) -> float:
    """To three digits, as a setting is written down.

    >>> rounded(0.000123456), rounded(0.0)
    (0.000123, 0.0)
    """
    return float(f"{value:.3g}")
