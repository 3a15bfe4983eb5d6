"""The best continuations of each sentence's hypotheses: the one part of a beam step that touches the vocabulary."""

from typing import NamedTuple

import numpy as np

from elman import kernels
from elman.decode.scores import Floats, Ints, Logits

FEW = 2**18
"""Scores that are not worth a second thread."""


class Layout(NamedTuple):
    """Where the N open hypotheses stand: sentence by sentence, up to `size` (K) of them each.

    >>> Layout.of(np.array([2, 1]), size=2).cells.tolist()
    [0, 1, 2]
    >>> Layout.of(np.array([1, 2]), size=2).cells.tolist()
    [0, 2, 3]
    """

    rows: int  # B
    size: int  # K
    first: Ints  # B; the first hypothesis of each sentence
    row: Ints  # N; the sentence of each hypothesis
    cells: Ints  # N; its place in a table of B x K

    @staticmethod
    def of(counts: Ints, size: int) -> "Layout":
        """The layout of `counts` (B) hypotheses a sentence, none of them zero."""
        first = counts.cumsum() - counts  # B
        row = np.arange(len(counts)).repeat(counts)  # N
        cells = np.arange(len(row)) - first[row] + row * size  # N
        return Layout(len(counts), size, first, row, cells)

    def table(self, values: Floats) -> Floats:
        """`values` (N x M) as B x (K M), with minus infinity where a sentence has fewer than K hypotheses."""
        if len(self.cells) == self.rows * self.size:
            return values.reshape(self.rows, -1)
        table = np.full((self.rows * self.size, values.shape[1]), -np.inf)  # (B K) x M
        table[self.cells] = values
        return table.reshape(self.rows, -1)


class Best(NamedTuple):
    """The best continuations of each sentence (B x K), best first; those that are none have minus infinity."""

    log_probs: Floats
    parents: Ints  # which hypothesis, 0 to N - 1, is continued
    tokens: Ints


def best(log_probs: Logits, running: Floats, layout: Layout) -> Best:
    """The K best of all continuations of each sentence, given log p of the next ids (N x V) and so far (N).

    >>> layout = Layout.of(np.array([2]), size=2)
    >>> found = best(np.log([[0.4, 0.6], [0.1, 0.9]]), np.log([0.5, 0.5]), layout)
    >>> np.exp(found.log_probs).round(2).tolist(), found.parents.tolist(), found.tokens.tolist()
    ([[0.45, 0.3]], [[1, 0]], [[1, 1]])
    """
    if kernels.available() and log_probs.dtype == np.float32:
        first = np.append(layout.first, len(running))  # B + 1
        threads = kernels.threads() if log_probs.size > FEW else 1
        return Best(*kernels.native.best_continuations(log_probs, running, first, layout.size, threads))
    scores = log_probs + running[:, None]  # N x V
    table = layout.table(scores)  # B x (K V)
    places = top_ids(table, layout.size)  # B x K
    slots, tokens = np.divmod(places, scores.shape[1])  # B x K
    # A place without a hypothesis has minus infinity; its parent is named all the same and must exist.
    parents = np.minimum(slots + layout.first[:, None], len(scores) - 1)
    return Best(np.take_along_axis(table, places, axis=1), parents, tokens)


def top_ids(scores: Logits, count: int) -> Ints:
    """The places of the `count` greatest scores of each row, the greatest first; what is no number counts as greatest.

    >>> top_ids(np.array([[3.0, 1.0, 2.0]]), 2).tolist()
    [[0, 2]]
    """
    found = np.argpartition(scores, -count, axis=1)[:, -count:]  # N x K
    found.sort(axis=1)
    order = np.argsort(-np.take_along_axis(scores, found, axis=1), axis=1, kind="stable")
    return np.take_along_axis(found, order, axis=1)
