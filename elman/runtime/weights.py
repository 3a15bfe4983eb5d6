"""The weights of a network by name: read from a model's folder, checked, float32 or int8."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from elman.errors import UserError, is_out_of_memory
from elman.files import reading, write_aside
from elman.runtime.quantise import LARGEST, SCALE, Arrays, check_finite, numbers

if TYPE_CHECKING:
    from torch import nn

Float = NDArray[np.float32]
Packable = Float | tuple[NDArray[np.int8], Float]
"""A matrix as the kernels take it: float32, or int8 with the scales of its rows."""
Shapes = dict[str, tuple[int, ...]]
FILE = "model.safetensors"

# The file


def read_arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """The weights of a model's folder by name."""
    with _opened(folder) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)


def read_shapes(folder: Path) -> Shapes:
    """The shapes of a folder's weights, by the header of their file alone."""
    with _opened(folder) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


def write_arrays(folder: Path, arrays: Arrays) -> None:
    """Write the weights of a model's folder, whole or not at all."""
    with write_aside(folder / FILE) as aside:
        try:
            save_file({name: np.asarray(arrays[name], order="C") for name in sorted(arrays)}, aside)
        except SafetensorError as error:  # how the library tells of a full disk
            raise OSError(str(error)) from error


@contextmanager
def _opened(folder: Path) -> Iterator[Any]:
    path = folder / FILE
    missing = f"{folder} has no {FILE}: the model was never saved, or only half copied"
    try:
        with reading(path, missing):
            with path.open("rb"):  # the library takes every file that it cannot open for one that is not there
                pass
            with safe_open(path, framework="numpy") as file:
                yield file
    except (SafetensorError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        if is_out_of_memory(error):  # the file is whole, and too large
            raise
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{path} is damaged or truncated ({reason}): copy it again, or train anew") from None


def arrays_of(network: "nn.Module") -> dict[str, NDArray[Any]]:
    """Every parameter and kept buffer of a network of PyTorch's under one name: a tied matrix under the embedding's."""
    kept = network.state_dict()
    return {name: numbers(kept[name]) for name in names_of(network)}


def names_of(network: "nn.Module") -> list[str]:
    """The names of `arrays_of`."""
    kept = network.state_dict()
    return [name for name, _ in (*network.named_parameters(), *network.named_buffers()) if name in kept]


# Checks


def check_names(arrays: Arrays, known: Collection[str]) -> None:
    """Refuse weights that a network has none of.

    >>> check_names({"bias": np.zeros(2)}, ["weight"])
    Traceback (most recent call last):
    elman.errors.UserError: the weights do not fit the network: it has no 'bias'
    """
    for name in arrays:
        if name.removesuffix(SCALE) not in known:
            raise UserError(f"the weights do not fit the network: it has no '{name}'")


def check_array(arrays: Arrays, name: str, shape: tuple[int, ...], *, flags: bool = False) -> None:
    """Refuse a weight that is missing, of another shape or type, or not finite; `flags` are true or false."""
    array, scale = arrays.get(name), arrays.get(name + SCALE)
    if array is None:
        raise UserError(f"the weights do not fit the network: '{name}' is missing")
    if array.shape != shape:
        raise UserError(f"the weights do not fit the network: '{name}' is {array.shape} and should be {shape}")
    if flags:
        if array.dtype != np.bool_ or scale is not None:
            raise UserError(f"'{name}' should be true or false, not {array.dtype}")
    elif array.dtype == np.int8:
        if len(shape) != 2 or scale is None or scale.shape != shape[:1] or scale.dtype != np.float32:
            raise UserError(f"'{name}' is int8 and should have a float32 scale for each of its {shape[0]} rows")
        if not np.isfinite(scale).all() or (scale < 0).any() or array.min(initial=0) < -LARGEST:
            raise UserError(f"the int8 numbers or scales of '{name}' are damaged: export the model anew")
    elif array.dtype != np.float32 or scale is not None:
        raise UserError(f"'{name}' should be float32, or int8 with scales, not {array.dtype}")
    else:
        check_finite(array, name)


def type_refusal(arrays: Arrays) -> str | None:
    """Why the kernels do not take weights of these types, in one sentence; None if they do.

    >>> type_refusal({"bias": np.zeros(2)})
    'the engine runs float32 weights, and these are float64'
    """
    types = {str(array.dtype) for array in arrays.values() if array.dtype.kind == "f"} - {"float32"}
    return f"the engine runs float32 weights, and these are {', '.join(sorted(types))}" if types else None


class Weights:
    """Arrays that were checked against the shapes that they should have.

    >>> Weights({}, {"output.weight": (2, 3)})
    Traceback (most recent call last):
    elman.errors.UserError: the weights do not fit the network: 'output.weight' is missing
    >>> Weights({"output.weight": np.ones((1, 2), np.float32)}, {"output.weight": (1, 2)}).matrix("output.weight")
    array([[1., 1.]], dtype=float32)
    """

    def __init__(self, arrays: Arrays, shapes: Mapping[str, tuple[int, ...]]) -> None:
        if (reason := type_refusal({name: arrays[name] for name in shapes if name in arrays})) is not None:
            raise UserError(reason)
        for name, shape in shapes.items():
            check_array(arrays, name, shape)
        self.arrays = arrays

    def matrix(self, name: str) -> Packable:
        """A matrix in the type that it has."""
        array = np.ascontiguousarray(self.arrays[name])
        return (array, np.ascontiguousarray(self.arrays[name + SCALE])) if array.dtype == np.int8 else array

    def numbers(self, name: str) -> Float:
        """Any weight as float32."""
        array = np.asarray(self.arrays[name], np.float32, order="C")
        return array * self.arrays[name + SCALE][:, None] if name + SCALE in self.arrays else array

    def bias(self, name: str, size: int) -> Float:
        """A bias; zeros where the network has none."""
        return self.numbers(name) if name in self.arrays else np.zeros(size, dtype=np.float32)


def columns(matrix: Packable, begin: int, end: int | None = None) -> Packable:
    """Some columns of a matrix.

    >>> columns(np.arange(6, dtype=np.float32).reshape(2, 3), 1).tolist()
    [[1.0, 2.0], [4.0, 5.0]]
    """
    if isinstance(matrix, tuple):
        return np.ascontiguousarray(matrix[0][:, begin:end]), matrix[1]
    return np.ascontiguousarray(matrix[:, begin:end])
