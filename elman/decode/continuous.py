"""Texts that come and go while they are written, for models that the compiled runtime does not run."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from elman.decode.sampling import next_ids, uniform
from elman.decode.scores import log_softmax
from elman.decode.step_model import StepModel
from elman.errors import ElmanError
from elman.runtime.continuous import NewId, Told
from elman.sampling import Sampling, fresh_seed

READ_IDS = 64
"""Of prompts that are read before others get their next id."""


@dataclass
class _Text:
    number: int
    stream: int
    model: StepModel[Any]
    sampling: Sampling
    length: int
    unread: list[int]
    """What is to be read before the next id can be chosen."""
    state: Any
    seen: set[int]
    stop_ids: frozenset[int]
    suppress: Collection[int]
    alternatives: int | None
    written: int = 0


@dataclass
class StepBatch:
    """What `elman.runtime.ContinuousBatch` is for engines, for any model that reads one id at a time.

    Each text is a step of its own, so that it is no quicker than one after the other; but none waits for another's end.
    """

    _texts: dict[int, _Text] = field(default_factory=dict)
    _next: int = 0

    @property
    def rows(self) -> int:
        """Texts that have not ended."""
        return len(self._texts)

    def add(
        self,
        model: StepModel[Any],
        prompt: Sequence[int],
        *,
        length: int,
        sampling: Sampling,
        samples: int = 1,
        stop_ids: Collection[int] = (),
        suppress: Collection[int] = (),
        alternatives: int | None = None,
    ) -> int:
        """Begin to continue a prompt; gives the number of the first of its `samples`, the others have the next ones."""
        first = self._next
        chosen = replace(sampling, seed=fresh_seed()) if sampling.seed is None else sampling
        for stream in range(samples):
            text = _Text(
                first + stream,
                stream,
                model,
                chosen,
                length,
                list(prompt),
                model.start(1),
                set(prompt),
                frozenset(stop_ids),
                suppress,
                alternatives,
            )
            self._texts[text.number] = text
        self._next += samples
        return first

    def remove(self, text: int) -> None:
        """End a text; nothing happens where it has ended."""
        self._texts.pop(text, None)

    def interrupt(self) -> None:
        """Every call of `advance` is one step: there is nothing to cut short."""

    def advance(self, steps: int = 1) -> list[NewId]:
        """The next id of every text whose prompt is read."""
        budget = max(1, READ_IDS // max(1, self.rows))
        found = [new for text in list(self._texts.values()) if (new := self._step(text, budget)) is not None]
        for new in found:
            if new.end is not None or new.failure is not None:
                self.remove(new.text)
        return found

    def _step(self, text: _Text, budget: int) -> NewId | None:
        logits = None
        for _ in range(min(budget, len(text.unread))):
            logits, text.state = text.model.step(np.array([text.unread.pop(0)]), text.state)  # 1 x V
        if text.unread or logits is None:
            return None
        try:
            id = self._choose(text, logits)
        except ElmanError as error:
            return NewId(text.number, None, failure=str(error))
        text.written += 1
        if id in text.stop_ids:
            return NewId(text.number, None, "stop")
        text.unread.append(id)
        text.seen.add(id)
        told = None if text.alternatives is None else _told(logits[0], id, text.alternatives)
        return NewId(text.number, id, "length" if text.written == text.length else None, told=told)

    def _choose(self, text: _Text, logits: Any) -> int:
        seen = None
        if text.sampling.repetition_penalty != 1:
            seen = np.zeros(logits.shape, bool)
            seen[0, list(text.seen)] = True
        assert text.sampling.seed is not None
        drawn = uniform(text.sampling.seed, [text.stream], [text.written])
        return int(next_ids(logits, text.sampling, seen, drawn, text.suppress)[0])


def _told(logits: Any, id: int, alternatives: int) -> Told:
    log_probs = log_softmax(np.asarray(logits, np.float64)[None])[0]  # V
    order = np.argsort(-log_probs, kind="stable")
    rank = int(np.flatnonzero(order == id)[0]) + 1
    likely = log_probs[np.isfinite(log_probs)]
    entropy = -float((np.exp(likely) * likely).sum())
    return Told(float(log_probs[id]), rank, entropy, [(int(i), float(log_probs[i])) for i in order[:alternatives]])
