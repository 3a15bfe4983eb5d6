"""What stands for an id: a vector of a table that is learned, or a vector with a single one."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, one_hot

TINY = 1e-7
"""PyTorch adds it to a norm before it divides by it."""


class OneHot(nn.Module):
    """Ids as one-hot vectors, in the place of an embedding."""

    def __init__(self, vocab_size: int) -> None:
        super().__init__()
        self.num_embeddings = self.embedding_dim = vocab_size

    def forward(self, ids: Tensor) -> Tensor:
        """B x T ids to B x T x V vectors with a single one.

        >>> OneHot(3)(torch.tensor([[2, 0]]))
        tensor([[[0., 0., 1.],
                 [1., 0., 0.]]])
        """
        return one_hot(ids, self.embedding_dim).to(torch.get_default_dtype())


class Embedding(nn.Embedding):
    """`torch.nn.Embedding`, whose table stays as it is while it is not trained.

    With `max_norm` PyTorch shortens the rows that are looked up, in the table itself, whenever that is. Here it does so
    in training; afterwards the vectors that are handed out are shortened, so that several threads may look them up.

    >>> table = Embedding(4, 2, max_norm=1.0, padding_idx=0).eval()
    >>> _ = table.weight.data.fill_(3.0)
    >>> table(torch.tensor([1])).norm().round(decimals=4), table.weight[1].tolist()
    (tensor(1., grad_fn=<RoundBackward1>), [3.0, 3.0])
    """

    def forward(self, ids: Tensor) -> Tensor:
        """The vectors of ids of any shape (... x E)."""
        if self.max_norm is None or self.training:
            return super().forward(ids)
        vectors = embedding(ids, self.weight)
        norms = vectors.norm(p=self.norm_type, dim=-1, keepdim=True)  # ... x 1
        return vectors * torch.where(norms > self.max_norm, self.max_norm / (norms + TINY), torch.ones_like(norms))


def make_embedding(size: int, dimension: int, **options: Any) -> "Embedding | OneHot":
    """A table of `size` vectors with the options of `torch.nn.Embedding`; one-hot vectors where `dimension` is 0.

    >>> make_embedding(9, 4, padding_idx=2).weight[2].tolist(), make_embedding(9, 0).embedding_dim
    ([0.0, 0.0, 0.0, 0.0], 9)
    """
    return Embedding(size, dimension, **options) if dimension else OneHot(size)


@torch.no_grad()
def clear_padding(network: nn.Module) -> None:
    """Make the vector of every embedding's padding index zero, which drawing all of its rows anew has changed.

    >>> table = Embedding(3, 2, padding_idx=1)
    >>> _ = nn.init.normal_(table.weight)
    >>> clear_padding(table)
    >>> table.weight[1].tolist()
    [0.0, 0.0]
    """
    for table in network.modules():
        if isinstance(table, nn.Embedding) and table.padding_idx is not None:
            table.weight[table.padding_idx].zero_()
