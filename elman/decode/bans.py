"""Striking out what may not come next, in place, before the best continuations are looked for.

What is struck out gets minus infinity; the probabilities of the rest stay the model's own.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from elman.decode.candidates import Ints
from elman.decode.control import Control


class Bans:
    """Forced beginnings, forbidden phrases, no n-gram twice: for sentences that ask for these.

    >>> bans = Bans([Control(prefix=(2,)), Control(forbid=((0,), (1, 1)))], block_ngrams=0)
    >>> log_probs = torch.full((2, 3), 1 / 3).log()
    >>> bans.strike(log_probs, rows=np.array([0, 1]), history=np.empty((2, 0), dtype=np.int64))
    >>> log_probs.exp().round(decimals=2).tolist()
    [[0.0, 0.0, 0.33000001311302185], [0.0, 0.33000001311302185, 0.33000001311302185]]
    """

    def __init__(self, controls: Sequence[Control], block_ngrams: int) -> None:
        self.block_ngrams = block_ngrams
        self.prefixes = _padded([control.prefix for control in controls], fill=-1)  # R x P
        phrases = [(row, phrase) for row, control in enumerate(controls) for phrase in control.forbid]
        self.phrase_rows = np.array([row for row, _ in phrases], dtype=np.int64)  # F
        self.ends = np.array([phrase[-1] for _, phrase in phrases], dtype=np.int64)  # F
        # Aligned to the right, since they are compared with the last ids of a hypothesis.
        self.contexts = _padded([phrase[-2::-1] for _, phrase in phrases], fill=-1)[:, ::-1]  # F x W

    def strike(self, log_probs: Tensor, rows: Ints, history: Ints) -> None:
        """Strike ids out of `log_probs` (N x V), the hypotheses being of sentences `rows` (N) and `history` (N x t)."""
        struck = [self._forbidden(rows, history)] if len(self.ends) else []
        if self.block_ngrams:
            struck.append(repeated(history, self.block_ngrams))
        forced = self.forced(rows, history.shape[1])  # N
        for hypotheses, ids in struck:
            free = forced[hypotheses] < 0  # what a beginning holds is as the caller wants it
            log_probs[torch.from_numpy(hypotheses[free]), torch.from_numpy(ids[free])] = -torch.inf
        places = torch.from_numpy((forced >= 0).nonzero()[0])
        if len(places):
            tokens = torch.from_numpy(forced)[places]
            wanted = log_probs[places, tokens]
            log_probs[places] = -torch.inf
            log_probs[places, tokens] = wanted

    def forced(self, rows: Ints, written: int) -> Ints:
        """The id that the beginning of each hypothesis' sentence asks for next (N), -1 where it is free."""
        if written >= self.prefixes.shape[1]:
            return np.full(len(rows), -1)
        return np.asarray(self.prefixes[rows, written])

    def _forbidden(self, rows: Ints, history: Ints) -> tuple[Ints, Ints]:
        """The hypotheses that have all but the last id of a forbidden phrase at their end, and that last id."""
        width = self.contexts.shape[1]
        tail = np.concatenate([np.full((len(rows), width), -2), history], axis=1)[:, history.shape[1] :]  # N x W
        same = (tail[:, None] == self.contexts) | (self.contexts == -1)  # N x F x W
        hypotheses, phrases = (same.all(axis=2) & (rows[:, None] == self.phrase_rows)).nonzero()
        return hypotheses, self.ends[phrases]


def repeated(history: Ints, n: int) -> tuple[Ints, Ints]:
    """The ids that would make an n-gram of `history` (N x t) occur again: pairs of hypothesis and id.

    >>> [pairs.tolist() for pairs in repeated(np.array([[1, 2, 3, 1, 2]]), 3)]
    [[0], [3]]
    """
    places = history.shape[1] - n + 1
    if places < 1:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(history, n, axis=1)  # N x places x n
    last = history[:, history.shape[1] - n + 1 :]  # N x (n - 1)
    hypotheses, found = (windows[:, :, :-1] == last[:, None]).all(axis=2).nonzero()
    return hypotheses, windows[hypotheses, found, -1]


def _padded(phrases: Sequence[Sequence[int]], fill: int) -> Ints:
    table = np.full((len(phrases), max(map(len, phrases), default=0)), fill, dtype=np.int64)
    for place, phrase in enumerate(phrases):
        table[place, : len(phrase)] = phrase
    return table
