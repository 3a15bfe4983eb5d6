"""Scoring every sequence there is: the truth that greedy and beam search are measured against.

Only for tiny vocabularies and lengths, since there are V**length sequences.
"""

from operator import index
from typing import NamedTuple

import torch
from torch import Tensor

from elman.decode.step_model import State, StepModel
from elman.errors import UserError


class Scored(NamedTuple):
    """A sequence and the natural logarithm of its probability.

    >>> Scored([3, 1], -0.5).ids
    [3, 1]
    """

    ids: list[int]
    log_prob: float


@torch.no_grad()
def exhaustive(
    model: StepModel[State],
    *,
    start_id: int,
    length: int,
    stop_id: int | None = None,
    limit: int = 1_000_000,
    length_power: float = 0.0,
    row: int = 0,
) -> list[Scored]:
    """Every sequence of `length` ids after `start_id`, best first; equally good ones in the order of ids.

    With a `stop_id`, shorter sequences that end in it are among them, and none goes on after it; either way
    the probabilities of all sum to one. Best is what has the greatest log-probability divided by its number
    of ids, the stop id counted, to the power of `length_power`. `row` is the one to look at of a model whose
    rows are different sentences.

    >>> class Coin:  # id 1 is three times as likely as id 0
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return torch.tensor([0.25, 0.75]).log().expand(len(ids), 2), None
    ...     def select(self, state, rows): return None
    >>> [(ids, round(log_prob, 3)) for ids, log_prob in exhaustive(Coin(), start_id=0, length=2)]
    [([1, 1], -0.575), ([0, 1], -1.674), ([1, 0], -1.674), ([0, 0], -2.773)]
    """
    length, limit = index(length), index(limit)
    if length < 1:
        raise UserError(f"length must be the number of ids of a sequence, 1 or more, not {length}")
    state = model.select(model.start(row + 1), torch.tensor([row])) if row else model.start(1)
    logits, state = model.step(torch.tensor([start_id]), state)  # 1 x V
    size = logits.shape[-1]
    if stop_id is not None and not 0 <= index(stop_id) < size:
        raise UserError(f"stop_id must be one of the {size} ids, from 0 to {size - 1}, not {stop_id}")
    if size**length > limit:
        raise UserError(
            f"{size} ids at {length} places make {size} to the power of {length} sequences, more than the limit of "
            f"{limit:,}: take a shorter length or a smaller vocabulary"
        )
    prefixes, scores = torch.zeros(1, 0, dtype=torch.long), torch.zeros(1, dtype=torch.float64)  # N x T, N
    done: list[Scored] = []
    for t in range(1, length + 1):
        prefixes, scores = _extended(prefixes, scores, logits)  # (N V) x (T + 1), (N V)
        ends = torch.full_like(scores, t == length, dtype=torch.bool)  # (N V)
        if stop_id is not None:
            ends |= prefixes[:, -1] == stop_id
        done += _listed(prefixes[ends], scores[ends])
        rows = (~ends).nonzero().squeeze(-1)  # N; those that go on
        if len(rows) == 0:
            break
        prefixes, scores = prefixes[rows], scores[rows]  # N x T, N
        logits, state = model.step(prefixes[:, -1], model.select(state, rows // size))  # N x V
    return sorted(done, key=lambda scored: (-scored.log_prob / len(scored.ids) ** length_power, scored.ids))


def _extended(prefixes: Tensor, scores: Tensor, logits: Tensor) -> tuple[Tensor, Tensor]:
    """Each prefix followed by each id, with the score of the whole; extension i comes of prefix i // V."""
    log_probs = logits.to("cpu", torch.float64).log_softmax(dim=-1)  # N x V
    size = log_probs.shape[-1]
    ids = torch.arange(size).repeat(len(prefixes)).unsqueeze(-1)  # (N V) x 1
    extended = torch.cat([prefixes.repeat_interleave(size, dim=0), ids], dim=-1)  # (N V) x (T + 1)
    return extended, (scores.unsqueeze(-1) + log_probs).flatten()  # (N V)


def _listed(prefixes: Tensor, scores: Tensor) -> list[Scored]:
    return [Scored(ids, score) for ids, score in zip(prefixes.tolist(), scores.tolist(), strict=True)]
