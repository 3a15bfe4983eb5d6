"""A trained recurrent language model, compiled: it generates and scores with no PyTorch call per token.

engine = Engine(LanguageParts(Layers("bodies.0", "lstm", 64, 128), vocabulary=65, embedding=64), arrays)
for new in engine.generate([[12, 3, 7]], length=200, temperature=0.8, seed=1):
    ...
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman import kernels
from elman.errors import UserError
from elman.runtime.arguments import Threaded, number_above, whole_numbers
from elman.runtime.generation import checked_prompts, known_ids, new_ids, sampling_arguments
from elman.runtime.language import LanguageParts, refusal
from elman.runtime.quantise import Arrays, quantise, quantised
from elman.runtime.state import State
from elman.runtime.weights import Weights, arrays_of, check_names, names_of
from elman.sampling import Sampling

if TYPE_CHECKING:
    from elman.nn.language import LanguageNetwork

NONE: NDArray[np.int64] = np.empty(0, np.int64)


class Engine(Threaded):
    """A network whose weights were packed once and never change; the state of what was read is explicit.

    Several threads of a program may use one engine at the same time. `threads` is how many it uses at most (None: as
    many as `kernels.threads()` says); a small network is quickest on one.

    >>> from elman.runtime.layers import Layers
    >>> parts = LanguageParts(Layers("bodies.0", "lstm", 5, 8), vocabulary=5, embedding=0)
    >>> engine = Engine(parts, {name: np.ones(shape, np.float32) for name, shape in parts.shapes().items()})
    >>> log_probs, state = engine.step([3, 1], engine.start(2))
    >>> log_probs.shape, state.rows
    ((2, 5), 2)
    >>> len(list(engine.generate([[3, 1]], length=7, seed=1)))
    7
    """

    # Making one

    def __init__(self, parts: LanguageParts, arrays: Arrays, *, threads: int | None = None) -> None:
        if (reason := parts.refusal()) is not None:
            raise UserError(reason)
        super().__init__(threads)
        description = parts.description(Weights(arrays, parts.shapes()))
        try:
            self._native: Any = kernels.native.make_engine(description)
        except ValueError as error:
            raise UserError(f"the network cannot be packed: {error}") from None
        first = np.zeros((1, self._native.state_size), dtype=np.float32)
        if description["initial"] is not None:
            first[:] = description["initial"].reshape(1, -1)
        self._first = State(first, _identity(description))
        self.int8 = quantised(arrays)
        self.vocabulary = int(self._native.vocabulary)
        self.labels = int(self._native.labels)
        """How many labels there are; 0 for a model without."""

    @classmethod
    def of(
        cls, network: "LanguageNetwork", *, int8: bool = False, tower: int = 0, threads: int | None = None
    ) -> "Engine":
        """An engine with the weights of a network of PyTorch's as they are now, in float32 or rounded to int8."""
        arrays = arrays_of(network)
        return cls.of_arrays(network, quantise(arrays) if int8 else arrays, tower=tower, threads=threads)

    @classmethod
    def of_arrays(
        cls, network: "LanguageNetwork", arrays: Arrays, *, tower: int = 0, threads: int | None = None
    ) -> "Engine":
        """An engine with the architecture of `network` and the weights of `arrays`, float32 or quantised."""
        if (reason := refusal(network, tower, arrays)) is not None:
            raise UserError(reason)
        check_names(arrays, names_of(network))
        return cls(LanguageParts.of(network, tower), arrays, threads=threads)

    # Reading

    def start(self, rows: int = 1) -> State:
        """The state of `rows` texts of which nothing was read yet."""
        return self._first.select([0] * number_above(rows, 1, "the number of rows"))

    def forget(self, state: State, rows: Collection[int]) -> State:
        """The state with some rows put back to the beginning."""
        self._check_state(state)
        fresh = np.array(state.numbers)
        fresh[known_ids(rows, state.rows, "rows")] = self._first.numbers
        return State(fresh, state.engine)

    def step(self, ids: ArrayLike, state: State, labels: ArrayLike | None = None) -> tuple[NDArray[np.float32], State]:
        """Read one id a row (B); the log-probabilities of the next (B x V), and the state after reading."""
        self._check_state(state)
        rows = state.rows
        log_probs = np.empty((rows, self.vocabulary), np.float32)
        after = np.empty(state.numbers.shape, np.float32)
        read, labelled = whole_numbers(ids, "the ids", (rows,)), self._labels(labels, rows)
        try:
            self._native.step(read, labelled, state.numbers, log_probs, after, self.threads)
        except ValueError as error:
            raise UserError(str(error)) from None
        return log_probs, State.made(after, state.engine)

    def log_probs(
        self, inputs: ArrayLike, targets: ArrayLike, state: State | None = None, labels: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], State]:
        """The log-probability of each of `targets` (B x T) after the `inputs` (B x T) up to its place.

        Goes on from `state`, and gives the state after the last input.
        """
        read = whole_numbers(inputs, "the inputs")
        if read.ndim != 2 or len(read) == 0:
            raise UserError(f"the inputs should be a matrix of ids, one row a text, not of shape {read.shape}")
        rows = len(read)
        state = self.start(rows) if state is None else state
        self._check_state(state)
        if state.rows != rows:
            raise UserError(f"the inputs have {rows} rows and the state has {state.rows}")
        told, labelled = whole_numbers(targets, "the targets", read.shape), self._labels(labels, rows)
        try:
            found, after = self._native.score(read, told, labelled, state.numbers, self.threads)
        except ValueError as error:
            raise UserError(str(error)) from None
        return found, State.made(after, state.engine)

    # Writing

    def generate(
        self,
        prompts: Sequence[Sequence[int]],
        *,
        length: int,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        repetition_penalty: float = 1.0,
        seed: int | None = 0,
        stop_ids: Collection[int] = (),
        suppress: Collection[int] = (),
        start_id: int | None = None,
        first_stream: int = 0,
        stop_when: Callable[[int], bool] | None = None,
        label: int | None = None,
    ) -> Iterator[dict[int, int]]:
        """Continue each of `prompts` by up to `length` ids; yield the rows' new ids, step by step, as {row: id}.

        The ids are those of `elman.decode.generate` with these numbers, but where rounding decides. A row ends
        before an id of `stop_ids`, which is not handed out; after `length` ids; or once `stop_when(row)`,
        asked after each of the row's ids was handed out, is true. Row i takes its random numbers from
        stream `first_stream + i`. An empty prompt begins with `start_id`.
        """
        sampling = Sampling(temperature, top_k, top_p, repetition_penalty, seed)
        length = number_above(length, 0, "length, the number of ids to generate,")
        if number_above(first_stream, 0, "first_stream") >= 2**63:
            raise UserError(f"first_stream must be below 2**63, not {first_stream}")
        texts = checked_prompts(prompts, start_id, self.vocabulary)
        if not texts or length == 0:
            return iter(())
        self._labels(None if label is None else [label], 1)
        stops = whole_numbers(list(stop_ids), "stop ids")
        try:
            writing = kernels.native.generate(
                engine=self._native,
                prompts=texts,
                length=min(length, 2**62),
                # An id that is not in the vocabulary never comes, so it stops nothing.
                stop_ids=stops[(stops >= 0) & (stops < self.vocabulary)].tolist(),
                suppressed=known_ids(suppress, self.vocabulary, "suppressed ids"),
                first_stream=int(first_stream),
                label=int(label or 0),
                threads=self.threads,
                **sampling_arguments(sampling),
            )
        except ValueError as error:
            raise UserError(str(error)) from None
        return new_ids(writing, stop_when)

    # Checking

    def _check_state(self, state: State) -> None:
        if not isinstance(state, State):
            raise UserError(f"a state is what the engine's start() or step() gives, not {type(state).__name__}")
        if state.engine != self._first.engine or state.numbers.shape[1] != self._first.numbers.shape[1]:
            raise UserError("the state was made by another engine, or by one with other weights: start from this one's")

    def _labels(self, labels: ArrayLike | None, rows: int) -> NDArray[np.int64]:
        if labels is None:
            if self.labels:
                raise UserError(f"this model reads by label: give each row a label from 0 to {self.labels - 1}")
            return NONE
        if not self.labels:
            raise UserError("this model knows no labels: leave them out")
        return whole_numbers(labels, "the labels", (rows,))


def _identity(description: dict[str, Any]) -> bytes:
    """Eight bytes that differ for other sizes or weights."""
    digest = blake2b(digest_size=8)

    def add(value: Any) -> None:
        parts = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else None
        )
        if parts is None:
            digest.update(value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode())
            return
        for name, part in parts:
            digest.update(f"/{name}:".encode())
            add(part)

    add(description)
    return digest.digest()
