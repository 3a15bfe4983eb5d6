"""What decoding knows of a model: it starts, it steps, rows of its state can be selected; several decide together."""

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from elman.decode.scores import Bools, Floats, Ints, Logits, log_softmax
from elman.errors import UserError
from elman.ragged import Ragged

State = TypeVar("State")


class StepModel(Protocol[State]):
    """A model that reads one id a row and says what may come next, with all its memory in an explicit state.

    A translator is one whose `start(B)` gives B source sentences, row i being sentence i. Log-probabilities
    are logits too, so `step` may give those. `step` and `select` leave the state that they are given as it
    was, and keep nothing on the model, so one model serves several searches at once. Ids, rows and logits are NumPy's.

    >>> class Bigram:
    ...     table = np.array([[0.0, 2.0], [1.0, 0.0]])
    ...     def start(self, batch_size: int) -> None: return None
    ...     def step(self, ids: Ints, state: None) -> tuple[Logits, None]: return self.table[ids], None
    ...     def select(self, state: None, rows: Ints) -> None: return None
    >>> model: StepModel[None] = Bigram()
    >>> logits, state = model.step(np.array([1]), model.start(1))
    >>> logits.tolist()
    [[1.0, 0.0]]
    """

    def start(self, batch_size: int) -> State:
        """The state of `batch_size` rows that have read nothing yet."""
        ...

    def step(self, ids: Ints, state: State) -> tuple[Logits, State]:
        """Read one id a row (B); give the logits of the next (B x V) and the state after reading.

        The logits may stand in memory that the step after this one uses again.
        """
        ...

    def select(self, state: State, rows: Ints) -> State:
        """The state of the given rows, in that order; a row may be named several times, or not at all."""
        ...


@runtime_checkable
class Attending(Protocol):
    """A step model that can tell what it attended to: the coverage of a beam search needs that.

    >>> class First:
    ...     def attention(self, state: Logits) -> Logits: return np.eye(len(state))
    >>> isinstance(First(), Attending), isinstance("no", Attending)
    (True, False)
    """

    def attention(self, state: Any) -> Logits:
        """The weights of the source's places (B x S) in the step that led to `state`; padding gets 0."""
        ...


@runtime_checkable
class Greedy(Protocol):
    """A step model that follows the likeliest id by itself, to the end of each row, sooner than it is asked to step."""

    @property
    def vocabulary(self) -> int:
        """V."""
        ...

    def greedy(
        self, start: int, stop: int, *, limits: Ints, shortest: int, never: Ints
    ) -> tuple[Ragged, Floats, Bools]:
        """For each of the first rows, the ids after `start`, their log-probability, and whether `stop` ended them.

        A row has at most its limit of ids, and at least `shortest` with the stop id counted; those of `never` are left
        out. A log-probability that is not finite tells of logits that were none, or of a row that was not let go on.
        """
        ...


class Ensemble:
    """A step model that gives the mean of its members' probabilities: log p = log((p_1 + ... + p_M) / M).

    The members must have the same vocabulary. The state is the tuple of their states.

    >>> class Says:
    ...     def __init__(self, *p): self.p = np.array([p])
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return np.log(self.p).repeat(len(ids), axis=0), None
    ...     def select(self, state, rows): return None
    >>> both = Ensemble([Says(0.9, 0.1), Says(0.5, 0.5)])
    >>> log_probs, state = both.step(np.array([0]), both.start(1))
    >>> np.exp(log_probs).round(3).tolist()
    [[0.7, 0.3]]
    """

    def __init__(self, models: Sequence[StepModel[Any]]) -> None:
        if not models:
            raise UserError("an ensemble needs at least one model")
        self.models = tuple(models)

    def start(self, batch_size: int) -> tuple[Any, ...]:
        """The start of every member."""
        return tuple(model.start(batch_size) for model in self.models)

    def step(self, ids: Ints, state: tuple[Any, ...]) -> tuple[Logits, tuple[Any, ...]]:
        """The logarithm of the members' mean probabilities (B x V), and their states."""
        steps = [model.step(ids, part) for model, part in zip(self.models, state, strict=True)]
        sizes = [logits.shape[-1] for logits, _ in steps]
        if len(set(sizes)) > 1:
            raise UserError(f"the models of an ensemble must share a vocabulary, but theirs have {sizes} ids")
        log_probs = np.stack([log_softmax(logits) for logits, _ in steps])  # M x B x V
        top = log_probs.max(axis=0).clip(min=np.finfo(log_probs.dtype).min)  # B x V; so that exp is not all 0
        with np.errstate(divide="ignore"):  # an id that all members rule out
            mean = np.log(np.exp(log_probs - top).sum(axis=0) / len(steps)) + top
        return mean, tuple(part for _, part in steps)

    def select(self, state: tuple[Any, ...], rows: Ints) -> tuple[Any, ...]:
        """The rows of every member."""
        return tuple(model.select(part, rows) for model, part in zip(self.models, state, strict=True))

    def attention(self, state: tuple[Any, ...]) -> Logits:
        """The mean of the members' attention (B x S); they must all have one, over the same source places."""
        weights = [
            model.attention(part)
            for model, part in zip(self.models, state, strict=True)
            if isinstance(model, Attending)
        ]
        if len(weights) < len(self.models):
            raise UserError("coverage counts attention, which a model of the ensemble does not have: set it to 0")
        if len({part.shape for part in weights}) > 1:
            raise UserError("the models of the ensemble attend to sources of different lengths: set coverage to 0")
        return np.asarray(np.mean(weights, axis=0))


class Repeated:
    """A step model whose rows are the `rows` of another, again and again: row i is its row i % rows.

    >>> class Rows:
    ...     def start(self, batch_size): return np.arange(batch_size)
    ...     def select(self, state, rows): return state[rows]
    ...     def step(self, ids, state): return state[:, None], state
    >>> Repeated(Rows(), 2).start(5).tolist()
    [0, 1, 0, 1, 0]
    """

    def __init__(self, model: StepModel[State], rows: int) -> None:
        self.model, self.rows, self.step, self.select = model, rows, model.step, model.select

    def start(self, batch_size: int) -> Any:
        """The start of the other's rows, in turn."""
        return self.model.select(self.model.start(self.rows), np.arange(batch_size) % self.rows)
