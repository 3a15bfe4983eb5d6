"""Word vectors: the network of word2vec, and the tables that it is trained by.

Words that stand near each other are to have a large product of vectors. At a place of a text with the word w, the words
c around it (x_c is a row of `vectors`, y_w one of `output`) are to tell w from others:

    skip-gram                 h = x_c, for each c on its own
    CBOW                      h = mean of x_c over all c
    full softmax              loss = -log exp(h y_w) / sum over v of exp(h y_v)
    negative sampling         loss = -log σ(h y_w) - sum over drawn v of log σ(-h y_v)
    hierarchical softmax      loss = -sum over the nodes n above w of log σ(±h y_n)

(Mikolov, Chen, Corrado, Dean 2013; Mikolov, Sutskever, Chen, Corrado, Dean 2013.) With n-grams a word is x_c = sum of
the rows of its n-grams and its own, by the root of their number (after Bojanowski, Grave, Joulin, Mikolov 2017).
"""

import heapq
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import log_softmax, logsigmoid

LANES = 16
"""Rows are padded to a multiple of so many numbers, which is a cache line."""
WHOLE = 2**32 - 1
"""A chance of one, as the kernel has it."""


class VectorNetwork(nn.Module):
    """Vectors of words (and n-grams), and the output vectors that they are trained against.

    >>> network = VectorNetwork(rows=5, outputs=4, size=3)
    >>> network.vectors.shape, network.padded[0].shape
    (torch.Size([5, 3]), torch.Size([5, 16]))
    """

    def __init__(self, rows: int, outputs: int, size: int) -> None:
        super().__init__()
        width = -(-size // LANES) * LANES
        self.padded = [torch.zeros(count, width) for count in (rows, outputs)]
        """What the kernel works on; the parameters are the first columns of it."""
        self.vectors = nn.Parameter(self.padded[0][:, :size])
        self.output = nn.Parameter(self.padded[1][:, :size])
        nn.init.uniform_(self.vectors, -0.5 / size, 0.5 / size)

    def softmax_loss(self, hidden: Tensor, words: Tensor) -> Tensor:
        """The summed loss of a full softmax: hidden vectors (N x E) and the right words (N)."""
        return -log_softmax(hidden @ self.output.T, dim=1).gather(1, words[:, None]).sum()

    def logistic_loss(self, hidden: Tensor, outputs: Tensor, labels: Tensor) -> Tensor:
        """The summed loss of negative sampling, or of a way down a tree: N x E, ids N x K, 1 or 0 for each (N x K)."""
        scores = torch.einsum("ne,nke->nk", hidden, self.output[outputs])  # N x K
        return -logsigmoid(scores * (2 * labels - 1)).sum()


def keep_chances(counts: NDArray[np.int64], sample: float) -> NDArray[np.float64]:
    """The chance that a word of a text is kept: frequent ones are left out often; 0 keeps all.

    That of word2vec: sqrt(t/f) + t/f, where f is the share of the word in the text.

    >>> keep_chances(np.array([900, 99, 1]), 0.01).round(3).tolist()
    [0.117, 0.419, 1.0]
    """
    share = counts / max(int(counts.sum()), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        chances = np.sqrt(sample / share) + sample / share
    return np.where((share > 0) & (sample > 0), np.minimum(chances, 1.0), 1.0)


def noise_shares(counts: NDArray[np.int64], power: float) -> NDArray[np.float64]:
    """How often each word is drawn as a negative one: by its count to a power, 0.75 in word2vec.

    >>> noise_shares(np.array([16, 1]), 0.75).round(3).tolist()
    [0.889, 0.111]
    """
    weights = np.maximum(counts, 1).astype(np.float64) ** power
    return weights / weights.sum()  # type: ignore[no-any-return]


class Alias(NamedTuple):
    """A distribution that is drawn from in one step: entry i stands for itself with a chance, else for its alias."""

    chance: NDArray[np.float64]
    alias: NDArray[np.int32]


def alias_table(shares: NDArray[np.float64]) -> Alias:
    """The alias method (Walker 1974; Vose 1991).

    >>> chance, alias = alias_table(np.array([0.5, 0.25, 0.25]))
    >>> [float(chance[i] + (1 - chance)[alias == i].sum() - (1 - chance[i]) * (alias[i] == i)) / 3 for i in range(3)]
    [0.5, 0.25, 0.25]
    """
    size = len(shares)
    chance, alias = shares * size, np.arange(size, dtype=np.int32)
    small, large = (list(np.flatnonzero(part)[::-1]) for part in (chance < 1, chance >= 1))
    while small and large:
        low, high = small.pop(), large[-1]
        alias[low] = high
        chance[high] -= 1 - chance[low]
        if chance[high] < 1:
            small.append(large.pop())
    chance[small + large] = 1.0  # what rounding left over
    return Alias(chance, alias)


class HuffmanTree(NamedTuple):
    """The inner nodes above each word, from the root, in one list; `codes` are 1 where the way goes right."""

    places: NDArray[np.int64]
    nodes: NDArray[np.int32]
    codes: NDArray[np.int8]


def huffman_tree(counts: NDArray[np.int64]) -> HuffmanTree:
    """The binary tree in which frequent words stand near the root (Huffman 1952).

    >>> from itertools import pairwise
    >>> tree = huffman_tree(np.array([5, 2, 1]))
    >>> [tree.codes[a:b].tolist() for a, b in pairwise(tree.places)]
    [[1], [0, 1], [0, 0]]
    """
    size = len(counts)
    parent, right = np.zeros(2 * size - 1, np.int64), np.zeros(2 * size - 1, np.int8)
    heap = [(int(count), word) for word, count in enumerate(counts)]
    heapq.heapify(heap)
    for node in range(size, 2 * size - 1):
        (least, one), (more, other) = heapq.heappop(heap), heapq.heappop(heap)
        parent[one] = parent[other] = node
        right[other] = 1
        heapq.heappush(heap, (least + more, node))
    ways: list[list[tuple[int, int]]] = []
    for word in range(size):
        way, node = [], word
        while node != 2 * size - 2:
            way.append((int(parent[node]) - size, int(right[node])))
            node = int(parent[node])
        ways.append(way[::-1])
    places = np.concatenate([[0], np.cumsum([len(way) for way in ways])]).astype(np.int64)
    flat = np.array([step for way in ways for step in way], np.int64).reshape(-1, 2)
    return HuffmanTree(places, flat[:, 0].astype(np.int32), flat[:, 1].astype(np.int8))
