"""Pairs side by side: sources as they are, targets packed, the longest target first."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elman.batches.examples import pad

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Pairs as the network learns them."""

    source: Tensor
    """B x S."""
    lengths: Tensor
    """B: tokens of each source."""
    inputs: Tensor
    """N, packed: the token before each one to be said, the end token before the first."""
    targets: Tensor
    """N, packed: the tokens to be said, the end token last."""
    batch_sizes: Tensor
    """T: how many targets have a first token, a second one, ..."""
    order: Ints
    """B: which of the given pairs each row is."""

    def __str__(self) -> str:
        return f"of {len(self.source)} pairs, {len(self.targets)} target tokens"


def make_batch(sources: Sequence[Ints], targets: Sequence[Ints], end: int) -> Batch:
    """Encoded pairs as a batch; `end` stands before and behind each target.

    >>> batch = make_batch([np.array([7]), np.array([8, 9])], [np.array([3]), np.array([4, 5])], end=1)
    >>> batch.source.tolist(), batch.inputs.tolist(), batch.targets.tolist(), batch.batch_sizes.tolist()
    ([[8, 9], [7, 0]], [1, 1, 4, 3, 5], [4, 3, 5, 1, 1], [2, 2, 1])
    """
    sizes = np.array([len(target) + 1 for target in targets])
    order = np.argsort(-sizes, kind="stable")
    source, lengths = pad([sources[row] for row in order])
    said, _ = pad([np.concatenate(([end], targets[row], [end])) for row in order])  # B x T + 1
    real = torch.arange(said.shape[1] - 1).unsqueeze(1) < torch.from_numpy(sizes[order])  # T x B
    return Batch(source, lengths, said[:, :-1].t()[real], said[:, 1:].t()[real], real.sum(dim=1), order)
