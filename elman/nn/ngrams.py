"""A linear classifier of n-grams beside a network."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding
from torch.nn.utils.rnn import PackedSequence

from elman.ragged import NGRAM_SCALE, Packed


class NGramScores(nn.Module):
    """What each n-gram of a text says of its class (Joulin et al., 2017), beside a network (Cheng et al., 2016).

        g_t = 10/√n Σ_k W[w_t-k+1 .. w_t],  k = 1 .. order

    with n the number of n-grams of the text, each of which has the row of W that its hash says. The sum of g_t over the
    steps is a score for each class. `dropout` leaves n-grams out while training.

    >>> from elman.nn.inputs import packed_sequence
    >>> from elman.ragged import Ragged
    >>> NGramScores(1000, 3, order=2)(packed_sequence(Ragged.of([[3, 1], [4, 1, 5]]))).shape
    torch.Size([5, 3])
    """

    def __init__(self, buckets: int, classes: int, order: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(buckets, classes))
        self.order, self.dropout = order, dropout

    def forward(self, tokens: PackedSequence) -> Tensor:
        """g_t of each step, packed as the ids are (N x C)."""
        sizes, sorted_by = tokens.batch_sizes.numpy(), tokens.sorted_indices
        order = np.arange(sizes[0]) if sorted_by is None else sorted_by.numpy()
        texts = Packed(tokens.data.numpy(), sizes, order).sequences()
        rows, shares = (torch.from_numpy(texts.packed(part)) for part in texts.ngrams(self.order, len(self.weight)))
        shares = dropout(shares, self.dropout, self.training)  # N x order
        return NGRAM_SCALE * (embedding(rows, self.weight) * shares.unsqueeze(2)).sum(dim=1)
