"""Continuous batching: texts that are written side by side, each with settings of its own, and come and go at any time.

batch = ContinuousBatch(engine)
first = batch.add([12, 3, 7], length=200, sampling=Sampling(0.8, seed=1))
while batch.rows:
    for new in batch.advance():
        ...                         # new.text is a number that `add` gave; others may be added and removed here
"""

from collections.abc import Collection, Sequence
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from elman import kernels
from elman.errors import UserError
from elman.runtime.arguments import number_above, whole_numbers
from elman.runtime.engine import Engine
from elman.runtime.generation import checked_prompts, known_ids, sampling_arguments
from elman.sampling import Sampling

End = Literal["stop", "length"]
"""Why a text ended: before a stop id, or with as many ids as were asked for."""

NO_ID_LEFT = "every id is suppressed, so nothing can come next: suppress fewer"
NOT_FINITE = "the model's logits are not finite numbers, so nothing can be chosen from them"
_ENDS: dict[int, End] = {1: "stop", 2: "length"}
_FAILURES = {-1: NO_ID_LEFT, -2: NOT_FINITE}


class Told(NamedTuple):
    """What a model thought of an id that was chosen, before temperature and penalties."""

    log_prob: float
    rank: int
    """1 for the likeliest."""
    entropy: float
    """Of the distribution, in nats."""
    others: list[tuple[int, float]]
    """The likeliest ids and their log-probabilities."""


class NewId(NamedTuple):
    """The next id of a text; None where it ended before a stop id, or failed, which `failure` says in a sentence."""

    text: int
    id: int | None
    end: End | None = None
    failure: str | None = None
    told: Told | None = None


class ContinuousBatch:
    """Texts that an engine writes side by side: a text's state has a constant size, so each is a row of a batch.

    A text is the one that `Engine.generate` writes with its settings, but where rounding decides. Only one thread at a
    time may use a batch, but for `interrupt`.

    >>> import numpy as np
    >>> from elman.runtime.language import LanguageParts
    >>> from elman.runtime.layers import Layers
    >>> parts = LanguageParts(Layers("bodies.0", "lstm", 5, 8), vocabulary=5, embedding=0)
    >>> batch = ContinuousBatch(Engine(parts, {n: np.ones(s, np.float32) for n, s in parts.shapes().items()}))
    >>> one = batch.add([3, 1], length=7, sampling=Sampling(seed=1))
    >>> batch.advance(steps=2)[0].text == one, batch.rows
    (True, 1)
    >>> batch.remove(one)
    >>> batch.rows
    0
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._native: Any = kernels.native.continuous_batch(engine._native, engine.threads)

    @property
    def rows(self) -> int:
        """Texts that have not ended."""
        return int(self._native.rows)

    def add(
        self,
        prompt: Sequence[int],
        *,
        length: int,
        sampling: Sampling,
        samples: int = 1,
        stop_ids: Collection[int] = (),
        suppress: Collection[int] = (),
        start_id: int | None = None,
        label: int | None = None,
        alternatives: int | None = None,
    ) -> int:
        """Begin to continue a prompt; gives the number of the first of its `samples`, the others have the next ones.

        With `alternatives`, what the model thought of each id is told, and so many of the likeliest beside it.
        """
        self.engine._labels(None if label is None else [label], 1)
        stops = whole_numbers(list(stop_ids), "stop ids")
        (ids,) = checked_prompts([prompt], start_id, self.engine.vocabulary)
        try:
            return int(
                self._native.add(
                    prompt=ids,
                    samples=number_above(samples, 1, "samples"),
                    length=min(number_above(length, 1, "length, the number of ids to generate,"), 2**62),
                    stop_ids=stops[(stops >= 0) & (stops < self.engine.vocabulary)].tolist(),
                    suppressed=known_ids(suppress, self.engine.vocabulary, "suppressed ids"),
                    first_stream=0,
                    label=int(label or 0),
                    alternatives=-1 if alternatives is None else number_above(alternatives, 0, "alternatives"),
                    **sampling_arguments(sampling),
                )
            )
        except ValueError as error:
            raise UserError(str(error)) from None

    def remove(self, text: int) -> None:
        """End a text; nothing happens where it has ended."""
        self._native.remove(text)

    def interrupt(self) -> None:
        """Let an `advance` that is under way on another thread return after its present step."""
        self._native.interrupt()

    def advance(self, steps: int = 1) -> list[NewId]:
        """The next ids of all texts, up to `steps` of each; none while prompts are only read."""
        texts, ids, ends, log_probs, ranks, entropies, counts, others, other_log_probs = (
            one.tolist() for one in self._native.advance(steps)
        )
        starts = list(accumulate(counts, initial=0))
        found = []
        for place, (text, id, end) in enumerate(zip(texts, ids, ends, strict=True)):
            told = None
            if ranks[place]:
                span = slice(starts[place], starts[place + 1])
                near = list(zip(others[span], other_log_probs[span], strict=True))
                told = Told(log_probs[place], ranks[place], entropies[place], near)
            found.append(NewId(text, id if id >= 0 else None, _ENDS.get(end), _FAILURES.get(end), told))
        return found
