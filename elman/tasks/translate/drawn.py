"""Translations that are drawn at random in place of being searched for."""

from collections.abc import Sequence
from typing import Any

from elman.decode import Hypothesis, Sampling, StepModel, forced_log_probs, generate


def drawn(steps: StepModel[Any], sampling: Sampling, end: int, room: Sequence[int]) -> list[list[Hypothesis]]:
    """One text for each row, of at most `room` tokens, the end token counted; scored by its mean log-probability."""
    rows = len(room)
    written: list[list[int]] = [[] for _ in range(rows)]
    options: dict[str, Any] = {"stop_ids": {end}, "stop_when": lambda row: len(written[row]) == room[row]}
    new_ids = generate(steps, [[end]] * rows, length=max(room), sampling=sampling, same_start=False, **options)
    for new in new_ids:
        for row, id in new.items():
            written[row].append(id)
    ended = [len(ids) < limit for ids, limit in zip(written, room, strict=True)]
    said = [[*ids, end] if over else ids for ids, over in zip(written, ended, strict=True)]
    log_probs = forced_log_probs(steps, said, start_id=end)
    return [
        [Hypothesis(ids, log_prob, log_prob / len(whole), over)]
        for ids, whole, log_prob, over in zip(written, said, log_probs, ended, strict=True)
    ]
