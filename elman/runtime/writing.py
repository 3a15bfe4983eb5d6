"""Continuing prompts: what is asked for, checked, and the new ids as they come out of the compiled loop."""

import math
import secrets
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from elman.errors import RunError, UserError
from elman.runtime.given import whole_numbers

LARGEST_CHUNK = 64
"""Ids of a row that are made at a time, once a text is under way."""


@dataclass(frozen=True)
class Choice:
    """How the next id is chosen: docs/sampling.md says what each number means."""

    temperature: float
    top_k: int
    top_p: float
    repetition_penalty: float
    seed: int | None

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "repetition_penalty"):
            if not isinstance(value := getattr(self, name), int | float | np.number):
                raise UserError(f"{name} must be a number, not {value!r}")
        for name in ("top_k", "seed"):
            if not isinstance(value := getattr(self, name), int | np.integer) and not (
                name == "seed" and value is None
            ):
                raise UserError(f"{name} must be an integer, not {value!r}")
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature must be 0 (the likeliest) or a number above it, not {self.temperature}")
        if self.top_k < 0:
            raise UserError(f"top_k must be 0 (keep every id) or the number of ids to keep, not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not 0 < self.repetition_penalty < math.inf:
            raise UserError(f"repetition_penalty must be a number above 0 (1 is off), not {self.repetition_penalty}")
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise UserError(f"seed must be an integer from 0 to 2**64 - 1, not {self.seed}")

    def arguments(self) -> dict[str, Any]:
        """As the kernels take it; a seed is drawn where there is none."""
        return {
            "temperature": float(self.temperature),
            "top_k": int(min(self.top_k, 2**31)),
            "top_p": float(self.top_p),
            "repetition_penalty": float(self.repetition_penalty),
            "seed": secrets.randbits(32) if self.seed is None else int(self.seed),
        }


def begun(prompts: Sequence[Sequence[int]], start_id: int | None, vocabulary: int) -> list[list[int]]:
    """The prompts as lists of known ids, an empty one replaced by the id to start from.

    >>> begun([[1, 2], []], start_id=0, vocabulary=3)
    [[1, 2], [0]]
    """
    found = []
    for row, prompt in enumerate(prompts):
        ids = whole_numbers(prompt, f"the ids of prompt {row + 1}")
        if ids.ndim != 1:
            raise UserError(f"prompt {row + 1} should be a list of ids, not of shape {ids.shape}")
        if not ids.size and start_id is None:
            raise UserError(f"prompt {row + 1} is empty and the model has no id to start from: give it a prompt")
        found.append(known_ids(ids if ids.size else [start_id], vocabulary, f"the ids of prompt {row + 1}"))
    return found


def known_ids(ids: Collection[Any] | NDArray[np.int64], vocabulary: int, what: str) -> list[int]:
    """The ids as a list; UserError where one is not in the vocabulary."""
    known = whole_numbers(ids if isinstance(ids, np.ndarray) else list(ids), what)
    wrong = known[(known < 0) | (known >= vocabulary)]
    if wrong.size:
        raise UserError(f"{what} must lie in 0 to {vocabulary - 1}, the vocabulary, not {wrong[0]}")
    return cast(list[int], known.tolist())


def steps(writing: Any, stop_when: Callable[[int], bool] | None) -> Iterator[dict[int, int]]:
    """The rows' new ids, step by step; ids that were made ahead of a stop are dropped.

    The first come one by one, so that text appears at once, and then in ever larger chunks.
    """
    stopped: set[int] = set()
    chunk = 1
    while made := _advance(writing, chunk):  # steps x rows
        if len(made[0]) == 1 and stop_when is None:
            for (new_id,) in made:
                yield {0: new_id}
        else:
            yield from _shown(writing, made, stopped, stop_when or (lambda row: False))
        chunk = min(2 * chunk, LARGEST_CHUNK)


def _shown(
    writing: Any, made: list[list[int]], stopped: set[int], stop_when: Callable[[int], bool]
) -> Iterator[dict[int, int]]:
    for ids in made:
        new = {row: new_id for row, new_id in enumerate(ids) if new_id >= 0 and row not in stopped}
        if not new:
            continue
        yield new
        for row in new:
            if stop_when(row):
                stopped.add(row)
                writing.end(row)


def _advance(writing: Any, steps: int) -> list[list[int]]:
    try:
        made: list[list[int]] = writing.advance(steps).tolist()
    except ValueError as error:
        raise UserError(str(error)) from None
    except RuntimeError as error:
        raise RunError(str(error)) from None
    return made
