"""Checkpoints: everything a run needs to go on exactly where it stopped, in one file, never pickled.

The state is a nest of dicts, lists, tuples, numbers, texts and tensors. Tensors go into a safetensors file; the nest,
with a note in the place of each tensor, goes as JSON into that file's header. One file is replaced in one move, so
there is always one good checkpoint.
"""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from elman.errors import UserError
from elman.files import write_aside

VERSION = 2  # 2: evaluations are pairs of error and loss, so that of equal errors the lower loss is known


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write `state` to `path`, whole or not at all.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "state.safetensors"
    >>> save_checkpoint(path, {"step": 3, "hidden": (torch.ones(2), None), 7: 0.1})
    >>> load_checkpoint(path)
    {'step': 3, 'hidden': (tensor([1., 1.]), None), 7: 0.1}
    """
    tensors: dict[str, Tensor] = {}
    nest = json.dumps(_lay_flat(state, tensors))
    tensors.setdefault("empty", torch.zeros(0))  # the format has no file without a tensor
    with write_aside(path) as aside:
        try:
            save_file(tensors, aside, metadata={"version": str(VERSION), "nest": nest})
        except SafetensorError as error:  # how the library tells of a full disk
            raise OSError(str(error)) from error


def load_checkpoint(path: Path) -> dict[str, Any]:
    """Read what `save_checkpoint` wrote."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if int(header.get("version", "0")) != VERSION:
                raise UserError(
                    f"{path} was written by another version of Elman: go on with that one, or start again with --force"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
            state = _build_up(json.loads(header["nest"]), tensors)
    except FileNotFoundError:
        raise UserError(f"there is no checkpoint at {path}: start the run without --resume") from None
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UserError(f"the checkpoint {path} is damaged ({error}): start the run again with --force") from None
    assert isinstance(state, dict)
    return state


def _lay_flat(value: Any, tensors: dict[str, Tensor]) -> Any:
    """Replace tensors by notes, and what JSON has no word for by tagged lists."""
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.detach().contiguous().clone()
        return ["tensor", name]
    if isinstance(value, dict):
        return ["dict", [[key, _lay_flat(item, tensors)] for key, item in value.items()]]
    if isinstance(value, list | tuple):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [_lay_flat(item, tensors) for item in value]]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a checkpoint cannot hold a {type(value).__name__}")


def _build_up(value: Any, tensors: dict[str, Tensor]) -> Any:
    if not isinstance(value, list):
        return value
    kind, content = value
    match kind:
        case "tensor":
            return tensors[content]
        case "dict":
            return {key: _build_up(item, tensors) for key, item in content}
        case "tuple":
            return tuple(_build_up(item, tensors) for item in content)
        case _:
            return [_build_up(item, tensors) for item in content]
