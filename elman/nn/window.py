"""The body of the feed-forward language model: a window of words in place of a state without end."""

import torch
from torch import Tensor, nn

from elman.nn.dropout import check_probability


class FixedWindow(nn.Module):
    """A hidden layer over the last N embeddings (Bengio et al., 2003).

        h_t = tanh(W [e_{t-N+1}; ...; e_t] + b)

    It streams like a recurrent layer: the state is the last N-1 embeddings, zeros before the first step.

    >>> layer = FixedWindow(embedding_size=3, window=4, hidden_size=5)
    >>> output, state = layer(torch.zeros(2, 7, 3))
    >>> output.shape, state.shape
    (torch.Size([2, 7, 5]), torch.Size([2, 3, 3]))
    """

    def __init__(self, embedding_size: int, window: int, hidden_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        if window < 1:
            raise ValueError(f"window must be at least 1, got {window}")
        self.embedding_size, self.window, self.hidden_size = embedding_size, window, hidden_size
        self.output_size = hidden_size
        self.hidden = nn.Linear(window * embedding_size, hidden_size)
        self.dropout = nn.Dropout(check_probability(dropout))

    def forward(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The hidden layer at every step (B x T x H) for the embeddings x (B x T x E), and the next state."""
        if x.dim() != 3 or x.size(-1) != self.embedding_size:
            raise ValueError(f"expected input of B x T x {self.embedding_size}, got {tuple(x.shape)}")
        expected = (x.size(0), self.window - 1, self.embedding_size)
        state = x.new_zeros(expected) if state is None else state
        if tuple(state.shape) != expected:
            raise RuntimeError(f"expected a state of {expected}, got {tuple(state.shape)}")
        seen = torch.cat((state, x), dim=1)  # B x N-1+T x E
        windows = seen.unfold(1, self.window, 1)  # B x T x E x N
        h = torch.tanh(self.hidden(windows.transpose(2, 3).flatten(2)))  # B x T x H
        return self.dropout(h), seen[:, x.size(1) :]
