"""A model is a folder: config.json, model.safetensors, tokenizer.json, metrics.json, README.md. Nothing is pickled."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np
from pydantic import Field

from elman import __version__
from elman.errors import UserError
from elman.files import Stored, checked, read_json, reading, write_json, write_text
from elman.runtime.quantise import SCALE, Arrays, check_finite, quantised
from elman.runtime.weights import Shapes, check_array, names_of, write_arrays
from elman.tasks.memory import sketch

if TYPE_CHECKING:
    from torch import nn

FORMAT_VERSION = 1


class AnyVocabulary(Protocol):
    """What a model reads text with: a tokenizer, or a task's own."""

    def to_json(self) -> str:
        """The whole of it as the text of a `tokenizer.json`."""
        ...

    def save(self, path: Path) -> None:
        """Write `tokenizer.json`, whole or not at all."""
        ...


def write_model(folder: Path, task: str, config: "Config", weights: Arrays, vocabulary: AnyVocabulary | None) -> None:
    """Write the parts that `elman.load` needs; the weights last, so that a model with weights is whole."""
    if vocabulary is not None:
        write_changed(folder / "tokenizer.json", vocabulary.to_json())
    write_config(folder, task, config)
    write_arrays(folder, weights)


def write_config(folder: Path, task: str, config: "Config") -> None:
    """Write config.json."""
    heading = {"format_version": FORMAT_VERSION, "elman_version": __version__, "task": task}
    write_json(folder / "config.json", heading | config.model_dump(mode="json", exclude=set(heading)))


def write_changed(path: Path, text: str) -> None:
    """Write a file whose content is mostly there already."""
    if not path.exists() or path.read_bytes() != text.encode():
        write_text(path, text)


MOST_MEMBERS = 100
"""Models that answer together, at most."""
MEMBERS = "members"
"""The folder with the other models of an ensemble, in that of the first."""


def member_folders(folder: Path) -> list[Path]:
    """Those of the other models of an ensemble, as many as its config.json says; none where that cannot be read."""
    try:
        count = json.loads((folder / "config.json").read_bytes()).get("members", 1)
        return [folder / MEMBERS / str(number) for number in range(2, min(count, MOST_MEMBERS) + 1)]
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return []


class Config(Stored):
    """What every task's config.json holds; each adds its own."""

    format_version: int = Field(ge=1)
    elman_version: str = "unknown"
    task: str = Field(max_length=100)
    recipe: dict[str, Any] = Field(default_factory=dict)
    """What the model was trained by."""

    @classmethod
    def new(cls, task: str, recipe: Any, **parts: Any) -> Self:
        """The config of a model that is being trained by a recipe."""
        trained_by = recipe.model_dump(mode="json")
        return cls(format_version=FORMAT_VERSION, elman_version=__version__, task=task, recipe=trained_by, **parts)


C = TypeVar("C", bound=Config)


def read_config(folder: Path, kind: type[C], task: str | None = None) -> C:
    """The checked config of a model folder, of the given task if one is asked for."""
    with reading(folder):
        if not folder.is_dir():
            raise UserError(f"no model folder at {folder}: give one that `elman train --out` has written")
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


def check_weights(arrays: Arrays, expected: Shapes, folder: Path | str) -> None:
    """Refuse weights that are not those that a network should have, by name or by shape."""
    found = {name: array.shape for name, array in arrays.items() if not name.endswith(SCALE)}
    for name in sorted(found.keys() | expected.keys()):
        if found.get(name) != expected.get(name):
            there = f"is {_shape(found[name])}" if name in found else "is missing"
            wanted = f"should be {_shape(expected[name])}" if name in expected else "should not be there"
            raise UserError(
                f"the weights in {folder} do not fit its config.json ('model'), or its tokenizer.json: "
                f"'{name}' {there} and {wanted}"
            )
    try:
        eight = quantised(arrays)
        for name, shape in expected.items():
            if eight:
                check_array(arrays, name, shape, flags=arrays[name].dtype == np.bool_)
            else:
                check_finite(arrays[name], name)
    except UserError as error:
        raise UserError(f"{folder}/model.safetensors: {error}") from None


def shapes_of(make: "Callable[[], nn.Module]", folder: Path | str) -> Shapes:
    """The shapes of the weights of the network that `make` makes; no memory is taken, as a config can ask for any."""
    try:
        pattern = sketch(make)
    except ValueError as error:  # parts that do not go together
        raise UserError(f"{folder}/config.json is damaged: 'model' describes no network: {error}") from None
    if pattern is None:
        raise UserError(f"{folder}/config.json is damaged: 'model' has sizes that no machine has room for")
    kept = pattern.state_dict()
    return {name: tuple(kept[name].shape) for name in names_of(pattern)}


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a single number"


def fill(network: "nn.Module", weights: Arrays) -> None:
    """Put weights into a network that they were checked for."""
    import torch

    kept = network.state_dict()
    with torch.no_grad():
        for name in names_of(network):
            kept[name].copy_(torch.from_numpy(weights[name]))
