"""A trained recurrent language model, compiled: it generates and scores with no PyTorch call per token.

engine = Engine.of(elman.load("runs/shakespeare").engine)
for new in engine.generate([[12, 3, 7]], length=200, temperature=0.8, seed=1):
    ...
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elman import kernels
from elman.errors import UserError
from elman.nn.language import LanguageNetwork
from elman.runtime.network import description, refusal
from elman.runtime.quantise import Arrays, numbers, quantise, quantised
from elman.runtime.state import State
from elman.runtime.weights import Weights, describe, tensors_of
from elman.runtime.writing import Choice, begun, known_ids, steps


class Engine:
    """A network whose weights were packed once and never change; the state of what was read is explicit.

    Several threads of a program may use one engine at the same time.

    >>> import torch
    >>> from elman.nn.language import OneHot
    >>> from elman.nn.recurrent import Recurrent
    >>> from elman.nn.softmax import ChunkedSoftmax
    >>> body = Recurrent("lstm", 5, 8, batch_first=True)
    >>> engine = Engine.of(LanguageNetwork(OneHot(5), [body], ChunkedSoftmax(8, 5)))
    >>> log_probs, state = engine.step([3, 1], engine.start(2))
    >>> log_probs.shape, state.rows
    ((2, 5), 2)
    >>> len(list(engine.generate([[3, 1]], length=7, seed=1)))
    7
    """

    def __init__(self, native: Any, first: State, int8: bool, threads: int | None) -> None:
        self._native, self._first, self._threads = native, first, threads
        self.int8 = int8
        self.vocabulary = int(native.vocabulary)
        self.labels = int(native.labels)
        """How many labels there are; 0 for a model without."""

    # Making one

    @classmethod
    def of(
        cls, network: LanguageNetwork, *, int8: bool = False, tower: int = 0, threads: int | None = None
    ) -> "Engine":
        """An engine with the network's weights as they are now, in float32 or rounded to int8.

        `threads` is how many it uses at most (None: as many as PyTorch); a small network is quickest on one.
        """
        weights = {name: numbers(tensor) for name, tensor in tensors_of(network).items()}
        return cls.of_arrays(network, quantise(weights) if int8 else weights, tower=tower, threads=threads)

    @classmethod
    def of_arrays(
        cls, network: LanguageNetwork, arrays: Arrays, *, tower: int = 0, threads: int | None = None
    ) -> "Engine":
        """An engine with the architecture of `network` and the weights of `arrays`, float32 or quantised."""
        reason = refusal(network, tower)
        if reason is not None:
            raise UserError(reason)
        if threads is not None and threads < 1:
            raise UserError(f"threads must be 1 or more, not {threads}")
        given = description(network, Weights(network, arrays), tower)
        try:
            native = kernels.native.make_engine(given)
        except ValueError as error:
            raise UserError(f"the network cannot be packed: {error}") from None
        first = np.zeros((1, native.state_size), dtype=np.float32)
        if given["initial"] is not None:
            first[:] = given["initial"].reshape(1, -1)
        return cls(native, State(first, _identity(given)), quantised(arrays), threads)

    # Reading

    def start(self, rows: int = 1) -> State:
        """The state of `rows` texts of which nothing was read yet."""
        if rows < 1:
            raise UserError(f"there must be a row or more, not {rows}")
        return self._first.select([0] * rows)

    def forget(self, state: State, rows: Collection[int]) -> State:
        """The state with some rows put back to the beginning."""
        self._check_state(state)
        fresh = np.array(state.numbers)
        fresh[known_ids(rows, state.rows, "rows")] = self._first.numbers
        return State(fresh, state.engine)

    def step(self, ids: ArrayLike, state: State, labels: ArrayLike | None = None) -> tuple[NDArray[np.float32], State]:
        """Read one id a row (B); the log-probabilities of the next (B x V), and the state after reading."""
        self._check_state(state)
        read = self._ids(ids, "the ids", (state.rows,), self.vocabulary)
        log_probs, after = self._native.step(read, self._labels(labels, state.rows), state.numbers, self.threads)
        return log_probs, State(after, state.engine)

    def log_probs(
        self, inputs: ArrayLike, targets: ArrayLike, state: State | None = None, labels: ArrayLike | None = None
    ) -> tuple[NDArray[np.float64], State]:
        """The log-probability of each of `targets` (B x T) after the `inputs` (B x T) up to its place.

        Goes on from `state`, and gives the state after the last input.
        """
        rows, length = _matrix_shape(inputs)
        state = self.start(rows) if state is None else state
        self._check_state(state)
        if state.rows != rows:
            raise UserError(f"the inputs have {rows} rows and the state has {state.rows}")
        read = self._ids(inputs, "the inputs", (rows, length), self.vocabulary)
        told = self._ids(targets, "the targets", (rows, length), self.vocabulary)
        found, after = self._native.score(read, told, self._labels(labels, rows), state.numbers, self.threads)
        return found, State(after, state.engine)

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

        The same ids as `elman.decode.generate` with the same numbers, but where rounding decides. A row ends
        before an id of `stop_ids`, which is not handed out; after `length` ids; or once `stop_when(row)`,
        asked after each of the row's ids was handed out, is true. Row i draws from the random stream
        `first_stream + i`. An empty prompt begins with `start_id`.
        """
        choice = Choice(temperature, top_k, top_p, repetition_penalty, seed)
        if length < 0:
            raise UserError(f"length must be the number of ids to generate, 0 or more, not {length}")
        if not 0 <= first_stream < 2**63:
            raise UserError(f"first_stream must be 0 or more, not {first_stream}")
        texts = begun(prompts, start_id, self.vocabulary)
        if not texts or length == 0:
            return iter(())
        self._labels(None if label is None else [label], 1)
        writing = kernels.native.write(
            engine=self._native,
            prompts=texts,
            length=min(length, 2**62),
            # An id that is not in the vocabulary never comes, so it stops nothing.
            stop_ids=[i for i in stop_ids if 0 <= i < self.vocabulary],
            suppressed=known_ids(suppress, self.vocabulary, "suppressed ids"),
            first_stream=first_stream,
            label=label or 0,
            threads=self.threads,
            **choice.arguments(),
        )
        return steps(writing, stop_when)

    @property
    def threads(self) -> int:
        """How many threads it uses at most."""
        return self._threads or kernels.threads()

    # Checking

    def _check_state(self, state: State) -> None:
        if state.engine != self._first.engine or state.numbers.shape[1] != self._first.numbers.shape[1]:
            raise UserError("the state was made by another engine, or by one with other weights: start from this one's")

    def _labels(self, labels: ArrayLike | None, rows: int) -> NDArray[np.int32]:
        if labels is None and self.labels:
            raise UserError(f"this model reads by label: give each row a label from 0 to {self.labels - 1}")
        if labels is not None and not self.labels:
            raise UserError("this model knows no labels: leave them out")
        return self._ids([] if labels is None else labels, "the labels", (rows if self.labels else 0,), self.labels)

    def _ids(self, given: ArrayLike, what: str, shape: tuple[int, ...], below: int) -> NDArray[np.int32]:
        ids = np.asarray(given)
        if ids.shape != shape or (ids.size and ids.dtype.kind not in "iu"):
            expected = " x ".join(map(str, shape))
            raise UserError(f"{what} should be {expected} integers, not {ids.dtype} of shape {ids.shape}")
        if ids.size and not (ids.min() >= 0 and ids.max() < below):
            raise UserError(f"{what} must lie in 0 to {below - 1}, and they go from {ids.min()} to {ids.max()}")
        return np.ascontiguousarray(ids, dtype=np.int32)


def _matrix_shape(given: ArrayLike) -> tuple[int, int]:
    shape = np.shape(given)
    if len(shape) != 2 or shape[0] == 0:
        raise UserError(f"the inputs should be a matrix of ids, one row a text, not of shape {shape}")
    return shape[0], shape[1]


def _identity(given: dict[str, Any]) -> bytes:
    """Eight bytes that differ for other sizes or weights."""
    digest = blake2b(digest_size=8)

    def add(value: Any) -> None:
        parts = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list | tuple) else None
        )
        if parts is None:
            digest.update(describe(value))
            return
        for name, part in parts:
            digest.update(f"/{name}:".encode())
            add(part)

    add(given)
    return digest.digest()
