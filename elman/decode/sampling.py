"""From logits to the next id: how the distribution is reshaped, and how one id is drawn from it.

Everything is computed in float64 on the CPU, in an order that `docs/sampling.md` fixes, so that the choice
depends on the logits and the random number alone, not on a device or a sorting routine.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from operator import index

import torch
from torch import Tensor

from elman.errors import RunError, UserError


@dataclass(frozen=True)
class Sampling:
    """How the next id is chosen.

    `temperature` 0 takes the likeliest id; above 0 the logits are divided by it. `top_k` keeps the k
    likeliest ids (0: all). `top_p` keeps the fewest likeliest ids that hold that much probability (1: all).
    `repetition_penalty` (Keskar et al. 2019) makes ids that the text already has less likely (1: off).
    `seed` None draws another one each time.

    >>> Sampling(temperature=0.8, top_p=0.95)
    Sampling(temperature=0.8, top_k=0, top_p=0.95, repetition_penalty=1.0, seed=0)
    >>> Sampling(top_p=1.5)
    Traceback (most recent call last):
    elman.errors.UserError: top_p must be above 0 and at most 1, not 1.5
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | None = 0

    def __post_init__(self) -> None:
        index(self.top_k)  # a fraction is no number of ids
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature must be 0 (the likeliest) or a number above it, not {self.temperature}")
        if self.top_k < 0:
            raise UserError(f"top_k must be 0 (keep every id) or the number of ids to keep, not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not 0 < self.repetition_penalty < math.inf:
            raise UserError(
                f"repetition_penalty must be a number above 0 (1 turns it off), not {self.repetition_penalty}"
            )
        if self.seed is not None and not 0 <= index(self.seed) < 2**64:
            raise UserError(f"seed must be an integer from 0 to 2**64 - 1, not {self.seed}")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest id is taken and nothing is drawn."""
        return self.temperature == 0


def next_ids(
    logits: Tensor, sampling: Sampling, seen: Tensor | None, uniforms: Tensor, suppress: Collection[int] = ()
) -> Tensor:
    """Choose one id a row (B) from `logits` (B x V) with the random numbers `uniforms` (B, in [0, 1)).

    `seen` (B x V, true or false) marks the ids that the repetition penalty falls on; ids in `suppress` are
    never chosen. The ids come back on the CPU.

    >>> logits = torch.tensor([[0.1, 0.2, 0.7]]).log()
    >>> [int(next_ids(logits, Sampling(), None, torch.tensor([u]))) for u in (0.05, 0.25, 0.95)]
    [0, 1, 2]
    >>> int(next_ids(logits, Sampling(temperature=0), None, torch.tensor([0.0]), suppress=[2]))
    1
    """
    scores = logits.detach().to("cpu", torch.float64)  # B x V
    if seen is not None:
        scores = penalise(scores, seen.cpu(), sampling.repetition_penalty)
    scores = _suppressed(scores, suppress)
    top = _finite_maximum(scores)  # B x 1
    if sampling.greedy:
        return scores.argmax(dim=-1)  # B; the lowest id among equals

    scores = (scores - top) / sampling.temperature  # the likeliest is at 0, so a tiny temperature cannot overflow
    weights = scores.exp().masked_fill(~kept(scores, sampling), 0.0)  # B x V; softmax but for its divisor
    cumulative = weights.cumsum(dim=-1)  # B x V; ids ascending
    # u is scaled by the total, instead of the weights divided by it: for u <= 1 - 2**-53 the product is below
    # the total in floating point too, so an id is always found, and its own weight is above zero.
    threshold = uniforms.to("cpu", torch.float64).unsqueeze(-1) * cumulative[:, -1:]  # B x 1
    return torch.searchsorted(cumulative, threshold, right=True).squeeze(-1)  # B


def penalise(scores: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Make the `seen` ids less likely: positive logits divided by `penalty`, negative ones multiplied.

    >>> scores = torch.tensor([2.0, -2.0, 2.0])
    >>> penalise(scores, torch.tensor([True, True, False]), 2.0).tolist()
    [1.0, -4.0, 2.0]
    """
    return torch.where(seen, torch.where(scores > 0, scores / penalty, scores * penalty), scores)


def kept(scores: Tensor, sampling: Sampling) -> Tensor:
    """Which ids (B x V, true or false) top-k and then top-p leave, given logits with the temperature applied.

    Ids are ranked by falling logit, equal ones by rising id. Top-k keeps the first k. Top-p keeps an id if
    those ranked before it hold less than `top_p` of what top-k left; the first is always kept.

    >>> scores = torch.tensor([[0.2, 0.4, 0.1, 0.3]]).log()
    >>> kept(scores, Sampling(top_k=3)).tolist()
    [[True, True, False, True]]
    >>> kept(scores, Sampling(top_p=0.6)).tolist()
    [[False, True, False, True]]
    """
    size = scores.shape[-1]
    limit = min(sampling.top_k, size) or size
    if limit == size and sampling.top_p == 1:
        return torch.ones_like(scores, dtype=torch.bool)
    ranked, order = scores.sort(dim=-1, descending=True, stable=True)  # B x V
    in_rank = (torch.arange(size) < limit).expand_as(ranked)  # B x V
    if sampling.top_p < 1:
        weights = (ranked - ranked[:, :1]).exp().masked_fill(~in_rank, 0.0)  # B x V
        cumulative = weights.cumsum(dim=-1)  # B x V
        before = torch.cat([torch.zeros_like(cumulative[:, :1]), cumulative[:, :-1]], dim=-1)  # B x V
        in_rank = in_rank & (before < sampling.top_p * cumulative[:, -1:])
    return torch.zeros_like(in_rank).scatter(-1, order, in_rank)  # B x V


def _suppressed(scores: Tensor, suppress: Collection[int]) -> Tensor:
    if not suppress:
        return scores
    size = scores.shape[-1]
    if min(suppress) < 0 or max(suppress) >= size:
        raise UserError(f"suppressed ids must lie in 0 to {size - 1}, the vocabulary, not {sorted(suppress)}")
    mask = torch.zeros(size, dtype=torch.bool)  # V
    mask[list(suppress)] = True
    return scores.masked_fill(mask, -math.inf)


def _finite_maximum(scores: Tensor) -> Tensor:
    top = scores.amax(dim=-1, keepdim=True)  # B x 1
    if bool((top == -math.inf).any()):
        raise UserError("every id is suppressed, so nothing can come next: suppress fewer")
    if not bool(top.isfinite().all()):
        raise RunError("the model's logits are not finite numbers, so nothing can be chosen from them")
    return top
