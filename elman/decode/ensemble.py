"""Several models that decide together."""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from elman.decode.step_model import Attending, StepModel
from elman.errors import UserError


class Ensemble:
    """A step model that gives the mean of its members' probabilities: log p = log((p_1 + ... + p_M) / M).

    The members must have the same vocabulary. The state is the tuple of their states.

    >>> class Says:
    ...     def __init__(self, *p): self.p = torch.tensor(p)
    ...     def start(self, batch_size): return None
    ...     def step(self, ids, state): return self.p.log().expand(len(ids), 2), None
    ...     def select(self, state, rows): return None
    >>> both = Ensemble([Says(0.9, 0.1), Says(0.5, 0.5)])
    >>> log_probs, state = both.step(torch.tensor([0]), both.start(1))
    >>> [round(p, 3) for p in log_probs.exp()[0].tolist()]
    [0.7, 0.3]
    """

    def __init__(self, models: Sequence[StepModel[Any]]) -> None:
        if not models:
            raise UserError("an ensemble needs at least one model")
        self.models = tuple(models)

    def start(self, batch_size: int) -> tuple[Any, ...]:
        """The start of every member."""
        return tuple(model.start(batch_size) for model in self.models)

    def step(self, ids: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """The logarithm of the members' mean probabilities (B x V), and their states."""
        steps = [model.step(ids, part) for model, part in zip(self.models, state, strict=True)]
        sizes = [logits.shape[-1] for logits, _ in steps]
        if len(set(sizes)) > 1:
            raise UserError(f"the models of an ensemble must share a vocabulary, but theirs have {sizes} ids")
        log_probs = torch.stack([logits.log_softmax(dim=-1) for logits, _ in steps])  # M x B x V
        return log_probs.logsumexp(dim=0) - math.log(len(steps)), tuple(part for _, part in steps)

    def select(self, state: tuple[Any, ...], rows: Tensor) -> tuple[Any, ...]:
        """The rows of every member."""
        return tuple(model.select(part, rows) for model, part in zip(self.models, state, strict=True))

    def attention(self, state: tuple[Any, ...]) -> Tensor:
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
        return torch.stack(weights).mean(dim=0)
