"""Phrases that must appear: dynamic beam allocation (Post and Vilar 2018), vectorised as in Hu et al. (2019).

A sentence's beam is divided among *banks*: bank n holds hypotheses that have n of the required ids. Each step
takes the best of every bank, the fullest bank first, then the second best, and so on until the beam is full,
so hypotheses with more of the phrases are never crowded out by likelier ones with fewer.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from elman.decode.candidates import Best, Bools, Floats, Ints, Layout
from elman.decode.control import Control, Phrase


class Required:
    """The required phrases of all sentences (R), and how far each open hypothesis (N) has come with each (C).

    A hypothesis' progress with a phrase is the number of the phrase's ids that it ends with, in the manner of
    Knuth, Morris and Pratt; the whole phrase, once it was there, for good.
    """

    def __init__(self, controls: Sequence[Control]) -> None:
        needed = [control.needed for control in controls]
        most = max(map(len, needed))
        longest = max(len(phrase) for phrases in needed for phrase in phrases)
        self.ids = np.full((len(controls), most, longest + 1), -1)  # R x C x (L + 1); ends in -1
        self.lengths = np.zeros((len(controls), most), dtype=np.int64)  # R x C
        # borders[r, c, p, q]: after p ids of the phrase the next may be its id number q, all before it being there
        self.borders = np.zeros((len(controls), most, longest + 1, longest), dtype=bool)
        for row, phrases in enumerate(needed):
            for place, phrase in enumerate(phrases):
                self.ids[row, place, : len(phrase)] = phrase
                self.lengths[row, place] = len(phrase)
                self.borders[row, place, : len(phrase), : len(phrase)] = _borders(phrase)
        self.progress = np.zeros((len(controls), most), dtype=np.int64)  # N x C; at first N is R

    def best(
        self, log_probs: Tensor, running: Floats, layout: Layout, rows: Ints, left: Ints, forced: Bools, stop_id: int
    ) -> tuple[Best, Ints]:
        """The continuations (B x K) by dynamic beam allocation, and their progress (B x K x C).

        `rows` (N) are the sentences of the hypotheses; `left` (N) how many ids may come after the next one;
        `forced` (N) is true where the next id is given, so that nothing can be done about time running out.
        """
        unmet = self._needs(self.progress, rows) > 0  # N
        log_probs[torch.from_numpy(unmet), stop_id] = -torch.inf
        scores, tokens = self._continued(log_probs.cpu(), layout.size, rows)  # N x M
        progress = self._after(tokens, rows)  # N x M x C
        needs = self._needs(progress, rows[:, None])  # N x M
        scores = scores + running[:, None]  # N x M
        scores[(needs > left[:, None]) & ~forced[:, None]] = -np.inf  # too late to bring the rest in
        banks = self.lengths.sum(axis=1)[rows][:, None] - needs  # N x M
        table = layout.table(scores)  # B x (K M)
        chosen = _allocated(table, layout.table(banks.astype(np.float64)), layout.size)  # B x K
        width = scores.shape[1]
        parents = (chosen // width + layout.first[:, None]).clip(max=len(rows) - 1)  # B x K
        places = chosen % width  # B x K
        top = np.take_along_axis(table, chosen, axis=1)  # B x K
        return Best(top, parents, tokens[parents, places]), progress[parents, places]

    def _continued(self, log_probs: Tensor, size: int, rows: Ints) -> tuple[Floats, Ints]:
        """Each hypothesis with its K likeliest next ids and the next id of each phrase (N x (K + C)), none twice."""
        top, likely = log_probs.topk(size)  # N x K
        nexts = np.take_along_axis(self.ids[rows], self.progress[:, :, None], axis=2)[:, :, 0]  # N x C
        tokens = np.concatenate([likely.numpy(), nexts], axis=1)  # N x M
        wanted = log_probs.gather(1, torch.from_numpy(nexts.clip(min=0)))  # N x C
        scores = torch.cat([top, wanted], dim=1).double().numpy()  # N x M
        same = tokens[:, :, None] == tokens[:, None, :]  # N x M x M
        before = np.tri(tokens.shape[1], k=-1, dtype=bool)  # M x M
        scores[(same & before).any(axis=2) | (tokens < 0)] = -np.inf
        return scores, tokens

    def _after(self, tokens: Ints, rows: Ints) -> Ints:
        """The progress with each phrase (N x M x C) once a hypothesis is continued by one of `tokens` (N x M)."""
        borders = np.take_along_axis(self.borders[rows], self.progress[:, :, None, None], axis=2)  # N x C x 1 x L
        fits = tokens[:, :, None, None] == self.ids[rows][:, None, :, :-1]  # N x M x C x L
        places = np.arange(1, fits.shape[-1] + 1)  # L
        reached = (places * (fits & borders[:, None, :, 0])).max(axis=-1)  # N x M x C
        done = self.progress == self.lengths[rows]  # N x C
        return np.where(done[:, None], self.progress[:, None], reached)

    def _needs(self, progress: Ints, rows: Ints) -> Ints:
        """How many ids it takes to complete all phrases, the one that has come farthest first."""
        lengths = self.lengths[rows]  # ... x C
        open_ = progress < lengths
        return np.asarray((lengths * open_).sum(axis=-1) - (progress * open_).max(axis=-1))


def _borders(phrase: Phrase) -> list[list[bool]]:
    """Entry p, q: whether the first q ids of `phrase` are also the last q of its first p."""
    return [[q <= p and phrase[:q] == phrase[p - q : p] for q in range(len(phrase))] for p in range(len(phrase))]


def _allocated(scores: Floats, banks: Floats, size: int) -> Ints:
    """Which `size` candidates of each sentence (B x P) are kept: the best of each bank, then the second best, ..."""
    by_score = np.argsort(-scores, axis=1, kind="stable")  # B x P
    by_bank = np.take_along_axis(
        by_score, np.argsort(np.take_along_axis(banks, by_score, axis=1), axis=1, kind="stable"), axis=1
    )  # B x P; bank by bank, best first
    sorted_banks = np.take_along_axis(banks, by_bank, axis=1)
    places = np.arange(scores.shape[1])  # P
    opens = np.ones_like(sorted_banks, dtype=bool)  # B x P; where a bank begins
    opens[:, 1:] = sorted_banks[:, 1:] != sorted_banks[:, :-1]
    rank = places - np.maximum.accumulate(np.where(opens, places, 0), axis=1)  # B x P
    none = np.take_along_axis(scores, by_bank, axis=1) == -np.inf
    order = np.lexsort((-sorted_banks, np.where(none, len(places), rank)), axis=1)[:, :size]  # B x K
    return np.take_along_axis(by_bank, order, axis=1)
