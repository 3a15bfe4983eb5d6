"""Trees of different shape side by side, by height: what `ragged.py` is for sequences.

The nodes of a tree are numbered so that children stand before their parents, each subtree in a row (post-order); its
root is the last. A `Forest` puts the nodes of all trees into one order, the leaves of all trees first, then all nodes
just above them, and so on: a network goes through it height by height, however many trees there are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elman.ragged import Ints, Ragged

NONE = -1
"""The parent of a root; the token of a node that has none."""


@dataclass(frozen=True, eq=False)
class Trees:
    """B trees of N nodes in all, tree after tree.

         4
        / \\          parents  2 2 4 4 -1
       2   3         tokens   7 8 -1 9 -1
      / \\  9
     7   8

    >>> trees = Trees.of([[2, 2, 4, 4, -1], [-1]], [[7, 8, -1, 9, -1], [5]])
    >>> trees.heights.tolist(), trees.lengths.tolist(), trees.take(np.array([1])).tokens.data.tolist()
    ([0, 0, 1, 0, 2, 0], [5, 1], [5])
    """

    parents: Ragged
    """Of each node, by its number in the tree; `NONE` for the root."""
    tokens: Ragged
    """The id at each node, `NONE` where it has no word."""
    heights: Ints
    """N: 0 for a leaf, else one more than the highest child's."""

    @classmethod
    def of(cls, parents: Sequence[Any], tokens: Sequence[Any]) -> "Trees":
        """Trees that are at hand one by one; there has to be at least one."""
        above, ids = Ragged.of(parents), Ragged.of(tokens)
        return cls(above, ids, _heights(_among_all(above)))

    def __len__(self) -> int:
        return len(self.parents)

    @property
    def lengths(self) -> Ints:
        """B: how many nodes each has."""
        return self.parents.lengths

    @property
    def roots(self) -> Ints:
        """B: the number of each root among all nodes."""
        return self.parents.starts + self.lengths - 1

    def take(self, places: Ints) -> "Trees":
        """Some of the trees, in that order."""
        heights = self.parents.with_data(self.heights).take(places).data
        return Trees(self.parents.take(places), self.tokens.take(places), heights)

    @cached_property
    def spans(self) -> tuple[Ints, Ints]:
        """N each: the first of the words below a node, itself included, and the one behind the last.

        Words are counted over all trees, in the order of the nodes.

        >>> [place.tolist() for place in Trees.of([[2, 2, 4, 4, -1]], [[7, 8, -1, 9, -1]]).spans]
        [[0, 1, 0, 2, 0], [1, 2, 2, 3, 3]]
        """
        above = _among_all(self.parents)
        words = (self.tokens.data >= 0).astype(np.int64)
        behind: Ints = np.cumsum(words)
        first: Ints = behind - words
        order = np.argsort(self.heights, kind="stable")
        inner = order[above[order] >= 0]
        ends = np.searchsorted(self.heights[inner], np.arange(self.heights.max(initial=0) + 2))
        for low, high in pairwise(ends):  # children before their parents
            np.minimum.at(first, above[inner[low:high]], first[inner[low:high]])
        return first, behind

    def phrases(self, nodes: Ints) -> Ragged:
        """The words below some nodes, by their numbers among all, as sequences of ids.

        >>> Trees.of([[2, 2, 4, 4, -1]], [[7, 8, -1, 9, -1]]).phrases(np.array([2, 3])).data.tolist()
        [7, 8, 9]
        """
        first, behind = (ends[nodes] for ends in self.spans)
        lengths = behind - first
        words = self.tokens.data[self.tokens.data >= 0]
        inside = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Ragged(words[np.repeat(first, lengths) + inside], lengths)

    @cached_property
    def forest(self) -> "Forest":
        """The nodes of all trees by height."""
        above = _among_all(self.parents)
        order = np.argsort(self.heights, kind="stable")
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        below = np.flatnonzero(above >= 0)  # every node but the roots is a child
        parents = places[above[below]]
        by_parent = np.argsort(parents, kind="stable")  # from left to right: children are numbered so
        parents = parents[by_parent]
        levels = np.searchsorted(self.heights[order], np.arange(self.heights.max() + 2))
        return Forest(
            order,
            places,
            self.tokens.data[order],
            levels.tolist(),
            places[below[by_parent]],
            parents,
            np.searchsorted(parents, levels).tolist(),
        )


@dataclass(frozen=True, eq=False)
class Forest:
    """The N nodes of some trees by height, with the E edges from parents to children.

    >>> forest = Trees.of([[2, 2, 4, 4, -1], [-1]], [[7, 8, -1, 9, -1], [5]]).forest
    >>> forest.tokens.tolist(), forest.levels, forest.children.tolist(), forest.parents.tolist()
    ([7, 8, 9, 5, -1, -1], [0, 4, 5, 6], [0, 1, 4, 2], [4, 4, 5, 5])
    """

    order: Ints
    """N: which node of the trees stands at each place."""
    places: Ints
    """N: the other way round, where each node of the trees stands."""
    tokens: Ints
    """N: the id at each place, `NONE` where there is none."""
    levels: list[int]
    """Where each height begins among the places; N at the end."""
    children: Ints
    """E: the places of children, those of one parent side by side, from left to right."""
    parents: Ints
    """E: the place of the parent of each."""
    edges: list[int]
    """Where the children of each height's nodes begin; E at the end."""

    @property
    def leaves(self) -> int:
        """How many nodes have no children: these stand first."""
        return self.levels[1]

    @cached_property
    def above(self) -> "list[Level]":
        """The heights above the leaves, from below.

        >>> forest = Trees.of([[2, 2, 4, 4, -1], [-1]], [[7, 8, -1, 9, -1], [5]]).forest
        >>> [(level.inner, level.children.tolist(), level.parents.tolist()) for level in forest.above]
        [(slice(0, 1, None), [0, 1], [0, 0]), (slice(1, 2, None), [4, 2], [0, 0])]
        """
        starts = zip(pairwise(self.levels[1:]), pairwise(self.edges[1:]), strict=True)
        return [
            Level(
                slice(first, behind),
                slice(first - self.leaves, behind - self.leaves),
                slice(low, high),
                self.children[low:high],
                self.parents[low:high] - first,
            )
            for (first, behind), (low, high) in starts
        ]

    @property
    def is_binary(self) -> bool:
        """Whether every node has two children or none."""
        inner = len(self.order) - self.leaves
        return len(self.children) == 2 * inner and bool((self.parents[::2] == self.parents[1::2]).all())


class Level(NamedTuple):
    """The nodes of one height above the leaves."""

    nodes: slice
    """Their places."""
    inner: slice
    """The same among the nodes that have children."""
    edges: slice
    """Those to their children."""
    children: Ints
    """The places of these, one for each edge."""
    parents: Ints
    """Which of the height's nodes each belongs to."""


def _among_all(parents: Ragged) -> Ints:
    """The parents of nodes by their numbers among those of all trees."""
    shifted = parents.data + np.repeat(parents.starts, parents.lengths)
    return np.where(parents.data < 0, NONE, shifted)


def _heights(above: NDArray[Any]) -> Ints:
    """Of nodes whose parents are numbers among all: leaf by leaf upwards, all trees at once."""
    heights = np.zeros(len(above), np.int64)
    missing = np.bincount(above[above >= 0], minlength=len(above))  # children whose height is not known yet
    reached, height = np.flatnonzero(missing == 0), 0
    while len(reached):
        heights[reached] = height
        parents, counts = np.unique(above[reached][above[reached] >= 0], return_counts=True)
        missing[parents] -= counts
        reached, height = parents[missing[parents] == 0], height + 1
    return heights
