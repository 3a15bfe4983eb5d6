"""Weights as 8-bit integers: a quarter of the size, and products that a processor does four times as many of.

A matrix W becomes whole numbers q from -127 to 127 and one scale s a row (an output channel), so that
W[i, k] is about s[i] * q[i, k]. Vectors (the biases, the first state) stay as they are.
"""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError

if TYPE_CHECKING:
    from torch import Tensor

SCALE = ".scale"
"""What the name of a matrix's scales ends in."""

LARGEST = 127
"""-128 is left out, so that a number and its opposite are both there."""

Arrays = Mapping[str, NDArray[Any]]


def quantise(weights: "Mapping[str, Tensor | NDArray[Any]]", keep: Collection[str] = ()) -> dict[str, NDArray[Any]]:
    """Each matrix as int8 under its own name, with float32 scales under the name + ".scale"; the rest as it is.

    The matrices named in `keep` are the rest too.

    >>> arrays = quantise({"weight": np.array([[0.5, -1.0], [0.0, 0.25]]), "bias": np.ones(2)})
    >>> {name: array.tolist() for name, array in arrays.items() if name != "weight.scale"}
    {'weight': [[64, -127], [0, 127]], 'bias': [1.0, 1.0]}
    >>> dequantise(arrays)["weight"].round(2).tolist()
    [[0.5, -1.0], [0.0, 0.25]]
    """
    arrays: dict[str, NDArray[Any]] = {}
    for name, weight in weights.items():
        array = numbers(weight)
        check_finite(array, name)
        if array.ndim != 2 or array.dtype.kind != "f" or name in keep:
            arrays[name] = array
            continue
        scale = (np.abs(array).max(axis=1, initial=0) / LARGEST).astype(np.float32)  # N
        divisor = np.where(scale > 0, scale, 1)[:, None]  # N x 1
        arrays[name] = np.clip(np.rint(array / divisor), -LARGEST, LARGEST).astype(np.int8)  # N x K
        arrays[name + SCALE] = scale
    return arrays


def dequantise(arrays: Arrays) -> dict[str, NDArray[Any]]:
    """The weights that the integers stand for, in float32, under their own names.

    >>> arrays = {"weight": np.array([[2, -4]], dtype=np.int8), "weight.scale": np.array([0.5], dtype=np.float32)}
    >>> dequantise(arrays)
    {'weight': array([[ 1., -2.]], dtype=float32)}
    """
    return {
        name: array.astype(np.float32) * arrays[name + SCALE][:, None] if name + SCALE in arrays else array
        for name, array in arrays.items()
        if not name.endswith(SCALE)
    }


def dequantised(arrays: Arrays, name: str) -> NDArray[Any]:
    """One of the weights, in float32 where it is of integers.

    >>> dequantised({"weight": np.array([[2]], np.int8), "weight.scale": np.array([0.5], np.float32)}, "weight")
    array([[1.]], dtype=float32)
    """
    return dequantise({key: arrays[key] for key in (name, name + SCALE) if key in arrays})[name]


def quantised(arrays: Arrays) -> bool:
    """Whether some of the weights are integers with scales.

    >>> quantised({"bias": np.zeros(2)})
    False
    """
    return any(name.endswith(SCALE) for name in arrays)


def with_max_norm(
    arrays: Arrays, names: Collection[str], most: float, norm_type: float = 2.0
) -> dict[str, NDArray[Any]]:
    """The weights, the rows of the named matrices shortened to a norm of `most`; of integers the scales are.

    >>> with_max_norm({"weight": np.array([[3.0, 4.0], [0.3, 0.4]], np.float32)}, ["weight"], 1.0)["weight"].round(3)
    array([[0.6, 0.8],
           [0.3, 0.4]], dtype=float32)
    """
    found = dict(arrays)
    for name in names:
        rows = dequantised(arrays, name)  # V x E
        norms = np.linalg.norm(rows, ord=norm_type, axis=1).astype(np.float64)  # the limit may be any number
        factor = np.ones(len(norms), np.float32)
        long = norms > most
        factor[long] = most / (norms[long] + 1e-7)  # as PyTorch does
        scaled = name + SCALE if name + SCALE in arrays else name
        found[scaled] = arrays[scaled] * (factor if arrays[scaled].ndim == 1 else factor[:, None])
    return found


def numbers(weight: "Tensor | NDArray[Any]") -> NDArray[Any]:
    """A tensor of PyTorch's, or an array, as a NumPy array."""
    return np.asarray(weight.detach().cpu() if hasattr(weight, "detach") else weight)


def check_finite(array: NDArray[Any], name: str) -> None:
    """Refuse a weight with numbers that are not finite."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise UserError(f"'{name}' has numbers that are not finite, so the model is damaged: copy or train it anew")
