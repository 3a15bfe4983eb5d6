"""Continuing prompts: the arguments, checked, and the new ids as they come out of the compiled loop."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from elman.errors import RunError, UserError
from elman.runtime.arguments import whole_numbers
from elman.sampling import Sampling, fresh_seed

LARGEST_CHUNK = 64
"""Ids of a row that are made at a time, once a text is under way."""


def sampling_arguments(sampling: Sampling) -> dict[str, Any]:
    """How ids are chosen, as the kernels take it; a seed is made where there is none.

    >>> sampling_arguments(Sampling(top_k=3, seed=7))["seed"]
    7
    """
    return {
        "temperature": float(sampling.temperature),
        "top_k": int(min(sampling.top_k, 2**31)),
        "top_p": float(sampling.top_p),
        "repetition_penalty": float(sampling.repetition_penalty),
        "seed": fresh_seed() if sampling.seed is None else int(sampling.seed),
    }


def checked_prompts(prompts: Sequence[Sequence[int]], start_id: int | None, vocabulary: int) -> list[list[int]]:
    """The prompts as lists of known ids, an empty one replaced by the id to start from.

    >>> checked_prompts([[1, 2], []], start_id=0, vocabulary=3)
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


def new_ids(writing: Any, stop_when: Callable[[int], bool] | None) -> Iterator[dict[int, int]]:
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
            yield from _yielded(writing, made, stopped, stop_when or (lambda row: False))
        chunk = min(2 * chunk, LARGEST_CHUNK)


def _yielded(
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
