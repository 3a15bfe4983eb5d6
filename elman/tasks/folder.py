"""A model is a folder: config.json, model.safetensors, tokenizer.json, metrics.json, README.md. Nothing is pickled."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from pydantic import Field
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from elman import __version__
from elman.errors import UserError, is_out_of_memory
from elman.files import Stored, checked, read_json, reading, write_aside, write_json
from elman.runtime.quantise import SCALE, Arrays, dequantise, quantised
from elman.runtime.weights import Weights
from elman.tasks.memory import sketch

FORMAT_VERSION = 1

N = TypeVar("N", bound=nn.Module)


class Vocabulary(Protocol):
    """What a model reads text with: a tokenizer, or a task's own."""

    def to_json(self) -> str:
        """The whole of it as the text of a `tokenizer.json`."""
        ...

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`, whole or not at all."""
        ...


def write_model(folder: Path, task: str, config: dict[str, Any], weights: dict[str, Tensor], text: Vocabulary) -> None:
    """Write the parts that `elman.load` needs; the weights last, so that a model with weights is whole."""
    tokenizer_json = text.to_json()
    path = folder / "tokenizer.json"
    if not path.exists() or path.read_bytes() != tokenizer_json.encode():
        text.save(path)
    heading = {"format_version": FORMAT_VERSION, "elman_version": __version__, "task": task}
    write_json(folder / "config.json", {**heading, **config})
    with write_aside(folder / "model.safetensors") as aside:
        try:
            save_file({name: tensor.contiguous() for name, tensor in sorted(weights.items())}, aside)
        except SafetensorError as error:  # how the library tells of a full disk
            raise OSError(str(error)) from error


class Config(Stored):
    """What every task's config.json holds; each adds its own."""

    format_version: int = Field(ge=1)
    elman_version: str = "unknown"
    task: str
    recipe: dict[str, Any] = Field(default_factory=dict)
    """What the model was trained by."""


C = TypeVar("C", bound=Config)


def read_config(folder: Path, kind: type[C], task: str | None = None) -> C:
    """The checked config of a model folder, of the given task if one is asked for."""
    with reading(folder):
        if not folder.is_dir():
            raise UserError(f"no model folder at {folder}")
        path = folder / "config.json"
        if not path.exists():
            raise UserError(f"{folder} is not a model folder: it has no config.json")
    value = read_json(path)
    heading = checked(Config, value, str(path))
    if heading.format_version > FORMAT_VERSION:
        newer = heading.elman_version
        raise UserError(f"{folder} was made by a newer Elman ({newer}; this is {__version__}): upgrade to load it")
    if task is not None and heading.task != task:
        raise UserError(f"{folder} holds a model for the task '{heading.task}', and this needs one for '{task}'")
    return checked(kind, value, str(path))


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a model folder."""
    with _weights_file(folder) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)


def read_shapes(folder: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of a folder's tensors, by the header of their file alone."""
    with _weights_file(folder) as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118


@contextmanager
def _weights_file(folder: Path) -> Iterator[Any]:
    path = folder / "model.safetensors"
    missing = f"{folder} has no model.safetensors: the model was never saved, or only half copied"
    try:
        with reading(path, missing):
            with path.open("rb"):  # the library takes every file that it cannot open for one that is not there
                pass
            with safe_open(path, framework="pt") as file:
                yield file
    except (SafetensorError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        if is_out_of_memory(error):  # the file is whole, and too large
            raise
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{path} is damaged or truncated ({reason}): copy it again, or train anew") from None


def load_network(make: Callable[[], N], folder: Path) -> tuple[N, Arrays | None]:
    """The network that a folder's config describes, filled with the folder's weights; those in int8 as they are too.

    A config can ask for any size: that it is the size of the weights is seen before any memory is taken.
    """
    found = {name: shape for name, shape in read_shapes(folder).items() if not name.endswith(SCALE)}
    try:
        pattern = sketch(make)
    except ValueError as error:  # parts that do not go together
        raise UserError(f"{folder / 'config.json'} is damaged: 'model' describes no network: {error}") from None
    if pattern is None:
        raise UserError(f"{folder / 'config.json'} is damaged: 'model' has sizes that no machine has room for")
    check_shapes(pattern, found, folder)
    network = make().eval()
    return network, take_weights(network, arrays_of(folder), folder)


def arrays_of(folder: Path) -> dict[str, np.ndarray]:
    """The weights of a model folder."""
    try:
        return {name: tensor.numpy() for name, tensor in read_weights(folder).items()}
    except TypeError as error:  # a type of numbers that NumPy has not
        raise UserError(f"{folder / 'model.safetensors'} is damaged ({error}): copy it again, or train anew") from None


def check_shapes(network: nn.Module, found: Mapping[str, tuple[int, ...]], folder: Path | str) -> None:
    """Refuse weights that are not those of the network, by name or by shape."""
    expected = {name: tuple(tensor.shape) for name, tensor in weights_of(network).items()}
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            there = f"is {_shape(found[name])}" if name in found else "is missing"
            wanted = f"should be {_shape(expected[name])}" if name in expected else "should not be there"
            raise UserError(
                f"the weights in {folder} do not fit its config.json ('model'), or its tokenizer.json: "
                f"'{name}' {there} and {wanted}"
            )


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a single number"


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter and kept buffer once: a matrix that is tied has one name here."""
    kept = network.state_dict()
    names = [name for name, _ in (*network.named_parameters(), *network.named_buffers()) if name in kept]
    return {name: kept[name] for name in names}


def take_weights(network: nn.Module, arrays: Arrays, folder: Path) -> Arrays | None:
    """Fill `network` with weights that were read from a folder; those in int8 are given back too."""
    if not quantised(arrays):
        fill(network, arrays, folder)
        return None
    try:
        Weights(network, arrays)  # which checks them
    except UserError as error:
        raise UserError(f"{folder / 'model.safetensors'}: {error}") from None
    fill(network, dequantise(arrays), folder)
    return arrays


def fill(network: nn.Module, weights: Mapping[str, np.ndarray], folder: Path | str) -> None:
    """Fill `network` with weights that were read from a folder; every name and shape must match."""
    check_shapes(network, {name: array.shape for name, array in weights.items()}, folder)
    with torch.no_grad():
        for name, tensor in weights_of(network).items():
            tensor.copy_(torch.from_numpy(weights[name]))
