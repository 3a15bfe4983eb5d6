"""Whole texts through stacked layers whose weights are packed anew at each call, then a pooling and a head in NumPy.

It is for what the encoder's own kernels do not know: projections, the mean of both directions, a first state that was
learned. Weights in int8 are computed with as the numbers that they stand for.
"""

from typing import NamedTuple

import numpy as np

from elman import kernels
from elman.errors import UserError
from elman.ragged import Ints, Ragged
from elman.runtime.layers import Layers
from elman.runtime.weights import Float, Weights

GRAIN = 2**18
"""So many products of two numbers are worth another thread."""
SMALL = 2**18
"""So many products of two numbers NumPy's OpenBLAS does on the calling thread."""


def product(vectors: Float, weight: Float) -> Float:
    """vectors (N x K) times weight (K x M), in blocks so small that BLAS does not wake threads of its own.

    Those would go on spinning for a while, on the cores that the kernels need next.

    >>> product(np.ones((1, 2), np.float32), np.ones((2, 3), np.float32)).tolist()
    [[2.0, 2.0, 2.0]]
    """
    if len(vectors) == 1:  # a product of a matrix and a vector has threads much sooner
        return product(vectors.repeat(2, axis=0), weight)[:1]
    found = np.empty((len(vectors), weight.shape[1]), np.float32)
    height = min(len(vectors), 16)
    width = max(1, SMALL // (height * len(weight)))
    for row in range(0, len(vectors), height):
        rows = vectors[row : row + height]
        for column in range(0, weight.shape[1], width):
            np.matmul(rows, weight[:, column : column + width], out=found[row : row + height, column : column + width])
    return found


class Stack:
    """Layers by the kernels that learn: their outputs at all steps, and their final states.

    >>> layers = Layers("body", "gru", 3, 5, bidirectional=True)
    >>> arrays = {name: np.zeros(shape, np.float32) for name, shape in layers.shapes().items()}
    >>> output, (h,) = Stack(layers, Weights(arrays, layers.shapes()))(np.ones((4, 3), np.float32), np.array([2, 1, 1]))
    >>> output.shape, h.shape
    ((4, 10), (2, 2, 5))
    """

    def __init__(self, layers: Layers, weights: Weights) -> None:
        self.layers = layers
        self._weights = [
            [
                {
                    kind: np.require(layers.numbers(weights, kind, depth, side == 1), requirements=["C", "W"])
                    for kind in layers.names(depth, side == 1)
                }
                for side in range(layers.directions)
            ]
            for depth in range(layers.num_layers)
        ]
        self._initial = layers.initial(weights)

    def __call__(self, inputs: Float, batch_sizes: Ints, threads: int | None = None) -> tuple[Float, tuple[Float, ...]]:
        """Packed vectors (N x I) to the last layer's outputs (N x D*H), and all final states (each L*D x B x H).

        `threads` is how many it uses at most; None for as many as `kernels.threads()` says.
        """
        most = threads or kernels.threads()
        layers, below, finals = self.layers, inputs, []
        output = inputs
        for depth in range(layers.num_layers):
            if depth > 0:
                below = np.concatenate((below, output), axis=1) if layers.connections == "dense" else output
            output, final = self._run(depth, np.require(below, np.float32, ["C", "W"]), batch_sizes, most)
            if layers.bidirectional and layers.merge == "mean":
                output = output.reshape(len(output), 2, -1).mean(axis=1)
            if layers.connections == "residual" and output.shape == below.shape:
                output = output + below
            finals.append(final)
        return output, tuple(np.concatenate(parts) for parts in zip(*finals, strict=True))

    def _run(self, depth: int, inputs: Float, batch_sizes: Ints, most: int) -> tuple[Float, tuple[Float, ...]]:
        layers, rows, D = self.layers, len(inputs), self.layers.directions
        sizes = layers.state_sizes
        states = {name: _room(D, int(batch_sizes[0]), size) for name, size in zip("hc", sizes, strict=False)}
        final = tuple(states.values())
        for name, part in zip(("h_0", "c_0"), self._initial, strict=False):
            begin = part[depth * D : (depth + 1) * D, None]  # D x 1 x size
            states[name] = np.repeat(begin, batch_sizes[0], axis=1)
        output = _room(rows, D * sizes[0])
        calls = [{"input": inputs, **weights} for weights in self._weights[depth]]
        if layers.gates > layers.hidden_size:
            calls = [{"gates": _room(rows, layers.gates), **call} for call in calls]
        products = rows * D * layers.hidden_size * (inputs.shape[1] + sizes[0])
        numbers = (inputs.shape[1], layers.hidden_size, sizes[0], min(most, 1 + products // GRAIN))
        kernels.native.recurrence(False, layers.mode, *numbers, batch_sizes.tolist(), output, states, calls)
        return output, final


class Head(NamedTuple):
    """What stands on top of the layers: a pooling (None for none), the names of its weights and of the output layer."""

    pooling: str | None
    attention: str | None
    output: str | None


class StackedEncoder:
    """Layers, a pooling and an output layer; answers and final states are those of `elman.runtime.Encoder`.

    >>> layers = Layers("body", "lstm", 3, 5, bidirectional=True, merge="mean", proj_size=2)
    >>> arrays = {name: np.zeros(shape, np.float32) for name, shape in layers.shapes().items()}
    >>> encoder = StackedEncoder(layers, Weights(arrays, layers.shapes()), Head("max", None, None))
    >>> answers, (h, c) = encoder(np.ones((7, 3), np.float32), np.array([5, 2]), threads=1)
    >>> answers.shape, h.shape, c.shape
    ((2, 2), (2, 2, 2), (2, 2, 5))
    """

    def __init__(self, layers: Layers, weights: Weights, head: Head) -> None:
        self.layers, self.pooling, self._stack = layers, head.pooling, Stack(layers, weights)
        self._query = self._output = None
        if (name := head.attention) is not None:
            query = (weights.numbers(f"{name}.W.weight").T, weights.numbers(f"{name}.W.bias"))
            self._query = (*query, weights.numbers(f"{name}.v.weight")[0])
        if (name := head.output) is not None:
            weight = weights.numbers(f"{name}.weight")
            self._output = (weight.T, weights.bias(f"{name}.bias", len(weight)))

    def __call__(self, vectors: Float, lengths: Ints, threads: int) -> tuple[Float, tuple[Float, ...]]:
        """Texts that lie one after the other (N x I), `lengths` steps each (B): N x C; B x C where they are pooled.

        And the states after their last steps, each part L*D x B x H.
        """
        if vectors.shape != (rows := int(lengths.sum()), size := self.layers.input_size):
            raise UserError(f"the vectors should be {rows} x {size}")
        texts = Ragged(vectors, lengths)
        output, sorted_final = self._stack(texts.packed(), texts.packing.batch_sizes, threads)
        ranks = np.argsort(texts.packing.order)
        final = tuple(part[:, ranks] for part in sorted_final)
        found = self._pooled(texts.unpacked(output), final[0])
        return found if self._output is None else product(found, self._output[0]) + self._output[1], final

    def _pooled(self, texts: Ragged, final: Float) -> Float:
        """N x H, or one vector a text (B x H), from the outputs (N x H) and the final h (L*D x B x H)."""
        steps, starts, lengths = texts.data, texts.starts, texts.lengths[:, None]
        match self.pooling:
            case "last" | "mean" | "max" | "last-max-mean":
                last = final[-self.layers.directions :]  # D x B x H
                mean = self.layers.merge == "mean"
                found = {
                    "last": last.mean(axis=0) if mean else np.concatenate(list(last), axis=1),
                    "max": np.maximum.reduceat(steps, starts, axis=0),
                    "mean": np.asarray(np.add.reduceat(steps, starts, axis=0) / lengths, np.float32),
                }  # each B x H
                return np.concatenate([found[name] for name in self.pooling.split("-")], axis=1)
            case "attention":
                assert self._query is not None
                weight, bias, v = self._query
                scores = np.tanh(product(steps, weight) + bias) @ v  # N
                exps = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), texts.lengths))[:, None]
                sums = np.add.reduceat(exps * steps, starts, axis=0)  # B x H
                return np.asarray(sums / np.add.reduceat(exps, starts, axis=0), np.float32)
        return steps


def _room(*shape: int) -> Float:
    return np.empty(shape, np.float32)
