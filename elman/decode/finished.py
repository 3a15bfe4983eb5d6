"""The hypotheses of a search that are finished: how good an open one must be to matter, and how ids are read back."""

import numpy as np

from elman.decode.scores import Floats, Hypothesis, Ints
from elman.errors import UserError


class Backpointers:
    """For each step, which hypothesis of the step before each one continues, and by which id.

    >>> backpointers = Backpointers()
    >>> backpointers.add(np.array([0, 0]), np.array([7, 8]))  # two continue hypothesis 0, by 7 and by 8
    >>> backpointers.add(np.array([1]), np.array([9]))
    >>> backpointers.read(np.array([2, 1]), np.array([0, 0]))
    [[8, 9], [7]]
    """

    def __init__(self) -> None:
        self.parents: list[Ints] = []
        self.tokens: list[Ints] = []

    def add(self, parents: Ints, tokens: Ints) -> None:
        """Add one step."""
        self.parents.append(parents)
        self.tokens.append(tokens)

    def read(self, steps: Ints, places: Ints) -> list[list[int]]:
        """The ids up to each of some hypotheses, told by their step (from 1; 0 is the start) and place in it."""
        ids = np.zeros((len(steps), len(self.tokens)), dtype=np.int64)  # M x T
        places = places.copy()  # M
        for step in range(int(steps.max(initial=0)), 0, -1):
            here = steps >= step  # M
            ids[here, step - 1] = self.tokens[step - 1][places[here]]
            places[here] = self.parents[step - 1][places[here]]
        return [row[:step].tolist() for row, step in zip(ids, steps.tolist(), strict=True)]


class NothingFound(UserError):
    """No hypothesis of sentence `row`, from 0, keeps to all that is asked of it."""

    def __init__(self, row: int) -> None:
        super().__init__(
            f"sentence {row + 1} has no sequence in the beam that keeps to all that is asked of "
            "it: ask for less, or give it a greater length or a larger beam"
        )
        self.row = row


class Finished:
    """The finished hypotheses of R sentences, `counts` (R) of them, and those that the limit of length has cut.

    A hypothesis that does not score above its sentence's threshold cannot be among the n best.

    >>> finished = Finished(rows=1, n_best=1)
    >>> finished.add(1, np.array([0]), np.array([0]), None, np.array([-2.0]), np.array([-2.0]))
    >>> finished.counts.tolist(), finished.threshold.tolist()
    ([1], [-2.0])
    >>> finished.hypotheses(Backpointers())
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
        """Take in hypotheses (M) of step `step`, each continuing one of the step before.

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

    def hypotheses(self, backpointers: Backpointers) -> list[list[Hypothesis]]:
        """The n best of each sentence, best first; the earliest of equals."""
        rows, steps, parents, last, log_probs, scores = map(np.concatenate, zip(*self.parts, strict=True))
        order = np.lexsort((-scores, rows))  # M; sentence by sentence, best first
        counts = np.bincount(rows, minlength=len(self.counts))  # R
        if not counts.all():
            raise NothingFound(int(counts.argmin()))
        rank = np.arange(len(order)) - (counts.cumsum() - counts)[rows[order]]  # M
        chosen = order[rank < self.best.shape[1]]
        found: list[list[Hypothesis]] = [[] for _ in self.counts]
        texts = backpointers.read(steps[chosen] - 1, parents[chosen])
        for place, ids in zip(chosen.tolist(), texts, strict=True):
            finished = bool(last[place] < 0)
            ids = ids if finished else [*ids, int(last[place])]
            found[rows[place]].append(Hypothesis(ids, float(log_probs[place]), float(scores[place]), finished))
        return found
