"""Networks over trees without PyTorch: the equations of `elman.nn.trees` in NumPy, a product for each height."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.forest import Forest, Trees
from elman.ragged import Ints
from elman.runtime.quantise import Arrays, dequantise
from elman.runtime.weights import Shapes

Floats = NDArray[np.floating[Any]]


class CompiledTrees:
    """Trees to a score for each class at each node; int8 weights are read as the numbers that they stand for."""

    def __init__(self, cell: str, weights: Arrays) -> None:
        kept = {name: array for name, array in weights.items() if name.startswith(("cell.", "output.", "embedding."))}
        found = dequantise(kept)
        self.embedding = found.get("embedding.weight")  # V x E; one-hot input has none
        self.output = found["output.weight"].T, found["output.bias"]
        self.w = {name.removeprefix("cell."): array for name, array in found.items() if name.startswith("cell.")}
        self.t = {name: np.ascontiguousarray(array.T) for name, array in self.w.items() if array.ndim == 2}
        self.H = len(self.output[0])
        self.cell: Callable[[Forest, Floats], Floats] = {
            "recursive": self._recursive,
            "rntn": self._recursive,
            "tree-lstm": self._tree_lstm,
            "child-sum": self._child_sum,
        }[cell]

    @staticmethod
    def shapes(cell: str, embedding: int, hidden: int) -> Shapes:
        """Of the cell's weights, by name."""
        H, E = hidden, embedding
        if cell in ("recursive", "rntn"):
            shapes: Shapes = {"weight_hh": (H, 2 * H), "bias": (H,)}
            shapes |= {"weight_ih": (H, E)} if E != H else {}
            shapes |= {"tensor": (2 * H * H, 2 * H)} if cell == "rntn" else {}
        elif cell == "tree-lstm":
            shapes = {"weight_ih": (3 * H, E), "weight_hh": (5 * H, 2 * H), "bias": (5 * H,)}
        else:
            shapes = {"weight_ih": (4 * H, E), "weight_hh": (3 * H, H), "weight_fh": (H, H), "bias": (4 * H,)}
        return {f"cell.{name}": shape for name, shape in shapes.items()}

    def scores(self, trees: Trees, nodes: Ints) -> Floats:
        """The scores of some nodes, by their numbers among all (K x C)."""
        forest = trees.forest
        ids = forest.tokens[forest.tokens >= 0]
        if self.embedding is None:
            words = self.t["weight_ih"][ids] if "weight_ih" in self.t else np.eye(self.H, dtype=np.float32)[ids]
        else:
            words = self.embedding[ids]
            words = words @ self.t["weight_ih"] if "weight_ih" in self.t else words
        h = self.cell(forest, words)  # N x H
        return np.asarray(h[forest.places[nodes]] @ self.output[0] + self.output[1])

    def _recursive(self, forest: Forest, x: Floats) -> Floats:
        """x: what leaves are (N x H)."""
        h, levels = np.empty((len(forest.order), self.H), np.float32), forest.levels
        h[: levels[1]] = x
        for height in range(1, len(levels) - 1):
            both = h[forest.children[forest.edges[height] : forest.edges[height + 1]]].reshape(-1, 2 * self.H)
            sums = both @ self.t["weight_hh"] + self.w["bias"]
            if "tensor" in self.t:
                products = (both @ self.t["tensor"]).reshape(len(both), self.H, -1)  # M x H x 2H
                sums += np.einsum("mkj,mj->mk", products, both)
            h[levels[height] : levels[height + 1]] = np.tanh(sums)
        return h

    def _tree_lstm(self, forest: Forest, x: Floats) -> Floats:
        H, levels, b = self.H, forest.levels, self.w["bias"]
        h, c = np.empty((2, len(forest.order), H), np.float32)
        i, o, u = np.split(x + np.concatenate([b[: 2 * H], b[4 * H :]]), 3, axis=1)
        c[: levels[1]] = _sigmoid(i) * np.tanh(u)
        h[: levels[1]] = _sigmoid(o) * np.tanh(c[: levels[1]])
        for height in range(1, len(levels) - 1):
            here = slice(levels[height], levels[height + 1])
            below = forest.children[forest.edges[height] : forest.edges[height + 1]]
            gates = h[below].reshape(-1, 2 * H) @ self.t["weight_hh"] + b  # M x 5H
            i, o, left, right = np.split(_sigmoid(gates[:, : 4 * H]), 4, axis=1)
            c[here] = i * np.tanh(gates[:, 4 * H :]) + left * c[below[::2]] + right * c[below[1::2]]
            h[here] = o * np.tanh(c[here])
        return h

    def _child_sum(self, forest: Forest, x: Floats) -> Floats:
        H, levels, b = self.H, forest.levels, self.w["bias"]
        h, c = np.empty((2, len(forest.order), H), np.float32)
        own = np.tile(b, (len(forest.order), 1))  # N x 4H
        own[forest.tokens >= 0] += x
        i, o, u = np.split(own[: levels[1], : 3 * H], 3, axis=1)
        c[: levels[1]] = _sigmoid(i) * np.tanh(u)
        h[: levels[1]] = _sigmoid(o) * np.tanh(c[: levels[1]])
        for height in range(1, len(levels) - 1):
            here = slice(levels[height], levels[height + 1])
            edges = slice(forest.edges[height], forest.edges[height + 1])
            below, above = forest.children[edges], forest.parents[edges]
            starts = np.flatnonzero(np.diff(above, prepend=-1))  # children of one parent stand side by side
            i, o, u = np.split(np.add.reduceat(h[below], starts) @ self.t["weight_hh"] + own[here, : 3 * H], 3, axis=1)
            f = _sigmoid(h[below] @ self.t["weight_fh"] + own[above, 3 * H :])  # E x H
            c[here] = _sigmoid(i) * np.tanh(u) + np.add.reduceat(f * c[below], starts)
            h[here] = _sigmoid(o) * np.tanh(c[here])
        return h


def _sigmoid(x: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * x)))  # which no number overflows
