"""What the training loop knows of a task: its batches, its loss, its evaluation, how it is kept."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn


@dataclass
class Loss:
    """What one batch gave.

    `mean` is differentiable, per token; `tokens` is how many it is a mean of; `state` is what the next
    batch starts from (a carried hidden state, already cut off from the graph), or None; `weight` is how much the
    batch counts in the update.
    """

    mean: Tensor
    tokens: int
    state: Any = None
    weight: float = 1.0


class Batches(Protocol):
    """An endless run of training batches that can be stopped and taken up again at any batch."""

    @property
    def progress(self) -> float:
        """Epochs gone by: 2.5 is half way through the third."""

    def __next__(self) -> Any: ...

    def state_dict(self) -> dict[str, Any]:
        """The position, in values that JSON can hold."""

    def load_state_dict(self, state: dict[str, Any]) -> None: ...


class Trainable(Protocol):
    """What `Trainer` needs: a network, its batches, their loss, an evaluation."""

    unit: str
    """What `Loss.tokens` counts, in words: tokens, texts."""

    @property
    def network(self) -> nn.Module:
        """What is trained."""

    def batches(self) -> Batches:
        """The training batches, from the beginning."""

    def loss(self, batch: Any, state: Any) -> Loss:
        """The loss of one batch, given the state that the batch before it left."""

    def update(self, batch: Any, rate: float) -> Loss:
        """Of a task that has `learns_alone`: learn from one batch at a learning rate; its loss before that."""

    def evaluate(self) -> dict[str, float]:
        """Scores on the held-out part, `loss` among them. The model with the lowest `error` is kept, or, where a task
        has none, the one with the lowest loss: a network that grows too sure of itself may still make fewer mistakes.
        """

    def sample(self) -> str | None:
        """What the network writes as it is now, for the log; None, or no such method, for one that writes nothing.

        It must not draw from the random generators of the run.
        """

    def save(self, folder: Path) -> None:
        """Write the network as it is now into a model folder."""
