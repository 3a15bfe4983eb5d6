"""The weights of a network by name, checked: whole, of the right shapes, finite; float32 or int8."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from elman.errors import UserError
from elman.runtime.quantise import LARGEST, SCALE, Arrays

Float = NDArray[np.float32]
Packable = Float | tuple[NDArray[np.int8], Float]
"""A matrix as the kernels take it: float32, or int8 with the scales of its rows."""


class Weights:
    """Arrays that were checked against the network that they are for.

    >>> from elman.nn.language import LanguageNetwork, OneHot
    >>> from elman.nn.recurrent import Recurrent
    >>> from elman.nn.softmax import ChunkedSoftmax
    >>> network = LanguageNetwork(OneHot(5), [Recurrent("gru", 5, 3, batch_first=True)], ChunkedSoftmax(3, 5))
    >>> Weights(network, {})
    Traceback (most recent call last):
    elman.errors.UserError: the weights do not fit the network: 'bodies.0.layers.0.weight_ih_l0' is missing
    """

    def __init__(self, network: nn.Module, arrays: Arrays) -> None:
        self.arrays = arrays
        expected = tensors_of(network)
        for name, tensor in expected.items():
            self._check(name, tensor)
        known = {*expected, *(name + SCALE for name in expected)}
        for name in arrays:
            if name not in known:
                raise UserError(f"the weights do not fit the network: it has no '{name}'")
        self.tied = "softmax.weight" not in expected

    def _check(self, name: str, tensor: Tensor) -> None:
        array, shape = self.arrays.get(name), tuple(tensor.shape)
        if array is None:
            raise UserError(f"the weights do not fit the network: '{name}' is missing")
        if array.shape != shape:
            raise UserError(f"the weights do not fit the network: '{name}' is {array.shape} and should be {shape}")
        if not tensor.is_floating_point():  # what a CRF forbids
            if array.dtype != np.bool_ or name + SCALE in self.arrays:
                raise UserError(f"'{name}' should be true or false, not {array.dtype}")
        elif array.dtype == np.int8:
            scale = self.arrays.get(name + SCALE)
            if len(shape) != 2 or scale is None or scale.shape != shape[:1] or scale.dtype != np.float32:
                raise UserError(f"'{name}' is int8 and should have a float32 scale for each of its {shape[0]} rows")
            if not np.isfinite(scale).all() or (scale < 0).any() or array.min(initial=0) < -LARGEST:
                raise UserError(f"the int8 numbers or scales of '{name}' are damaged: export the model anew")
        elif array.dtype != np.float32 or name + SCALE in self.arrays:
            raise UserError(f"'{name}' should be float32, or int8 with scales, not {array.dtype}")
        elif not np.isfinite(array).all():
            raise UserError(f"'{name}' has numbers that are not finite, so the model is damaged: copy or train it anew")

    def matrix(self, name: str) -> Packable:
        """A matrix in the type that it has."""
        array = np.ascontiguousarray(self.arrays[name])
        return (array, np.ascontiguousarray(self.arrays[name + SCALE])) if array.dtype == np.int8 else array

    def numbers(self, name: str) -> Float:
        """Any weight as float32."""
        array = np.ascontiguousarray(self.arrays[name], dtype=np.float32)
        return array * self.arrays[name + SCALE][:, None] if name + SCALE in self.arrays else array

    def bias(self, name: str, size: int) -> Float:
        """A bias; zeros where the network has none."""
        return self.numbers(name) if name in self.arrays else np.zeros(size, dtype=np.float32)

    def __contains__(self, name: str) -> bool:
        return name in self.arrays


def tensors_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter and kept buffer under one name: a tied matrix under the embedding's."""
    kept = network.state_dict()
    names = [name for name, _ in (*network.named_parameters(), *network.named_buffers()) if name in kept]
    return {name: kept[name] for name in names}


def columns(matrix: Packable, begin: int, end: int | None = None) -> Packable:
    """Some columns of a matrix.

    >>> columns(np.arange(6, dtype=np.float32).reshape(2, 3), 1).tolist()
    [[1.0, 2.0], [4.0, 5.0]]
    """
    if isinstance(matrix, tuple):
        return np.ascontiguousarray(matrix[0][:, begin:end]), matrix[1]
    return np.ascontiguousarray(matrix[:, begin:end])


def describe(value: Any) -> bytes:
    """An array's bytes, or the text of anything else: for telling one engine from another."""
    return value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
