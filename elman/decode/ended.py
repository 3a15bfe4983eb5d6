"""The hypotheses of a search that have ended, and how good an open one must be to matter."""

import numpy as np

from elman.decode.candidates import Floats, Ints
from elman.decode.hypothesis import Hypothesis
from elman.decode.trace import Trace
from elman.errors import UserError


class NothingFound(UserError):
    """No hypothesis of sentence `row`, from 0, keeps to all that is asked of it."""

    def __init__(self, row: int) -> None:
        super().__init__(
            f"sentence {row + 1} has no sequence in the beam that keeps to all that is asked of "
            "it: ask for less, or give it a greater length or a larger beam"
        )
        self.row = row


class Ended:
    """What was set aside, for all R sentences: `counts` (R) of finished ones, `threshold` (R) for the n best.

    A hypothesis that does not score above its sentence's threshold cannot be among the n best.

    >>> ended = Ended(rows=1, n_best=1)
    >>> ended.add(1, np.array([0]), np.array([0]), None, np.array([-2.0]), np.array([-2.0]))
    >>> ended.counts.tolist(), ended.threshold.tolist()
    ([1], [-2.0])
    >>> ended.hypotheses(Trace())
    [[Hypothesis(ids=[], log_prob=-2.0, score=-2.0, finished=True)]]
    """

    def __init__(self, rows: int, n_best: int) -> None:
        self.some = False  # whether any is finished
        self.counts = np.zeros(rows, dtype=np.int64)  # R
        self.best = np.full((rows, n_best), -np.inf)  # R x n_best; the best scores so far, rising
        none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
        # sentence, step, hypothesis continued, last id (-1: the stop id), log-probability, score
        self.parts: list[tuple[Ints, Ints, Ints, Ints, Floats, Floats]] = [(none, none, none, none, nothing, nothing)]

    @property
    def threshold(self) -> Floats:
        """The n-th best score of each sentence (R); minus infinity before there are so many."""
        return self.best[:, 0]

    def add(self, step: int, rows: Ints, parents: Ints, tokens: Ints | None, log_probs: Floats, scores: Floats) -> None:
        """Set hypotheses (M) of step `step` aside, each continuing one of the step before.

        They continue it by `tokens`, or, with None, by the stop id, and are finished.
        """
        last = np.full(len(rows), -1) if tokens is None else tokens
        self.parts.append((rows, np.full(len(rows), step), parents, last, log_probs, scores))
        if tokens is None:
            self._rank(rows, scores)

    def _rank(self, rows: Ints, scores: Floats) -> None:
        new = np.bincount(rows, minlength=len(self.counts))  # R
        slots = np.arange(len(rows)) - (new.cumsum() - new)[rows]  # M; rows come in order
        table = np.full((len(self.counts), int(new.max(initial=0))), -np.inf)  # R x most
        table[rows, slots] = scores
        self.some = True
        self.counts += new
        ranked = np.sort(np.concatenate([self.best, table], axis=1), axis=1)
        self.best = ranked[:, -self.best.shape[1] :]

    def hypotheses(self, trace: Trace) -> list[list[Hypothesis]]:
        """The n best of each sentence, best first; the one that ended first among equals."""
        rows, steps, parents, last, log_probs, scores = map(np.concatenate, zip(*self.parts, strict=True))
        order = np.lexsort((-scores, rows))  # M; sentence by sentence, best first
        counts = np.bincount(rows, minlength=len(self.counts))  # R
        if not counts.all():
            raise NothingFound(int(counts.argmin()))
        rank = np.arange(len(order)) - (counts.cumsum() - counts)[rows[order]]  # M
        chosen = order[rank < self.best.shape[1]]
        found: list[list[Hypothesis]] = [[] for _ in self.counts]
        texts = trace.read(steps[chosen] - 1, parents[chosen])
        for place, ids in zip(chosen.tolist(), texts, strict=True):
            finished = bool(last[place] < 0)
            ids = ids if finished else [*ids, int(last[place])]
            found[rows[place]].append(Hypothesis(ids, float(log_probs[place]), float(scores[place]), finished))
        return found
