"""A tree with the label of every phrase: where the label turns, and which phrases the root's label hangs on.

found = labelled_tree(elman.load("runs/sst-tree"), "It's not a bad film.")
found.nodes[-1].label, [node.text for node in found.nodes if node.turns]
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from elman.draw.panels import Node, Panel, Table, Tree
from elman.errors import UserError
from elman.forest import NONE
from elman.inspect.view import AnyModel, View
from elman.records.places import Place
from elman.records.treebank import LabelledTree
from elman.tasks.tree import SENTIMENT, TreeModel
from elman.text.settings import UNK

POLES = {"negative": -1, "positive": 1, **{grade: (place > 2) - (place < 2) for place, grade in enumerate(SENTIMENT)}}
"""Which side a label of sentiment stands on."""
LARGEST = 600  # nodes of a tree, about 300 words: N trees of N nodes are computed, and drawn nobody could read more
SHOWN = 8  # phrases in the table, at most
LEAST = 0.5  # of what the first step down costs: as long as a step costs so much, the path goes on


@dataclass(frozen=True)
class PhraseNode:
    """A node of the tree; nodes stand children first, and the root last."""

    id: int
    parent: int | None
    text: str
    """The words below it."""
    word: str | None
    """Its own word, None where it has none."""
    label: str
    probability: float
    probabilities: dict[str, float]
    turns: bool
    """Whether its label stands on the other side than that of a child: where there are no sides, is no child's."""
    change: float
    """Of the probability of the root's label, where an unknown word stands in the place of this phrase."""
    decides: bool
    """Whether it is on the path that the root's label hangs on."""


@dataclass(frozen=True)
class LabelledPhrases:
    """A tree, its label, and that of all phrases in it."""

    label: str
    probability: float
    nodes: list[PhraseNode]


def labelled_tree(model: TreeModel, text: str | LabelledTree, number: int = 1) -> LabelledPhrases:
    """What a model says to a text, to a bracketed tree, or to a tree as it was read, node by node.

    `number` is that of a text among others, for messages.
    """
    if isinstance(text, str):
        text = model._reader().question(Place("the texts", number), text.strip(), {})
    (tree,) = model.prepared([text])
    if len(tree.parents) > LARGEST:
        raise UserError(
            f"the tree has {len(tree.parents):,} nodes, each of which is taken away once: give a text or a tree of at "
            f"most {LARGEST}"
        )
    table = model.scores([tree])[0]  # N x C
    best = table.argmax(axis=1)
    labels = [model.labels[place] for place in best.tolist()]
    children, count = tree.children(), len(tree.parents)
    cut = [_without(tree, node) for node in range(count)]
    changes = [float(rows[-1, best[-1]] - table[-1, best[-1]]) for rows in model.scores(cut)]
    path = _path(children, changes)
    spans = _spans(tree, children)
    nodes = [
        PhraseNode(
            node,
            None if tree.parents[node] < 0 else tree.parents[node],
            " ".join(tree.tokens[place] for place in spans[node]),
            None if tree.words[node] < 0 else tree.tokens[tree.words[node]],
            labels[node],
            float(table[node, best[node]]),
            dict(zip(model.labels, table[node].tolist(), strict=True)),
            _turns(labels[node], [labels[child] for child in children[node]]),
            changes[node],
            node in path,
        )
        for node in range(count)
    ]
    return LabelledPhrases(labels[-1], nodes[-1].probability, nodes)


def _without(tree: LabelledTree, node: int) -> LabelledTree:
    """The tree with an unknown word in the place of a subtree, which stands in a row before its root."""
    below = tree.children()
    first, waiting = node, [node]
    while waiting:
        first = min(first, (one := waiting.pop()))
        waiting += below[one]
    removed = node - first
    parents = [*tree.parents[:first], *tree.parents[node:]]
    parents = [parent - removed if parent >= node else parent for parent in parents]
    words = [*tree.words[:first], len(tree.tokens), *tree.words[node + 1 :]]
    return replace(
        tree, tokens=(*tree.tokens, UNK), parents=tuple(parents), words=tuple(words), labels=(None,) * len(words)
    )


def _path(children: list[list[int]], changes: list[float]) -> set[int]:
    """From the root to the child whose loss costs most, and on, as long as that costs at least half as much."""
    node, path = len(children) - 1, {len(children) - 1}
    least = None
    while children[node]:
        node = min(children[node], key=lambda child: changes[child])
        least = LEAST * changes[node] if least is None else least
        if changes[node] >= 0 or changes[node] > least:
            break
        path.add(node)
    return path


def _spans(tree: LabelledTree, children: list[list[int]]) -> list[list[int]]:
    """The places of the words below each node, in the order of the text."""
    found: list[list[int]] = []
    for word, below in zip(tree.words, children, strict=True):
        found.append(sorted([place for child in below for place in found[child]] + [word] * (word != NONE)))
    return found


def _turns(label: str, below: list[str]) -> bool:
    if all(name in POLES for name in (label, *below)):
        return any(POLES[name] * POLES[label] < 0 for name in below)
    return bool(below) and label not in below


class PhrasesView(View[LabelledPhrases]):
    """The labels of all phrases of a tree."""

    name = "tree"
    about = "the label of every phrase, where it turns, and the phrases that decide"
    record = LabelledTree

    def compute(self, model: AnyModel, texts: Sequence[str | LabelledTree], options: object) -> list[LabelledPhrases]:
        assert isinstance(model, TreeModel)
        return [labelled_tree(model, text, number) for number, text in enumerate(texts, 1)]

    def panels(self, data: LabelledPhrases) -> list[Panel]:
        poles = [*data.nodes[-1].probabilities]
        sides = all(label in POLES for label in poles)
        change = f"change of {data.label}"
        nodes = [
            Node(
                node.id,
                node.parent,
                " ".join([node.label, f"{node.probability:.2f}", *([node.word] if node.word else [])]),
                _tone(node, sides),
                _state(node),
                ({} if node.text == node.word else {"phrase": node.text}) | {change: f"{node.change:+.3f}"},
            )
            for node in _from_the_root(data.nodes)
        ]
        worth = sorted((node for node in data.nodes[:-1] if node.change < 0), key=lambda node: node.change)
        rows = [[node.text, node.label, f"{node.probability:.3f}", f"{node.change:+.3f}"] for node in worth[:SHOWN]]
        count = f" ({SHOWN} of {len(worth)})" if len(worth) > SHOWN else ""
        turns = "is on another side than one below it" if sides else "is none of those right below it"
        told = f"Decides: the path that the root's label hangs on. Turns: the label {turns}."
        lost = f"The last column is how the probability of {data.label} at the root changes without the phrase."
        title = f"label {data.label} ({data.probability:.3f})"
        return [
            Tree(title, nodes, note=told, scale="diverging" if sides else "sequential"),
            Table(
                f"what each phrase is worth{count}",
                ["phrase", "label", "probability", change],
                rows,
                note=lost,
            ),
        ]


def _tone(node: PhraseNode, sides: bool) -> float:
    """From -1 (negative) to 1, by the mean side of its probabilities; where there are no sides, how sure it is."""
    if not sides:
        return node.probability
    largest = 2 if "0" in node.probabilities else 1
    weights = {label: (int(label) - 2) if label in SENTIMENT else POLES[label] for label in node.probabilities}
    return float(np.clip(sum(p * weights[label] for label, p in node.probabilities.items()) / largest, -1, 1))


def _state(node: PhraseNode) -> str:
    return " and ".join(["turns"] * node.turns + ["decides"] * node.decides)


def _from_the_root(nodes: Sequence[PhraseNode]) -> list[PhraseNode]:
    """Parents before their children, from left to right."""
    below: dict[int | None, list[PhraseNode]] = {}
    for node in nodes:
        below.setdefault(node.parent, []).append(node)
    found, waiting = list[PhraseNode](), below[None]
    while waiting:
        found.append(waiting.pop())
        waiting += reversed(below.get(found[-1].id, []))
    return found
