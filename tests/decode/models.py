"""Two small models to decode from: a table of bigrams, and a recurrent network with random weights."""

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
