"""Scoring sequences: given ones (forced decoding), or all there are, which shows how good a search is."""

from collections.abc import Sequence
from operator import index
from typing import NamedTuple

import numpy as np

from elman.decode.scores import Floats, Ints, Logits, log_softmax
from elman.decode.step_model import State, StepModel
from elman.errors import UserError


def forced_log_probs(
    model: StepModel[State], texts: Sequence[Sequence[int]], *, start_id: int, stop_id: int | None = None
) -> list[float]:
    """The log-probability of each of `texts` after `start_id`, text i in row i of the model.

    With a `stop_id` each text also has to end there. This is how another model scores what a search has found:
    the channel's log p(x | y), a language model's log p(y).

    >>> class Coin:
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return np.log([[0.25, 0.75]] * len(ids)), None
    ...     def select(self, state, rows): return None
    >>> [round(log_prob, 3) for log_prob in forced_log_probs(Coin(), [[1, 1], []], start_id=0, stop_id=0)]
    [-1.962, -1.386]
    """
    ending = [] if stop_id is None else [stop_id]
    wanted = [[index(id_) for id_ in (*text, *ending)] for text in texts]
    totals = np.zeros(len(texts))  # B
    if not wanted:
        return []
    rows = list(range(len(wanted)))
    state, before = model.start(len(wanted)), np.full(len(wanted), start_id)
    for t in range(max(map(len, wanted))):
        places = [place for place, row in enumerate(rows) if len(wanted[row]) > t]
        if len(places) < len(rows):
            picked = np.array(places)
            rows, state, before = [rows[place] for place in places], model.select(state, picked), before[picked]
        logits, state = model.step(before, state)  # B x V
        before = np.array([wanted[row][t] for row in rows])  # B
        if not 0 <= int(before.min()) <= int(before.max()) < logits.shape[-1]:
            raise UserError(f"an id of the texts is outside the vocabulary of 0 to {logits.shape[-1] - 1}")
        totals[rows] += log_softmax(logits.astype(np.float64))[np.arange(len(rows)), before]
    return [float(total) for total in totals]


class Scored(NamedTuple):
    """A sequence and the natural logarithm of its probability."""

    ids: list[int]
    log_prob: float


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
    of ids, the stop id counted, to the power of `length_power`. There are V**length sequences, so this is for tiny
    vocabularies and lengths. `row` is the one to look at of a model whose
    rows are different sentences.

    >>> class Coin:  # id 1 is three times as likely as id 0
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return np.log([[0.25, 0.75]] * len(ids)), None
    ...     def select(self, state, rows): return None
    >>> [(ids, round(log_prob, 3)) for ids, log_prob in exhaustive(Coin(), start_id=0, length=2)]
    [([1, 1], -0.575), ([0, 1], -1.674), ([1, 0], -1.674), ([0, 0], -2.773)]
    """
    length, limit = index(length), index(limit)
    if length < 1:
        raise UserError(f"length must be the number of ids of a sequence, 1 or more, not {length}")
    state = model.select(model.start(row + 1), np.array([row])) if row else model.start(1)
    logits, state = model.step(np.array([start_id]), state)  # 1 x V
    size = logits.shape[-1]
    if stop_id is not None and not 0 <= index(stop_id) < size:
        raise UserError(f"stop_id must be one of the {size} ids, from 0 to {size - 1}, not {stop_id}")
    if size**length > limit:
        raise UserError(
            f"{size} ids at {length} places make {size} to the power of {length} sequences, more than the limit of "
            f"{limit:,}: take a shorter length or a smaller vocabulary"
        )
    prefixes, scores = np.zeros((1, 0), np.int64), np.zeros(1)  # N x T, N
    done: list[Scored] = []
    for t in range(1, length + 1):
        prefixes, scores = _extended(prefixes, scores, logits)  # (N V) x (T + 1), (N V)
        ends = np.full(len(scores), t == length)  # (N V)
        if stop_id is not None:
            ends |= prefixes[:, -1] == stop_id
        done += _listed(prefixes[ends], scores[ends])
        rows = (~ends).nonzero()[0]  # N; those that go on
        if len(rows) == 0:
            break
        prefixes, scores = prefixes[rows], scores[rows]  # N x T, N
        logits, state = model.step(prefixes[:, -1], model.select(state, rows // size))  # N x V
    return sorted(done, key=lambda scored: (-scored.log_prob / len(scored.ids) ** length_power, scored.ids))


def _extended(prefixes: Ints, scores: Floats, logits: Logits) -> tuple[Ints, Floats]:
    """Each prefix followed by each id, with the score of the whole; extension i comes of prefix i // V."""
    log_probs = log_softmax(logits.astype(np.float64))  # N x V
    size = log_probs.shape[-1]
    ids = np.tile(np.arange(size), len(prefixes))[:, None]  # (N V) x 1
    extended = np.concatenate([prefixes.repeat(size, axis=0), ids], axis=1)  # (N V) x (T + 1)
    return extended, (scores[:, None] + log_probs).ravel()  # (N V)


def _listed(prefixes: Ints, scores: Floats) -> list[Scored]:
    return [Scored(ids, score) for ids, score in zip(prefixes.tolist(), scores.tolist(), strict=True)]
