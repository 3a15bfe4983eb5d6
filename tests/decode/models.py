"""Small models to decode from: a table of bigrams, a recurrent network with random weights, a translator."""

from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Ints = np.ndarray[Any, np.dtype[np.int64]]
Logits = np.ndarray[Any, Any]


class Bigram:
    """What comes next depends on the last id alone; counts the rows that it was asked to step."""

    def __init__(self, probabilities: list[list[float]]) -> None:
        with np.errstate(divide="ignore"):
            self.logits = np.log(np.array(probabilities, np.float32))  # V x V
        self.stepped = 0

    def start(self, batch_size: int) -> None:
        return None

    def step(self, ids: Ints, state: None) -> tuple[Logits, None]:
        self.stepped += len(ids)
        return self.logits[ids], None

    def select(self, state: None, rows: Ints) -> None:
        return None


class Recurrent:
    """A GRU in float64; its state carries the whole history, so a mix-up of rows changes what comes next."""

    def __init__(self, size: int, hidden: int = 12, seed: int = 0) -> None:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(size, hidden).double()
            self.cell = nn.GRUCell(hidden, hidden).double()
            self.output = nn.Linear(hidden, size).double()
        self.hidden = hidden

    def start(self, batch_size: int) -> Tensor:
        return torch.zeros(batch_size, self.hidden, dtype=torch.float64)  # B x H

    @torch.no_grad()
    def step(self, ids: Ints, state: Tensor) -> tuple[Logits, Tensor]:
        state = self.cell(self.embedding(torch.from_numpy(ids)), state)  # B x H
        return (4 * self.output(state)).numpy(), state  # B x V; sharper than at random

    def select(self, state: Tensor, rows: Ints) -> Tensor:
        return state[rows]


class Translator(Recurrent):
    """A recurrent network that starts from a source of its own in each row, and attends to it.

    Only the first `possible` ids ever come; the others make room for beams as wide as the vocabulary.
    """

    def __init__(self, size: int, seed: int = 0, places: int = 4, possible: int | None = None, rows: int = 12) -> None:
        super().__init__(size, seed=seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed + 1)
            self.sources = torch.randn(rows, places, self.hidden, dtype=torch.float64)  # R x S x H
        self.possible = possible or size
        self.order = list(range(rows))

    def only(self, rows: list[int]) -> "Translator":
        """This model before some of its sentences."""
        other = copy(self)
        other.order = [self.order[row] for row in rows]
        return other

    def start(self, batch_size: int) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        sources = self.sources[self.order[:batch_size]]  # B x S x H
        return sources.mean(dim=1), sources

    def step(self, ids: Ints, state: tuple[Tensor, Tensor]) -> tuple[Logits, tuple[Tensor, Tensor]]:  # type: ignore[override]
        logits, hidden = super().step(ids, state[0])  # B x V, B x H
        impossible = np.arange(logits.shape[1]) >= self.possible  # V
        return np.where(impossible, -np.inf, logits), (hidden, state[1])

    def select(self, state: tuple[Tensor, Tensor], rows: Ints) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return state[0][rows], state[1][rows]

    def attention(self, state: tuple[Tensor, Tensor]) -> Logits:
        return torch.einsum("bh,bsh->bs", *state).mul(4).softmax(dim=-1).numpy()  # B x S
