"""A model is a folder: config.json, model.safetensors, tokenizer.json, metrics.json, README.md. Nothing is pickled."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from elman import __version__
from elman.errors import UserError
from elman.files import write_aside, write_json
from elman.runtime.quantise import Arrays, dequantise, quantised
from elman.runtime.weights import Weights

FORMAT_VERSION = 1


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
    if not path.exists() or path.read_text(encoding="utf-8") != tokenizer_json:
        text.save(path)
    heading = {"format_version": FORMAT_VERSION, "elman_version": __version__, "task": task}
    write_json(folder / "config.json", {**heading, **config})
    with write_aside(folder / "model.safetensors") as aside:
        try:
            save_file({name: tensor.contiguous() for name, tensor in sorted(weights.items())}, aside)
        except SafetensorError as error:  # how the library tells of a full disk
            raise OSError(str(error)) from error


def read_config(folder: Path, task: str | None = None) -> dict[str, Any]:
    """The checked config of a model folder, of the given task if one is asked for."""
    if not folder.is_dir():
        raise UserError(f"no model folder at {folder}")
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        version, kind = int(config["format_version"]), str(config["task"])
    except FileNotFoundError:
        raise UserError(f"{folder} is not a model folder: it has no config.json") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged: {error!r}") from None
    if version > FORMAT_VERSION:
        newer = config.get("elman_version", "unknown")
        raise UserError(f"{folder} was made by a newer Elman ({newer}; this is {__version__}): upgrade to load it")
    if task is not None and kind != task:
        raise UserError(f"{folder} holds a model for the task '{kind}', and this needs one for '{task}'")
    assert isinstance(config, dict)
    return config


def read_weights(folder: Path) -> dict[str, Tensor]:
    """The tensors of a model folder."""
    path = folder / "model.safetensors"
    try:
        return dict(load_file(path))
    except FileNotFoundError:
        raise UserError(f"{folder} has no model.safetensors: the model was never saved, or only half copied") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path} is damaged or truncated ({error}): copy it again, or train anew") from None


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Every parameter and kept buffer once: a matrix that is tied has one name here."""
    kept = network.state_dict()
    names = [name for name, _ in (*network.named_parameters(), *network.named_buffers()) if name in kept]
    return {name: kept[name] for name in names}


def load_weights(network: nn.Module, folder: Path) -> Arrays | None:
    """Fill `network` with the folder's weights; every name and shape must match. Those in int8 are given back too."""
    return take_weights(network, {name: tensor.numpy() for name, tensor in read_weights(folder).items()}, folder)


def take_weights(network: nn.Module, arrays: Arrays, folder: Path) -> Arrays | None:
    """The same with weights that were read already."""
    if not quantised(arrays):
        fill(network, arrays, folder)
        return None
    Weights(network, arrays)  # which checks them
    fill(network, dequantise(arrays), folder)
    return arrays


def fill(network: nn.Module, weights: Mapping[str, np.ndarray], folder: Path | str) -> None:
    """Fill `network` with weights that were read from a folder; every name and shape must match."""
    expected = weights_of(network)
    for name in sorted(weights.keys() | expected.keys()):
        if name not in weights or name not in expected or weights[name].shape != tuple(expected[name].shape):
            raise UserError(
                f"the weights in {folder} do not fit its config.json: '{name}' is missing or of another shape"
            )
    with torch.no_grad():
        for name, tensor in expected.items():
            tensor.copy_(torch.from_numpy(weights[name]))
