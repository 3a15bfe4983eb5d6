"""How a text without a tree gets one: right-branching, balanced, or by a small shift-reduce parser; no PyTorch.

A binary tree is the row of actions that builds it: a shift makes the next word a leaf and puts it on a stack, a reduce
joins the two topmost trees of the stack. In post-order, in which nodes are numbered, each action makes the next node.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elman.forest import NONE
from elman.ragged import Ints
from elman.runtime.quantise import Arrays, dequantise
from elman.runtime.weights import Shapes

SHIFT, REDUCE = 0, 1
WORDS, LENGTHS = 9, 2
"""What the parser looks at: words of the three topmost trees and the next three, and how long two of the trees are."""
LONG = 6  # lengths of trees from 0 to 5 are told apart, and more is as 5


class Shape(NamedTuple):
    """The parent of each node (-1 for the root), and the place of its word in the text (-1 for none)."""

    parents: list[int]
    words: list[int]


def shape_of(actions: Sequence[int]) -> Shape:
    """The tree that actions build.

    >>> shape_of([SHIFT, SHIFT, REDUCE, SHIFT, REDUCE])
    Shape(parents=[2, 2, 4, 4, -1], words=[0, 1, -1, 2, -1])
    """
    parents, words, stack, shifted = list[int](), list[int](), list[int](), 0
    for action in actions:
        if action == REDUCE:
            parents[stack.pop()] = parents[stack.pop()] = len(parents)
            words.append(NONE)
        else:
            words.append(shifted)
            shifted += 1
        stack.append(len(parents))
        parents.append(NONE)
    return Shape(parents, words)


def right_branching(words: int) -> Shape:
    """Each word beside all that follows it.

    >>> right_branching(3).parents
    [4, 3, 3, 4, -1]
    """
    return shape_of([SHIFT] * words + [REDUCE] * (words - 1))


def balanced(words: int) -> Shape:
    """Halves of halves.

    >>> balanced(4).parents
    [2, 2, 6, 5, 5, 6, -1]
    """

    def actions(count: int) -> list[int]:
        return [SHIFT] if count == 1 else [*actions(count - count // 2), *actions(count // 2), REDUCE]

    return shape_of(actions(words))


def right_branching_heads(words: int) -> Shape:
    """A dependency tree: each word is the head of the one that follows it.

    >>> right_branching_heads(3)
    Shape(parents=[1, 2, -1], words=[2, 1, 0])
    """
    return Shape([*range(1, words), NONE], list(range(words))[::-1])


def balanced_heads(words: int) -> Shape:
    """A dependency tree: the word in the middle is the head of those in the middle of both sides, and so on.

    >>> balanced_heads(3)
    Shape(parents=[2, 2, -1], words=[0, 2, 1])
    """
    parents, places = list[int](), list[int]()

    def build(first: int, behind: int) -> int:
        middle = (first + behind) // 2
        below = [build(*side) for side in ((first, middle), (middle + 1, behind)) if side[0] < side[1]]
        for child in below:
            parents[child] = len(parents)
        parents.append(NONE)
        places.append(middle)
        return len(parents) - 1

    build(0, words)
    return Shape(parents, places)


SHAPES: dict[str, tuple[Callable[[int], Shape], Callable[[int], Shape]]] = {
    "right": (right_branching, right_branching_heads),
    "balanced": (balanced, balanced_heads),
}
"""Trees that follow from the number of words alone, by name: of constituents, and of dependencies."""


def view(stack: Sequence[tuple[int, int]], shifted: int, words: int) -> list[int]:
    """What the parser looks at: places of nine words, -1 for none, and two lengths.

    `stack` has the first word of each tree and the one behind its last.

    >>> view([(0, 2), (2, 3)], shifted=3, words=5)
    [2, 2, 0, 1, -1, -1, 3, 4, -1, 1, 2]
    """
    found = list[int]()
    for depth in (1, 2, 3):
        first, behind = stack[-depth] if depth <= len(stack) else (NONE, 0)
        found += [first, behind - 1]
    found += [place if place < words else NONE for place in range(shifted, shifted + 3)]
    for depth in (1, 2):
        first, behind = stack[-depth] if depth <= len(stack) else (0, 0)
        found.append(min(behind - first, LONG - 1))
    return found


def oracle(words: Sequence[int]) -> tuple[list[list[int]], list[int]]:
    """What the parser should learn of a binary tree in post-order: each view, and the action that is right there.

    >>> views, actions = oracle([0, 1, -1])
    >>> actions, [seen[6] for seen in views]
    ([0, 0, 1], [0, 1, -1])
    """
    stack, shifted, count = list[tuple[int, int]](), 0, sum(word >= 0 for word in words)
    views, actions = list[list[int]](), list[int]()
    for word in words:
        views.append(view(stack, shifted, count))
        actions.append(SHIFT if word >= 0 else REDUCE)
        shifted = _act(stack, shifted, actions[-1])
    return views, actions


def _act(stack: list[tuple[int, int]], shifted: int, action: int) -> int:
    """Do an action; how many words are shifted then."""
    if action == REDUCE:
        _, behind = stack.pop()
        stack.append((stack.pop()[0], behind))
        return shifted
    stack.append((shifted, shifted + 1))
    return shifted + 1


def features(views: NDArray[np.int64], ids: NDArray[np.int64], vocabulary: int) -> Ints:
    """Views (K x 11) of one text as rows of the parser's table: ids of words, then one for none, then the lengths."""
    words, lengths = views[:, :WORDS], views[:, WORDS:]
    return np.concatenate(
        [np.where(words >= 0, ids[words], vocabulary), vocabulary + 1 + lengths + LONG * np.arange(LENGTHS)], axis=1
    )


class ShiftReduce:
    """The greedy parser: a layer over the vectors of what it looks at says whether to shift or to reduce.

    s = v' relu(W [e_1; ...; e_11] + b) + c, and it reduces where s is above 0.
    """

    def __init__(self, weights: Arrays, vocabulary: int) -> None:
        found = dequantise({name: array for name, array in weights.items() if name.startswith("parser.")})
        self.vectors, self.vocabulary = found["parser.embedding.weight"], vocabulary
        self.hidden = np.ascontiguousarray(found["parser.hidden.weight"].T), found["parser.hidden.bias"]
        self.output = found["parser.output.weight"][0], found["parser.output.bias"]

    @staticmethod
    def shapes(vocabulary: int, embedding: int, hidden: int) -> Shapes:
        """Of its weights, by name."""
        return {
            "parser.embedding.weight": (vocabulary + 1 + LENGTHS * LONG, embedding),
            "parser.hidden.weight": (hidden, (WORDS + LENGTHS) * embedding),
            "parser.hidden.bias": (hidden,),
            "parser.output.weight": (1, hidden),
            "parser.output.bias": (1,),
        }

    def scores(self, rows: Ints) -> NDArray[np.float32]:
        """How much speaks for a reduce (K)."""
        x = self.vectors[rows].reshape(len(rows), -1)  # K x 11E
        h = np.maximum(x @ self.hidden[0] + self.hidden[1], 0)
        return np.asarray(h @ self.output[0] + self.output[1], np.float32)

    def __call__(self, texts: Sequence[Ints]) -> list[Shape]:
        """The trees of texts that are ids of words, all of them a step at a time."""
        stacks: list[list[tuple[int, int]]] = [[] for _ in texts]
        shifted, actions = [0] * len(texts), [list[int]() for _ in texts]
        going = list(range(len(texts)))
        while going:
            views = [view(stacks[place], shifted[place], len(texts[place])) for place in going]
            rows = [
                features(np.array([seen]), texts[place], self.vocabulary)
                for seen, place in zip(views, going, strict=True)
            ]
            scores = self.scores(np.concatenate(rows))
            for place, score in zip(going, scores.tolist(), strict=True):
                done, stack = shifted[place] == len(texts[place]), stacks[place]
                action = REDUCE if done or (len(stack) > 1 and score > 0) else SHIFT
                shifted[place] = _act(stack, shifted[place], action)
                actions[place].append(action)
            going = [place for place in going if shifted[place] < len(texts[place]) or len(stacks[place]) > 1]
        return list(map(shape_of, actions))
