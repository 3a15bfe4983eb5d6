"""The network of a shift-reduce parser: what it looks at in, one number out that says whether to reduce."""

from typing import cast

import torch
from torch import Tensor, nn


class ActionScorer(nn.Module):
    """s = v' relu(W [e_1; ...; e_F] + b) + c, over the vectors of F features (Chen and Manning 2014).

    >>> ActionScorer(rows=20, features=11, embedding_size=4, hidden_size=8)(torch.zeros(3, 11, dtype=torch.int64)).shape
    torch.Size([3])
    """

    def __init__(self, rows: int, features: int, embedding_size: int, hidden_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.embedding = nn.Embedding(rows, embedding_size)
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.hidden, self.output = nn.Linear(features * embedding_size, hidden_size), nn.Linear(hidden_size, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor) -> Tensor:
        """How much speaks for a reduce (K), from K x F rows of the table."""
        vectors = self.dropout(self.embedding(rows).flatten(1))  # K x F*E
        return cast(Tensor, self.output(torch.relu(self.hidden(vectors)))).squeeze(1)
