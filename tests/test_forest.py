"""Trees side by side by height."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elman.forest import Trees

SHAPES = st.recursive(st.just(()), lambda below: st.lists(below, min_size=1, max_size=3).map(tuple), max_leaves=8)


def flat(shape: tuple) -> tuple[list[int], list[int]]:  # type: ignore[type-arg]
    """Parents and heights of nested tuples, children first."""
    parents: list[int] = []
    heights: list[int] = []

    def add(node: tuple) -> int:  # type: ignore[type-arg]
        below = [add(child) for child in node]
        for child in below:
            parents[child] = len(parents)
        heights.append(1 + max((heights[child] for child in below), default=-1))
        parents.append(-1)
        return len(parents) - 1

    add(shape)
    return parents, heights


@given(shapes=st.lists(SHAPES, min_size=1, max_size=5))
def test_every_height_is_a_slice_and_children_stand_below(shapes: list) -> None:  # type: ignore[type-arg]
    found = [flat(shape) for shape in shapes]
    parents = [above for above, _ in found]
    trees = Trees.of(parents, [list(range(len(above))) for above in parents])
    heights = [height for _, each in found for height in each]
    assert trees.heights.tolist() == heights
    forest = trees.forest
    assert [heights[node] for node in forest.order] == sorted(heights)
    assert forest.order[forest.places].tolist() == list(range(len(heights)))
    for height, (first, behind) in enumerate(zip(forest.levels[:-1], forest.levels[1:], strict=True)):
        assert {heights[node] for node in forest.order[first:behind]} == {height}
        edges = slice(forest.edges[height], forest.edges[height + 1])
        assert all(first <= parent < behind for parent in forest.parents[edges])
        assert all(child < first for child in forest.children[edges])
    starts = np.repeat(trees.parents.starts, trees.lengths)
    edges_of_trees = {(node, int(above + starts[node])) for node, above in enumerate(trees.parents.data) if above >= 0}
    pairs = zip(forest.order[forest.children].tolist(), forest.order[forest.parents].tolist(), strict=True)
    assert set(pairs) == edges_of_trees


@given(shapes=st.lists(SHAPES, min_size=1, max_size=4))
def test_phrases_are_the_words_below(shapes: list) -> None:  # type: ignore[type-arg]
    parents = [flat(shape)[0] for shape in shapes]
    tokens = [[node if node not in above else -1 for node in range(len(above))] for above in parents]  # leaves alone
    trees = Trees.of(parents, tokens)
    for tree, root in enumerate(trees.roots.tolist()):
        words = [token for token in tokens[tree] if token >= 0]
        assert trees.phrases(np.array([root])).data.tolist() == words
    leaf = trees.phrases(np.flatnonzero(trees.tokens.data >= 0))
    assert set(leaf.lengths.tolist()) == {1}


def test_a_tree_may_be_very_deep() -> None:
    depth = 20_000  # each node the only child of the next
    trees = Trees.of([[*range(1, depth), -1]], [[0] * depth])
    assert trees.heights.tolist() == list(range(depth))
