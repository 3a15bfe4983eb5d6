"""A language model as something that reads one id at a time: what `elman.decode` searches."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from elman.baselines import KneserNey
from elman.decode.step_model import StepModel
from elman.nn.language import LanguageNetwork
from elman.runtime import Engine, State


class NetworkSteps:
    """A network, one id at a time. The state is explicit; nothing is kept on the network."""

    def __init__(self, network: LanguageNetwork, label: int | None = None) -> None:
        self.network, self.label = network, label

    def start(self, batch_size: int) -> Any:
        """Nothing read yet."""
        return None

    @torch.no_grad()
    def step(self, ids: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Read one id a row; log-probabilities of the next."""
        labels = None if self.label is None else torch.full_like(ids, self.label)
        hidden, state = self.network.hidden(ids.unsqueeze(1), state, labels=labels)  # B x 1 x H
        return self.network.softmax.log_probs(hidden[:, 0]), state

    def select(self, state: Any, rows: Tensor) -> Any:
        """The state of some rows."""
        return self.network.select(state, rows)


class EngineSteps:
    """The compiled engine, one id at a time."""

    def __init__(self, engine: Engine, label: int | None = None) -> None:
        self.engine, self.label = engine, label

    def start(self, batch_size: int) -> State:
        """Nothing read yet."""
        return self.engine.start(batch_size)

    def step(self, ids: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one id a row; log-probabilities of the next."""
        labels = None if self.label is None else [self.label] * len(ids)
        log_probs, state = self.engine.step(ids.numpy(), state, labels)
        return torch.from_numpy(log_probs), state

    def select(self, state: State, rows: Tensor) -> State:
        """The state of some rows."""
        return state.select(rows.tolist())


class NgramSteps:
    """An n-gram model, one id at a time; the state is the last ids of each row, None before the first."""

    def __init__(self, model: KneserNey) -> None:
        self.model = model

    def start(self, batch_size: int) -> list[list[int] | None]:
        """Nothing read yet."""
        return [None] * batch_size

    def step(self, ids: Tensor, state: list[list[int] | None]) -> tuple[Tensor, list[list[int] | None]]:
        """Read one id a row; log-probabilities of the next."""
        read = [self._read(row, int(new)) for row, new in zip(state, ids, strict=True)]
        rows = np.stack([self.model.distribution(row) for row in read])
        return torch.from_numpy(np.log(rows)), list(read)

    def _read(self, row: list[int] | None, new: int) -> list[int]:
        if row is None:  # the model puts the start before a text by itself
            return [] if new == self.model.start else [new]
        return [*row, new][-max(self.model.order - 1, 1) :]

    def select(self, state: list[list[int] | None], rows: Tensor) -> list[list[int] | None]:
        """The state of some rows."""
        return [state[int(row)] for row in rows]


class Continued:
    """A step model that has already read all but the last of some ids."""

    def __init__(self, model: StepModel[Any], ids: list[int]) -> None:
        self.model, self.step, self.select = model, model.step, model.select
        self.state = model.start(1)
        for new in ids[:-1]:
            _, self.state = model.step(torch.tensor([new]), self.state)
        self.fresh = len(ids) == 1

    def start(self, batch_size: int) -> Any:
        """The state after those ids, for every row."""
        if self.fresh:
            return self.model.start(batch_size)
        return self.model.select(self.state, torch.zeros(batch_size, dtype=torch.long))
