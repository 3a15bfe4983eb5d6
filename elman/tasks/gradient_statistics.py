"""How large each weight's gradient is in training: what dynamic evaluation divides by. Counted, kept, read again."""

from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file
from torch import Tensor

from elman.batches.batches import Ids, Reversed, StreamWindows, WholeLines, stack_lines, stack_windows
from elman.errors import UserError
from elman.files import reading, write_aside
from elman.nn.dynamic import SquaredGradients
from elman.nn.language import detach
from elman.nn.towers import BACKWARD
from elman.runtime.quantise import Arrays
from elman.tasks.scoring import hidden_and_targets

if TYPE_CHECKING:
    from elman.tasks.language import LanguageModel

FILE = "gradients.safetensors"
STREAMS, STEPS = 100, 20  # of a batch
BATCHES = 50  # at most, spread over the whole text
FEWEST = 8  # of a short text, whose batches are smaller then
CONTEXT = 64  # tokens that are read before those that count


def gradient_rms(model: "LanguageModel", ids: Ids) -> tuple[dict[str, Tensor], int]:
    """The root of the mean squared gradient of each weight over batches of encoded text, and of how many tokens.

    A batch is 100 stretches of 20 tokens, or 100 lines; of a long text 50 batches are taken, from everywhere in it.
    Of a model that reads both ways the gradient is that of both losses. The model's gradients are written over.
    """
    directions = BACKWARD[model.settings.direction]
    tokens = 0
    with model.evaluating() as network, torch.inference_mode(False), torch.enable_grad():
        seen = SquaredGradients(network)
        try:
            for parts in zip(*(_batches(model, ids, backward) for backward in directions), strict=True):
                network.zero_grad(set_to_none=True)
                for tower, (before, batch) in enumerate(parts):
                    state = None
                    if before is not None:
                        with torch.no_grad():
                            _, _, state = hidden_and_targets(network, before, None, tower)
                    hidden, targets, _ = hidden_and_targets(network, batch, detach(state), tower)
                    network.softmax.loss(hidden, targets).backward()  # type: ignore[no-untyped-call]
                    tokens += len(targets)
                seen.add()
        finally:
            network.zero_grad(set_to_none=True)
    return seen.rms(), tokens // len(directions)


def _batches(
    model: "LanguageModel", ids: Ids, backward: bool
) -> Iterator[tuple[StreamWindows | None, StreamWindows | WholeLines]]:
    """Batches from everywhere in a text, each with what is read before it."""
    reading = model.reading
    if reading.unit == "line":
        for rows in _spread(len(ids.documents)):
            yield None, stack_lines(ids, rows, reading.start_id, backward)
        return
    turned = Reversed(ids) if backward else ids
    context = CONTEXT if len(ids) >= CONTEXT + STEPS else 0
    steps = min(STEPS, len(ids))
    for rows in _spread(max(1, (len(ids) - context) // steps)):
        starts = context + rows * steps
        told = reading.start_id, reading.reset_documents
        yield (
            (stack_windows(turned, starts - context, context, *told) if context else None),
            stack_windows(turned, starts, steps, *told),
        )


def _spread(count: int) -> Iterator[np.ndarray]:
    """The numbers below `count`, or as many as are taken, in batches that each reach from the first to the last.

    >>> [rows.tolist() for rows in _spread(9)][:3]
    [[0], [1], [2]]
    """
    size = int(np.clip(count // FEWEST, 1, STREAMS))
    batches = min(BATCHES, max(1, count // size))
    numbers = np.linspace(0, count - 1, size * batches).round().astype(np.int64)
    yield from numbers.reshape(size, batches).T


def keep_rms(folder: Path, rms: dict[str, Tensor], weights: Arrays) -> None:
    """Write statistics into a model's folder, with what tells whether they are of the weights that are there."""
    with write_aside(folder / FILE) as aside:
        try:
            save_file({name: rms[name].numpy() for name in sorted(rms)}, aside, {"weights": _digest(weights)})
        except SafetensorError as error:  # how the library tells of a full disk
            raise OSError(str(error)) from error


def kept_rms(folder: Path, weights: Arrays) -> dict[str, Tensor] | None:
    """The statistics in a model's folder; None where there are none, or they are of other weights."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        with reading(path), safe_open(path, framework="numpy") as file:
            if (file.metadata() or {}).get("weights") != _digest(weights):
                return None
            return {name: torch.from_numpy(file.get_tensor(name)) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, ValueError, TypeError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(f"{path} is damaged ({reason}): delete it, and it is computed anew") from None


def _digest(weights: Arrays) -> str:
    digest = blake2b(digest_size=16)
    for name in sorted(weights):
        digest.update(name.encode() + np.ascontiguousarray(weights[name]).tobytes())
    return digest.hexdigest()
