"""A forecaster, compiled: windows of numbers to what comes after them, with no PyTorch call inside."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.ragged import Ragged
from elman.runtime.encoder import Encoder
from elman.runtime.layers import Layers
from elman.runtime.quantise import Arrays, dequantise
from elman.runtime.weights import Float, Shapes

EXACT = 17  # digits tell any two numbers apart
LEAST = 1e-300  # keeps zeros from being divided by


@dataclass(frozen=True)
class Forecast:
    """The steps to come of a series (h x C), or its one number (1 x 1): mean, and quantiles by their share.

    >>> forecast = Forecast("a", np.array([[1.5], [2.5]]), {0.9: np.array([[2.0], [3.0]])})
    >>> list(forecast.lines())
    ['a\\t1\\t1.5\\t2', 'a\\t2\\t2.5\\t3']
    >>> forecast.to_dict()
    {'series': 'a', 'mean': [[1.5], [2.5]], 'quantiles': {'0.9': [[2.0], [3.0]]}}
    """

    name: str
    mean: NDArray[Any]
    quantiles: dict[float, NDArray[Any]]

    @classmethod
    def each(cls, names: Sequence[str], values: NDArray[Any], shares: Sequence[float]) -> "list[Forecast]":
        """Those of some series, from the values of mean and quantiles (B x 1+Q x h x C)."""
        pairs = zip(names, values, strict=True)
        return [cls(name, mean, dict(zip(shares, quantiles, strict=True))) for name, (mean, *quantiles) in pairs]

    def lines(self) -> Iterator[str]:
        """A line a step, between tabs: the name of the series, the step, the means, then quantile by quantile."""
        name = [self.name] if self.name else []
        for step, row in enumerate(np.concatenate([self.mean, *self.quantiles.values()], axis=1).tolist(), 1):
            yield "\t".join([*name, str(step), *(f"{value:.{self._digits(6)}g}" for value in row)])

    def to_dict(self) -> dict[str, Any]:
        """As one line of JSON has it."""
        digits = self._digits(9)

        def rounded(values: NDArray[Any]) -> list[list[float]]:
            return [[float(f"{value:.{digits}g}") for value in row] for row in values.tolist()]

        quantiles = {str(share): rounded(values) for share, values in self.quantiles.items()}
        return {"series": self.name, "mean": rounded(self.mean), "quantiles": quantiles}

    def _digits(self, least: int) -> int:
        """Of each number, so that what differs between them can be read, however large it is that they share."""
        values = np.concatenate([self.mean, *self.quantiles.values()])  # (1+Q)*h x C
        size, spread = np.abs(values).max(axis=0), np.ptp(values, axis=0)
        shared = np.log10(np.maximum(size / np.where(spread > 0, spread, size + LEAST), 1.0)).max()
        return min(least + math.ceil(float(shared)), EXACT)


class CompiledForecaster:
    """What `elman.nn.forecaster` computes: the last hidden state through a linear layer, plus a linear autoregression.

    >>> layers = Layers("body", "gru", 1, 4)
    >>> shapes = {**layers.shapes(), "output.weight": (6, 4), "output.bias": (6,), "skip.weight": (2, 12)}
    >>> forecaster = CompiledForecaster(layers, {name: np.zeros(shape, np.float32) for name, shape in shapes.items()})
    >>> forecaster(Ragged.of([np.zeros((12, 1), np.float32)]), np.zeros((1, 1, 12), np.float32)).shape
    (1, 6)
    """

    def __init__(self, layers: Layers, weights: Arrays) -> None:
        self.encoder = Encoder(layers, weights, pooling="last", output="output")
        self.skip = dequantise(weights).get("skip.weight")

    @staticmethod
    def shapes(width: int, outputs: int, skipped: int, steps: int) -> Shapes:
        """The shapes of the weights that are not those of its layers, whose hidden state is `width` wide."""
        shapes: Shapes = {"output.weight": (outputs, width), "output.bias": (outputs,)}
        return shapes | ({"skip.weight": (steps, skipped)} if skipped else {})

    def __call__(self, inputs: Ragged, channels: NDArray[Any]) -> Float:
        """B windows (N x I), and of each what is forecast, a row for each channel (B x C x T): B x O."""
        outputs = self.encoder(inputs.data, inputs.lengths)
        if self.skip is None:
            return outputs
        linear = (channels @ self.skip.T).reshape(len(inputs), -1)  # B x C*h
        return np.asarray(outputs + np.tile(linear, outputs.shape[1] // linear.shape[1]), np.float32)
