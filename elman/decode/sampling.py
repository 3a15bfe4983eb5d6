"""From logits to the next id: how the distribution is reshaped, and how one id is sampled from it.

Everything is computed in float64, in an order that `docs/sampling.md` fixes, so that the choice depends on the logits
and the random number alone, not on a device or a sorting routine. That number is a pure function of (seed, stream,
step), with no state to carry or to save: sample i of a batch has stream i, its n-th new id step n, so that a sample is
the same whether it is made alone or beside a hundred others, and a runtime in another language gives the same bits.
"""

import math
from collections.abc import Collection
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman.decode.scores import Bools, Floats, Ints
from elman.errors import RunError, UserError
from elman.sampling import Sampling

_GAMMA = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)


def splitmix64(seed: ArrayLike, n: ArrayLike) -> NDArray[np.uint64]:
    """Output number `n` (from 0) of a SplitMix64 generator started at `seed` (Steele, Lea, Flood 2014).

    Its state only ever grows by a constant, so any output can be had without those before it.

    >>> int(splitmix64(1234567, 0))
    6457827717110365317
    """
    seeds, places = np.asarray(seed, dtype=np.uint64), np.asarray(n, dtype=np.uint64)
    with np.errstate(over="ignore"):  # arithmetic is modulo 2**64; NumPy warns of that for single numbers only
        z = seeds + (places + np.uint64(1)) * _GAMMA
        z = (z ^ (z >> np.uint64(30))) * _MIX_1
        z = (z ^ (z >> np.uint64(27))) * _MIX_2
        return np.asarray(z ^ (z >> np.uint64(31)), dtype=np.uint64)


def uniform(seed: int, stream: ArrayLike, step: ArrayLike) -> NDArray[np.float64]:
    """The number in [0, 1), with 53 random bits, that belongs to each (seed, stream, step).

    `stream` and `step` are integers from 0, or arrays of them that broadcast.

    >>> uniform(0, [0, 1], 0).tolist()
    [0.13870941014555427, 0.18383979100743952]
    >>> float(uniform(0, 1, 0))
    0.18383979100743952
    """
    # The seed is mixed by itself first, or else seeds a multiple of _GAMMA apart would share streams.
    bits = splitmix64(splitmix64(splitmix64(seed, 0), stream), step)
    return np.asarray((bits >> np.uint64(11)).astype(np.float64) * 2.0**-53, dtype=np.float64)


def next_ids(
    logits: NDArray[Any], sampling: Sampling, seen: Bools | None, uniforms: Floats, suppress: Collection[int] = ()
) -> Ints:
    """Choose one id a row (B) from `logits` (B x V) with the random numbers `uniforms` (B, in [0, 1)).

    `seen` (B x V, true or false) marks the ids that the repetition penalty falls on; ids in `suppress` are
    never chosen.

    >>> logits = np.log([[0.1, 0.2, 0.7]])
    >>> [next_ids(logits, Sampling(), None, np.array([u])).item() for u in (0.05, 0.25, 0.95)]
    [0, 1, 2]
    >>> next_ids(logits, Sampling(temperature=0), None, np.zeros(1), suppress=[2]).item()
    1
    """
    scores = np.asarray(logits, np.float64)  # B x V
    if seen is not None:
        scores = penalise(scores, seen, sampling.repetition_penalty)
    scores = _suppressed(scores, suppress)
    top = _finite_maximum(scores)  # B x 1
    if sampling.greedy:
        return np.asarray(scores.argmax(axis=-1))  # B; the lowest id among equals
    with np.errstate(over="ignore"):  # the likeliest is at 0, so a tiny temperature takes the others to -inf at most
        scores = (scores - top) / sampling.temperature
    weights = np.where(kept(scores, sampling), np.exp(scores), 0.0)  # B x V; softmax but for its divisor
    cumulative = weights.cumsum(axis=-1)  # B x V; ids ascending
    # u is scaled by the total, instead of the weights divided by it: for u <= 1 - 2**-53 the product is below
    # the total in floating point too, so an id is always found, and its own weight is above zero.
    threshold = np.asarray(uniforms, np.float64)[:, None] * cumulative[:, -1:]  # B x 1
    return np.asarray((cumulative <= threshold).sum(axis=-1))  # B


def penalise(scores: Floats, seen: Bools, penalty: float) -> Floats:
    """Make the `seen` ids less likely: positive logits divided by `penalty`, negative ones multiplied.

    >>> penalise(np.array([2.0, -2.0, 2.0]), np.array([True, True, False]), 2.0).tolist()
    [1.0, -4.0, 2.0]
    """
    return np.where(seen, np.where(scores > 0, scores / penalty, scores * penalty), scores)


def kept(scores: Floats, sampling: Sampling) -> Bools:
    """Which ids (B x V, true or false) top-k and then top-p leave, given logits with the temperature applied.

    Ids are ranked by falling logit, equal ones by rising id. Top-k keeps the first k. Top-p keeps an id if
    those ranked before it hold less than `top_p` of what top-k left; the first is always kept.

    >>> scores = np.log([[0.2, 0.4, 0.1, 0.3]])
    >>> kept(scores, Sampling(top_k=3)).tolist()
    [[True, True, False, True]]
    >>> kept(scores, Sampling(top_p=0.6)).tolist()
    [[False, True, False, True]]
    """
    size = scores.shape[-1]
    limit = min(sampling.top_k, size) or size
    if limit == size and sampling.top_p == 1:
        return np.ones(scores.shape, bool)
    order = np.argsort(-scores, axis=-1, kind="stable")  # B x V
    in_rank = np.broadcast_to(np.arange(size) < limit, scores.shape)  # B x V
    if sampling.top_p < 1:
        ranked = np.take_along_axis(scores, order, axis=-1)  # B x V
        cumulative = np.where(in_rank, np.exp(ranked - ranked[:, :1]), 0.0).cumsum(axis=-1)  # B x V
        before = np.concatenate([np.zeros_like(cumulative[:, :1]), cumulative[:, :-1]], axis=-1)  # B x V
        in_rank = in_rank & (before < sampling.top_p * cumulative[:, -1:])
    found = np.zeros(scores.shape, bool)
    np.put_along_axis(found, order, in_rank, axis=-1)
    return found  # B x V


def _suppressed(scores: Floats, suppress: Collection[int]) -> Floats:
    if not suppress:
        return scores
    size = scores.shape[-1]
    if min(suppress) < 0 or max(suppress) >= size:
        raise UserError(f"suppressed ids must lie in 0 to {size - 1}, the vocabulary, not {sorted(suppress)}")
    scores = scores.copy()
    scores[:, [index(id_) for id_ in suppress]] = -math.inf
    return scores


def _finite_maximum(scores: Floats) -> Floats:
    top = scores.max(axis=-1, keepdims=True)  # B x 1
    if (top == -math.inf).any():
        raise UserError("every id is suppressed, so nothing can come next: suppress fewer")
    if not np.isfinite(top).all():
        raise RunError("the model's logits are not finite numbers, so nothing can be chosen from them")
    return np.asarray(top)
