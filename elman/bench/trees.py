"""Networks over trees that learn, beside the same as one writes them in plain PyTorch: a function that calls itself.

Both compute the loss at every node of a batch and all gradients, with the same weights, of the same random trees; the
optimizer's step, which would be the same, is left out. A batch has new trees each time: putting them side by side is
part of what is timed.
"""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear

from elman.bench import machine
from elman.bench.machine import Follow, interleave
from elman.forest import Trees
from elman.nn.embedding import Embedding
from elman.nn.trees import TREE_CELLS, TreeNetwork
from elman.records.treebank import flattened, trees_of
from elman.records.trees import Tree

PLAIN, ELMAN = "PyTorch, recursive", "Elman"
WORDS, CLASSES, SEED = 10_000, 5, 1
SIZES = (4, 35)
"""Words of a sentence, as many of each: about 19 in the mean, as in the Stanford Sentiment Treebank."""


@dataclass(frozen=True)
class TreeCase:
    """A network, its size, and how many trees are learned from at a time."""

    network: str
    hidden: int
    batch: int


CASES = (
    TreeCase("recursive", 100, 25),
    TreeCase("rntn", 30, 25),
    TreeCase("rntn", 30, 100),
    TreeCase("tree-lstm", 100, 25),
    TreeCase("tree-lstm", 150, 25),
    TreeCase("tree-lstm", 150, 100),
    TreeCase("child-sum", 150, 25),
)


@dataclass(frozen=True)
class TreeRow:
    """What was measured for one of them."""

    case: TreeCase
    nodes: int
    nodes_per_second: dict[str, float]

    @property
    def ratio(self) -> float:
        """How many times as fast as the function that calls itself."""
        return self.nodes_per_second[ELMAN] / self.nodes_per_second[PLAIN]


@dataclass(frozen=True)
class TreesReport:
    """All rows of one run."""

    facts: dict[str, Any]
    rows: list[TreeRow]

    def record(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        rows = [asdict(row.case) | {"nodes": row.nodes, "nodes_per_second": row.nodes_per_second} for row in self.rows]
        return {
            "machine": self.facts,
            "rows": [{**one, "ratio": row.ratio} for one, row in zip(rows, self.rows, strict=True)],
        }


def run(
    *, quick: bool = False, seconds: float | None = None, threads: int | None = None, follow: Follow | None = None
) -> TreesReport:
    """Measure each network, about `seconds` on each (10; 3 where quick)."""
    budget = seconds if seconds is not None else 3.0 if quick else 10.0
    with machine.using_threads(threads):
        return TreesReport(machine.facts(), machine.all_rows(list(CASES), lambda case: measure(case, budget), follow))


def measure(case: TreeCase, seconds: float) -> TreeRow:
    """Time one network, each way of learning in turn."""
    nodes, ways = learners_of(case)
    best = interleave(list(ways.values()), seconds, rounds=2)
    return TreeRow(case, nodes, {who: nodes / took for who, took in zip(ways, best, strict=True)})


def learners_of(case: TreeCase) -> tuple[int, dict[str, Callable[[], float]]]:
    """How many nodes a batch has, and each way to make its gradients; both give the loss."""
    generator = random.Random(SEED)
    nested = [random_tree(generator.randint(*SIZES), generator) for _ in range(case.batch)]
    records = [flattened(tree) for tree in nested]
    trees = trees_of(records, [np.array([int(word) for word in record.tokens]) for record in records])
    labels = torch.tensor([int(label or 0) for record in records for label in record.labels])
    torch.manual_seed(SEED)
    cell = TREE_CELLS[case.network](case.hidden, case.hidden)
    network = TreeNetwork(Embedding(WORDS, case.hidden, sparse=True), cell, nn.Linear(case.hidden, CLASSES))
    plain, every = PlainTrees(network), np.arange(len(labels))

    def elman() -> float:
        network.zero_grad()
        again = Trees(trees.parents, trees.tokens, trees.heights)  # whose order by height is not known yet
        loss = cross_entropy(network(again, every), labels)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    def recursive() -> float:
        network.zero_grad()
        losses: list[Tensor] = []
        for tree in nested:
            plain(tree, losses)
        loss = torch.stack(losses).mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss.item()

    return len(labels), {PLAIN: recursive, ELMAN: elman}


def random_tree(words: int, generator: random.Random) -> Tree:
    """A binary tree of so many words, cut anywhere, with a label at every node.

    >>> print(random_tree(2, random.Random(1)))
    (1 (2 1931) (3 7364))
    """
    label = str(generator.randrange(CLASSES))
    if words == 1:
        return Tree(label, str(generator.randrange(WORDS)))
    left = generator.randint(1, words - 1)
    return Tree(label, None, (random_tree(left, generator), random_tree(words - left, generator)))


class PlainTrees:
    """The equations of `elman.nn.trees` node by node, with the weights of a network."""

    def __init__(self, network: TreeNetwork) -> None:
        self.embedding, self.cell, self.output = network.embedding, network.cell, network.output
        self.node: Callable[[list[Any], Tensor | None], Any] = {
            "RecursiveCell": self._recursive,
            "TensorCell": self._tensor,
            "TreeLSTMCell": self._tree_lstm,
            "ChildSumCell": self._child_sum,
        }[type(self.cell).__name__]

    def __call__(self, tree: Tree, losses: list[Tensor]) -> Any:
        """The state of a tree's root; the loss at each node is added to `losses`."""
        if tree.word is not None:
            state = self.node([], self.embedding(torch.tensor([int(tree.word)])))
        else:
            state = self.node([self(child, losses) for child in tree.children], None)
        h = state[0] if isinstance(state, tuple) else state
        losses.append(cross_entropy(self.output(h), torch.tensor([int(tree.label)])))
        return state

    def _recursive(self, below: list[Any], x: Tensor | None) -> Any:
        cell: Any = self.cell
        return x if x is not None else torch.tanh(linear(torch.cat(below, dim=1), cell.weight_hh, cell.bias))

    def _tensor(self, below: list[Any], x: Tensor | None) -> Any:
        cell: Any = self.cell
        if x is not None:
            return x
        both = torch.cat(below, dim=1)  # 1 x 2H
        products = linear(both, cell.tensor).view(cell.hidden_size, -1) @ both[0]
        return torch.tanh(products + linear(both, cell.weight_hh, cell.bias))

    def _tree_lstm(self, below: list[Any], x: Tensor | None) -> Any:
        cell: Any = self.cell
        H = cell.hidden_size
        if x is not None:
            i, o, u = linear(x, cell.weight_ih, torch.cat([cell.bias[: 2 * H], cell.bias[4 * H :]])).chunk(3, dim=1)
            c = torch.sigmoid(i) * torch.tanh(u)
        else:
            (left, c_left), (right, c_right) = below
            gates = linear(torch.cat([left, right], dim=1), cell.weight_hh, cell.bias)
            i, o, f_left, f_right, u = gates.chunk(5, dim=1)
            c = torch.sigmoid(i) * torch.tanh(u) + torch.sigmoid(f_left) * c_left + torch.sigmoid(f_right) * c_right
        return torch.sigmoid(o) * torch.tanh(c), c

    def _child_sum(self, below: list[Any], x: Tensor | None) -> Any:
        cell: Any = self.cell
        H = cell.hidden_size
        own = cell.bias if x is None else linear(x, cell.weight_ih, cell.bias)[0]
        gates = own[: 3 * H] if not below else linear(sum(h for h, _ in below), cell.weight_hh, own[: 3 * H])
        i, o, u = gates.view(1, -1).chunk(3, dim=1)
        c = torch.sigmoid(i) * torch.tanh(u)
        for h, c_below in below:
            c = c + torch.sigmoid(linear(h, cell.weight_fh, own[3 * H :])) * c_below
        return torch.sigmoid(o) * torch.tanh(c), c
