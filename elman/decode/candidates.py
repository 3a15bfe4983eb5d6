"""The best continuations of each sentence's hypotheses: the one part of a beam step that touches the vocabulary.

Sorting K x V scores a sentence is what makes a step slow. So the scores are looked at in blocks: the k best
scores lie in the k blocks with the greatest maxima, and only those are sorted.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

BLOCK = 64  # ids; finding maxima costs V, sorting costs V / BLOCK + K * BLOCK
_WITHIN = np.arange(BLOCK)


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


def best(log_probs: Tensor, running: Floats, layout: Layout) -> Best:
    """The K best of all continuations of each sentence, given log p of the next ids (N x V) and so far (N).

    >>> layout = Layout.of(np.array([2]), size=2)
    >>> found = best(torch.tensor([[0.4, 0.6], [0.1, 0.9]]).log(), np.log([0.5, 0.5]), layout)
    >>> np.exp(found.log_probs).round(2).tolist(), found.parents.tolist(), found.tokens.tolist()
    ([[0.45, 0.3]], [[1, 0]], [[1, 1]])
    """
    so_far = running[:, None]  # N x 1
    if log_probs.shape[1] < 4 * BLOCK:
        return Best(*_top(log_probs.cpu().numpy() + so_far, layout))
    tops, parents, blocks = _top(_block_maxima(log_probs).cpu().numpy() + so_far, layout)  # B x K
    return _inside(log_probs, running, tops, parents, blocks)


def _top(scores: Floats, layout: Layout) -> tuple[Floats, Ints, Ints]:
    """The K best of `scores` (N x M) for each sentence (B x K), with their hypotheses and columns."""
    top, places = _greatest(layout.table(scores), layout.size)  # B x K
    slots, columns = np.divmod(places, scores.shape[1])  # B x K
    # A place without a hypothesis has minus infinity; its parent is named all the same and must exist.
    parents = np.minimum(slots + layout.first[:, None], len(scores) - 1)  # B x K
    return top, parents, columns


def _greatest(scores: Floats, k: int) -> tuple[Floats, Ints]:
    """The `k` greatest in each row of `scores` (B x M) and their places, the greatest first."""
    top, places = torch.from_numpy(scores).topk(k)  # B x k
    return top.numpy(), places.numpy()


def _block_maxima(log_probs: Tensor) -> Tensor:
    """The greatest of each block of ids (N x V / BLOCK, the last one being what is left)."""
    whole = log_probs.shape[1] // BLOCK * BLOCK
    blocks = log_probs[:, :whole].view(len(log_probs), -1, BLOCK)  # N x V / BLOCK x BLOCK
    if whole == log_probs.shape[1]:
        return blocks.amax(dim=2)  # N x V / BLOCK
    return torch.cat([blocks.amax(dim=2), log_probs[:, whole:].amax(dim=1, keepdim=True)], dim=1)


def _inside(log_probs: Tensor, running: Floats, tops: Floats, parents: Ints, blocks: Ints) -> Best:
    """The K best continuations of each sentence within its K best blocks (B x K)."""
    size, width = log_probs.shape[1], blocks.shape[1] * BLOCK
    ids = blocks[:, :, None] * BLOCK + _WITHIN  # B x K x BLOCK
    places = ids + (parents * size)[:, :, None]  # B x K x BLOCK
    # A block that is none adds minus infinity.
    so_far = np.where(tops == -np.inf, -np.inf, running.take(parents))[:, :, None]  # B x K x 1
    if size % BLOCK:  # the last block reaches beyond the vocabulary
        so_far = np.where(ids < size, so_far, -np.inf)  # B x K x BLOCK
        places = np.minimum(places, log_probs.numel() - 1)
    scores = _picked(log_probs, places) + so_far  # B x K x BLOCK
    top, where = _greatest(scores.reshape(-1, width), blocks.shape[1])  # B x K
    where = where + (np.arange(len(ids)) * width)[:, None]  # B x K; in all of `ids`
    return Best(top, parents.take(where // BLOCK), ids.take(where))


def _picked(log_probs: Tensor, places: Ints) -> Floats:
    if log_probs.device.type == "cpu":
        return np.asarray(log_probs.view(-1).numpy().take(places))
    return log_probs.view(-1)[torch.from_numpy(places).to(log_probs.device)].cpu().numpy()
