"""Beam search: many sentences, each with its hypotheses, as one batch.

Open hypotheses stand sentence by sentence in one row of the model's batch each. A step takes the best
continuations of each sentence; those that end in the stop id are finished and keep their place in the beam,
so that the batch shrinks as hypotheses are finished. A sentence leaves the batch when its beam is full of finished
ones (with `stop_at`, which puts them aside: when there are so many), at its limit of length, or as soon as nothing
that is open can still get among its n best. One hypothesis a sentence, of which nothing is asked, is left to the model
where it can follow it by itself.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from operator import index
from typing import Generic

import numpy as np

from elman.decode.beam import Beam
from elman.decode.candidates import Best, Layout, best
from elman.decode.constraints import BannedTokens, RequiredPhrases
from elman.decode.control import Control, check_control
from elman.decode.coverage import Coverage
from elman.decode.finished import Backpointers, Finished, NothingFound
from elman.decode.scores import Bools, Floats, Hypothesis, Ints, Logits, log_softmax, normalised
from elman.decode.step_model import Greedy, State, StepModel
from elman.decode.tree import SearchTree
from elman.errors import RunError, UserError

NOT_FINITE = "the model's logits are not finite numbers, so no best sequence can be found"


def beam_search(
    model: StepModel[State],
    rows: int,
    *,
    start_id: int,
    stop_id: int,
    beam: Beam,
    lengths: Sequence[int] | None = None,
    controls: Control | Sequence[Control] | None = None,
    source_lengths: Sequence[int] | None = None,
    tree: SearchTree | None = None,
) -> list[list[Hypothesis]]:
    """The `beam.n_best` best sequences that follow `start_id` in each of the model's first `rows` rows, best first.

    `lengths` gives each row a limit of its own in place of `beam.length`; `controls` what is asked of every
    row, or of each. `source_lengths` tells coverage how many places of a row's source are no padding. An empty
    `tree` is filled with what the search did. A row has fewer than `n_best` where there are no more to be found.

    >>> class Coin:  # id 0 ends; id 1 is three times as likely
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return np.log([[0.25, 0.75]] * len(ids)), None
    ...     def select(self, state, rows): return None
    >>> ((first, second),) = beam_search(Coin(), 1, start_id=0, stop_id=0, beam=Beam(size=2, length=3, n_best=2))
    >>> first.ids, round(first.log_prob, 3), round(first.score, 3), first.finished
    ([1, 1, 1], -0.863, -0.288, False)
    >>> second.ids, second.finished
    ([], True)
    """
    if index(rows) < 0:
        raise UserError(f"rows must be the number of the model's rows, 0 or more, not {rows}")
    if rows == 0:
        return []
    stop_id = index(stop_id)
    limits = _limits(beam, rows, lengths)
    controls = Control() if controls is None else controls
    asked = [controls] * rows if isinstance(controls, Control) else list(controls)
    if len(asked) != rows:
        raise UserError(f"controls must be one for all or one for each of the {rows} rows, not {len(asked)}")
    if source_lengths is not None and len(source_lengths) != rows:
        raise UserError(f"source_lengths must have one length for each of the {rows} rows, not {len(source_lengths)}")
    never = _never(beam, asked) if tree is None else None
    if never is not None and isinstance(model, Greedy):
        return _greedy(model, start_id, stop_id, beam, limits, asked, never)
    places = None if source_lengths is None else np.asarray(source_lengths)
    coverage = Coverage(model, beam.coverage, places) if beam.coverage else None
    return _Search(model, start_id, stop_id, beam, limits, asked, coverage, tree).run()


def _limits(beam: Beam, rows: int, lengths: Sequence[int] | None) -> Ints:
    """The greatest length of each row (R)."""
    if lengths is None:
        return np.full(rows, beam.length)
    if len(lengths) != rows:
        raise UserError(f"lengths must have one limit for each of the {rows} rows, not {len(lengths)}")
    for limit in {*lengths}:
        replace(beam, length=limit)  # refused as the beam's own length would be
    return np.asarray(lengths, dtype=np.int64)


def _check(beam: Beam, limits: Ints, controls: Sequence[Control], stop_id: int, size: int) -> None:
    """Refuse what the vocabulary's size makes impossible."""
    if beam.size > size:
        raise UserError(f"a beam of {beam.size} is larger than the vocabulary of {size}: take a smaller one")
    if not 0 <= stop_id < size:
        raise UserError(f"the stop id must lie in 0 to {size - 1}, the vocabulary, not {stop_id}")
    for row, control in enumerate(controls):
        if not control.free:
            check_control(control, row=row, limit=int(limits[row]), size=size, stop_id=stop_id)


def _never(beam: Beam, controls: Sequence[Control]) -> set[int] | None:
    """The ids that no row may have where nothing else is asked and one hypothesis is followed; else None."""
    first, *others = controls
    plain = beam.size == 1 and not (beam.coverage or beam.block_ngrams or beam.stop_at)
    if not plain or first.prefix or first.require or any(other != first for other in others):
        return None
    return {phrase[0] for phrase in first.forbid} if all(len(phrase) == 1 for phrase in first.forbid) else None


def _greedy(
    model: Greedy,
    start_id: int,
    stop_id: int,
    beam: Beam,
    limits: Ints,
    controls: Sequence[Control],
    never: set[int],
) -> list[list[Hypothesis]]:
    """What the search finds with one hypothesis, by a model that goes all the way itself."""
    _check(beam, limits, controls, stop_id, model.vocabulary)
    forbidden = np.array(sorted(never), dtype=np.int64)
    ids, log_probs, finished = model.greedy(start_id, stop_id, limits=limits, shortest=beam.min_length, never=forbidden)
    if np.isnan(log_probs).any():
        raise RunError(NOT_FINITE)
    if not np.isfinite(log_probs).all():
        raise NothingFound(int(np.isfinite(log_probs).argmin()))
    scores = normalised(log_probs, ids.lengths + finished, beam.length_power)
    rows = zip(ids, log_probs.tolist(), scores.tolist(), finished.tolist(), strict=True)
    return [[Hypothesis(written.tolist(), log_prob, score, ended)] for written, log_prob, score, ended in rows]


class _Search(Generic[State]):
    """One search. B sentences are still searched, N hypotheses open, N at most B times K, the beam's size."""

    def __init__(
        self,
        model: StepModel[State],
        start_id: int,
        stop_id: int,
        beam: Beam,
        limits: Ints,
        controls: list[Control],
        coverage: Coverage | None,
        tree: SearchTree | None,
    ) -> None:
        self.model, self.stop_id, self.beam = model, stop_id, beam
        self.coverage, self.tree = coverage, tree
        rows = len(limits)
        self.limits, self.soonest = limits, int(limits.min())  # R
        self.controls = controls  # R
        self.active = np.arange(rows)  # B; the sentences that are still searched
        self.layout = Layout.of(np.ones(rows, dtype=np.int64), beam.size)
        self.running = np.zeros(rows)  # N; log-probabilities so far
        self.tokens = np.full(rows, start_id)  # N; what the model reads next
        self.backpointers, self.finished = Backpointers(), Finished(rows, beam.n_best)
        free = not beam.block_ngrams and all(control.free for control in controls)
        self.banned = None if free else BannedTokens(controls, beam.block_ngrams)
        self.required = RequiredPhrases(controls) if any(control.require for control in controls) else None
        self.history = np.empty((rows, 0), dtype=np.int64)  # N x t; kept up only for what needs it
        self.memory: Logits | None = None  # at least N x V
        self.nodes = self._roots()  # N; places in the tree

    def run(self) -> list[list[Hypothesis]]:
        """Search to the end."""
        state = self.model.start(len(self.active))
        for step in count(1):
            logits, state = self.model.step(self.tokens, state)  # N x V
            if step == 1:
                _check(self.beam, self.limits, self.controls, self.stop_id, logits.shape[-1])
            if self.coverage:
                self.coverage.read(state)
            found, progress = self._continuations(logits, step)  # B x K
            live, over = self._settle(found, step)  # B x K; B
            if np.count_nonzero(over) == len(over):
                break
            parents = self._go_on(found, progress, live, over, step)  # N
            if parents is not None:
                state = self.model.select(state, parents)
        return self.finished.hypotheses(self.backpointers)

    def _continuations(self, logits: Logits, step: int) -> tuple[Best, Ints | None]:
        """The best continuations of each sentence (B x K), with their progress in required phrases (B x K x C)."""
        log_probs = self._log_probs(logits)  # N x V
        if step < self.beam.min_length:
            log_probs[:, self.stop_id] = -np.inf
        progress = None
        if self.banned is not None:
            rows = self.active[self.layout.row]  # N
            self.banned.strike(log_probs, rows, self.history)
            if self.required is not None:
                forced = self.banned.forced(rows, step - 1) >= 0  # N
                left = self.limits[rows] - step  # N
                found, progress = self.required.best(
                    log_probs, self.running, self.layout, rows, left, forced, self.stop_id
                )
        if progress is None:
            found = best(log_probs, self.running, self.layout)
        if math.isnan(found.log_probs.sum()):
            raise RunError(NOT_FINITE)
        return found, progress

    def _log_probs(self, logits: Logits) -> Logits:
        """The logarithm of the softmax (N x V), in memory of the search's own, where ids can be banned."""
        if self.memory is None or len(self.memory) < len(logits):  # fresh memory costs as much as a third of this
            self.memory = np.empty(logits.shape, np.result_type(logits.dtype, np.float32))
        return log_softmax(logits, out=self.memory[: len(logits)])

    def _settle(self, found: Best, step: int) -> tuple[Bools, Bools]:
        """Take out what has ended; which continuations stay open (B x K), and which sentences are over (B)."""
        live = found.log_probs > -np.inf  # B x K
        if self.finished.some and self.beam.stop_at is None:
            free = self.beam.size - self.finished.counts[self.active]  # B; places that finished ones have not taken
            live &= np.arange(self.beam.size) < free[:, None]
        stopped = live & (found.tokens == self.stop_id)  # B x K
        if np.count_nonzero(stopped):
            live &= ~stopped
            self._end(found, stopped, step, finished=True)
        over = np.zeros(len(live), dtype=bool)  # B
        if step >= self.soonest:
            over = self.limits[self.active] == step
            self._end(found, live & over[:, None], step, finished=False)
        if np.count_nonzero(live) == live.size:
            return live, over  # every place of every beam is open
        # Nothing open can end above its hope: log-probabilities only fall, count least when divided by the greatest
        # length, and coverage is at most 0.
        open_best = np.where(live, found.log_probs, -np.inf).max(axis=1)  # B
        hope = normalised(open_best, self.limits[self.active], self.beam.length_power)  # B
        over |= hope <= self.finished.threshold[self.active]
        if self.beam.stop_at is not None:
            over |= self.finished.counts[self.active] >= self.beam.stop_at
        return live, over

    def _end(self, found: Best, which: Bools, step: int, finished: bool) -> None:
        """Make some continuations (B x K, true or false) results of the search."""
        place, slot = which.nonzero()  # M
        rows, parents, tokens = self.active[place], found.parents[place, slot], found.tokens[place, slot]
        log_probs = found.log_probs[place, slot]  # M
        scores = normalised(log_probs, step, self.beam.length_power)  # M
        if self.coverage:
            scores = scores + self.coverage.penalties(parents, rows)
        self.finished.add(step, rows, parents, None if finished else tokens, log_probs, scores)
        self._grow(step, rows, parents, tokens, log_probs, scores, "finished" if finished else "cut")

    def _go_on(self, found: Best, progress: Ints | None, live: Bools, over: Bools, step: int) -> Ints | None:
        """Make the open continuations the hypotheses of the next step; which rows of the state they go on from.

        None where every row goes on as it is.
        """
        before = len(self.running)
        if np.count_nonzero(over):
            live = live & ~over[:, None]
            self.active = self.active[~over]
        kept = live.ravel().nonzero()[0]  # N
        parents, self.tokens = found.parents.take(kept), found.tokens.take(kept)  # N
        self.running = found.log_probs.take(kept)  # N
        if not before == len(kept) == live.size:  # else the beams were full and are still
            self.layout = Layout.of(live.sum(axis=1)[~over], self.beam.size)
        self.backpointers.add(parents, self.tokens)
        if self.required is not None and progress is not None:
            self.required.progress = progress.reshape(live.size, -1)[kept]
        if self.banned is not None:
            self.history = np.concatenate([self.history[parents], self.tokens[:, None]], axis=1)
        if self.tree is not None:
            scores = normalised(self.running, step, self.beam.length_power)
            rows = self.active[self.layout.row]
            self.nodes = self._grow(step, rows, parents, self.tokens, self.running, scores, "dropped")
        if len(parents) == before == np.count_nonzero(parents == np.arange(before)):
            return None
        if self.coverage:
            self.coverage.select(parents)
        return parents

    def _roots(self) -> list[int]:
        if self.tree is None:
            return []
        rows, zeros = self.active.tolist(), self.running.tolist()
        return self.tree.grow(0, rows, None, self.tokens.tolist(), zeros, zeros, "dropped")

    def _grow(
        self, step: int, rows: Ints, parents: Ints, tokens: Ints, log_probs: Floats, scores: Floats, fate: str
    ) -> list[int]:
        if self.tree is None:
            return []
        above = [self.nodes[parent] for parent in parents.tolist()]
        numbers = (rows.tolist(), above, tokens.tolist(), log_probs.tolist(), scores.tolist())
        return self.tree.grow(step, *numbers, fate)
