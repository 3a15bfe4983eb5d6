"""Whole texts through stacked layers whose weights are packed anew at each call, then a pooling and a head in NumPy.

It is for what the encoder's own kernels do not know: projections, the mean of both directions, a first state that was
learned. Weights in int8 are computed with as the numbers that they stand for.
"""

from typing import NamedTuple

import numpy as np

from elman.errors import UserError
from elman.ragged import Ints, Ragged
from elman.runtime.layers import Layers, Stack
from elman.runtime.weights import Float, Weights

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
        rows, size = int(lengths.sum()), self.layers.input_size
        if not len(lengths) or lengths.min() < 1:
            raise UserError("every text should have at least one step, and there should be at least one text")
        if vectors.shape != (rows, size):
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
