"""What is asked of a sequence, kept to step by step: banned tokens and required phrases.

What may not come next gets minus infinity, in place; the probabilities of the rest stay the model's own.
"""

from collections.abc import Sequence

import numpy as np

from elman.decode.candidates import Best, Layout, top_ids
from elman.decode.control import Control, Phrase
from elman.decode.scores import Bools, Floats, Ints, Logits


class BannedTokens:
    """Forced beginnings, forbidden phrases, no n-gram twice: for sentences that ask for these.

    >>> banned = BannedTokens([Control(prefix=(2,)), Control(forbid=((0,), (1, 1)))], block_ngrams=0)
    >>> log_probs = np.log(np.full((2, 3), 1 / 3))
    >>> banned.strike(log_probs, rows=np.array([0, 1]), history=np.empty((2, 0), dtype=np.int64))
    >>> np.exp(log_probs).round(2).tolist()
    [[0.0, 0.0, 0.33], [0.0, 0.33, 0.33]]
    """

    def __init__(self, controls: Sequence[Control], block_ngrams: int) -> None:
        self.block_ngrams = block_ngrams
        self.prefixes = _padded([control.prefix for control in controls], fill=-1)  # R x P
        phrases = [(row, phrase) for row, control in enumerate(controls) for phrase in control.forbid]
        self.phrase_rows = np.array([row for row, _ in phrases], dtype=np.int64)  # F
        self.ends = np.array([phrase[-1] for _, phrase in phrases], dtype=np.int64)  # F
        # Aligned to the right, since they are compared with the last ids of a hypothesis.
        self.contexts = _padded([phrase[-2::-1] for _, phrase in phrases], fill=-1)[:, ::-1]  # F x W

    def strike(self, log_probs: Logits, rows: Ints, history: Ints) -> None:
        """Strike ids out of `log_probs` (N x V), the hypotheses being of sentences `rows` (N) and `history` (N x t)."""
        struck = [self._forbidden(rows, history)] if len(self.ends) else []
        if self.block_ngrams:
            struck.append(repeated(history, self.block_ngrams))
        forced = self.forced(rows, history.shape[1])  # N
        for hypotheses, ids in struck:
            free = forced[hypotheses] < 0  # a forced beginning may hold what is banned elsewhere
            log_probs[hypotheses[free], ids[free]] = -np.inf
        places = (forced >= 0).nonzero()[0]
        if len(places):
            tokens = forced[places]
            wanted = log_probs[places, tokens]
            log_probs[places] = -np.inf
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


class RequiredPhrases:
    """The required phrases of all sentences (R), and how far each open hypothesis (N) has come with each (C).

    They are met by dynamic beam allocation (Post and Vilar 2018), vectorised as in Hu et al. (2019): a sentence's beam
    is divided among *banks*, of which bank n holds hypotheses that have n of the required ids. Each step takes the best
    of every bank, the fullest bank first, then the second best, and so on until the beam is full, so hypotheses with
    more of the phrases are never crowded out by likelier ones with fewer.

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
        self, log_probs: Logits, running: Floats, layout: Layout, rows: Ints, left: Ints, forced: Bools, stop_id: int
    ) -> tuple[Best, Ints]:
        """The continuations (B x K) by dynamic beam allocation, and their progress (B x K x C).

        `rows` (N) are the sentences of the hypotheses; `left` (N) how many ids may come after the next one;
        `forced` (N) is true where the next id is given, so that nothing can be done about time running out.
        """
        unmet = self._needs(self.progress, rows) > 0  # N
        log_probs[unmet, stop_id] = -np.inf
        scores, tokens = self._continued(log_probs, layout.size, rows)  # N x M
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

    def _continued(self, log_probs: Logits, size: int, rows: Ints) -> tuple[Floats, Ints]:
        """Each hypothesis with its K likeliest next ids and the next id of each phrase (N x (K + C)), none twice."""
        likely = top_ids(log_probs, size)  # N x K
        nexts = np.take_along_axis(self.ids[rows], self.progress[:, :, None], axis=2)[:, :, 0]  # N x C
        tokens = np.concatenate([likely, nexts], axis=1)  # N x M
        scores = np.take_along_axis(log_probs, tokens.clip(min=0), axis=1).astype(np.float64)  # N x M
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
