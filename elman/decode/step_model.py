"""What decoding knows of a model: it starts, it steps, and rows of its state can be picked."""

from typing import Any, Protocol, TypeVar, runtime_checkable

from torch import Tensor

State = TypeVar("State")


class StepModel(Protocol[State]):
    """A model that reads one id a row and says what may come next, with all its memory in an explicit state.

    A translator is one whose `start(B)` gives B source sentences, row i being sentence i. Log-probabilities
    are logits too, so `step` may give those. `step` and `select` leave the state that they are given as it
    was, and keep nothing on the model, so one model serves several searches at once. Ids and rows arrive on
    the CPU.

    >>> import torch
    >>> class Bigram:
    ...     table = torch.tensor([[0.0, 2.0], [1.0, 0.0]])
    ...     def start(self, batch_size: int) -> None: return None
    ...     def step(self, ids: Tensor, state: None) -> tuple[Tensor, None]: return self.table[ids], None
    ...     def select(self, state: None, rows: Tensor) -> None: return None
    >>> model: StepModel[None] = Bigram()
    >>> logits, state = model.step(torch.tensor([1]), model.start(1))
    >>> logits.tolist()
    [[1.0, 0.0]]
    """

    def start(self, batch_size: int) -> State:
        """The state of `batch_size` rows that have read nothing yet."""
        ...

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one id a row (B); give the logits of the next (B x V) and the state after reading.

        The logits may stand in memory that the step after this one uses again.
        """
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """The state of the given rows, in that order; a row may be named several times, or not at all."""
        ...


@runtime_checkable
class Attending(Protocol):
    """A step model that can tell what it looked at: the coverage of a beam search needs that.

    >>> class Looks:
    ...     def attention(self, state: Tensor) -> Tensor: return state.softmax(dim=-1)
    >>> isinstance(Looks(), Attending), isinstance("no", Attending)
    (True, False)
    """

    def attention(self, state: Any) -> Tensor:
        """The weights of the source's places (B x S) in the step that led to `state`; padding gets 0."""
        ...
