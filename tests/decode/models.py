"""Small models to decode from: a table of bigrams, a recurrent network with random weights, a translator."""

from copy import copy

import torch
from torch import Tensor, nn


class Bigram:
    """What comes next depends on the last id alone; counts the rows that it was asked to step."""

    def __init__(self, probabilities: list[list[float]]) -> None:
        self.logits = torch.tensor(probabilities).log()  # V x V
        self.stepped = 0

    def start(self, batch_size: int) -> None:
        return None

    def step(self, ids: Tensor, state: None) -> tuple[Tensor, None]:
        self.stepped += len(ids)
        return self.logits[ids], None

    def select(self, state: None, rows: Tensor) -> None:
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

    def step(self, ids: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = self.cell(self.embedding(ids), state)  # B x H
        return 4 * self.output(state), state  # B x V; sharper than at random

    def select(self, state: Tensor, rows: Tensor) -> Tensor:
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
        """The same model before some of its sentences."""
        other = copy(self)
        other.order = [self.order[row] for row in rows]
        return other

    def start(self, batch_size: int) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        sources = self.sources[self.order[:batch_size]]  # B x S x H
        return sources.mean(dim=1), sources

    def step(self, ids: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, Tensor]]:  # type: ignore[override]
        logits, hidden = super().step(ids, state[0])  # B x V, B x H
        impossible = torch.arange(logits.shape[1]) >= self.possible  # V
        return logits.masked_fill(impossible, -torch.inf), (hidden, state[1])

    def select(self, state: tuple[Tensor, Tensor], rows: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        return state[0][rows], state[1][rows]

    def attention(self, state: tuple[Tensor, Tensor]) -> Tensor:
        return torch.einsum("bh,bsh->bs", *state).mul(4).softmax(dim=-1)  # B x S
