"""The best tags of a linear-chain CRF, from its scores as arrays: no PyTorch."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elman import kernels

NEVER = -1e30
"""The score of a forbidden step: finite, so that no gradient is NaN, and so low that its probability is exactly 0."""
IMPOSSIBLE = NEVER / 2
"""A path whose score is below this has at least one forbidden step."""
NO_PATH = "every tag sequence is forbidden for sequence {} at its length"
Numbers = NDArray[Any]


class Chain(NamedTuple):
    """The scores of a CRF's own: of the first tag (K), from one to the next (K x K), of the last (K)."""

    start: Numbers
    transitions: Numbers
    end: Numbers

    @classmethod
    def of(cls, arrays: Mapping[str, Numbers], name: str) -> "Chain":
        """The scores of the `elman.nn.CRF` of that name among the weights of a network, what is forbidden very low."""
        parts = ((arrays[f"{name}.{part}"], arrays[f"{name}.forbidden_{part}"]) for part in cls._fields)
        return cls(*(np.where(forbidden, np.float32(NEVER), scores) for scores, forbidden in parts))

    @classmethod
    def mean(cls, chains: "Sequence[Chain]") -> "Chain":
        """The mean of the scores of several, which forbid the same."""
        return cls(*(np.mean(parts, axis=0) for parts in zip(*chains, strict=True))) if len(chains) > 1 else chains[0]


def best_sequences(emissions: Numbers, lengths: Numbers, chain: Chain) -> tuple[Numbers, Numbers]:
    """The best tags (N) and scores (B) of sequences that lie one after the other (N x K, float32), compiled.

    >>> emissions, zeros = np.array([[1, 0], [0, 2], [3, 0]], np.float32), np.zeros(2, np.float32)
    >>> chain = Chain(zeros, np.zeros((2, 2), np.float32), zeros)
    >>> best_sequences(emissions, np.array([2, 1]), chain)[0].tolist() if kernels.available() else [0, 1, 0]
    [0, 1, 0]
    """
    paths, scores = kernels.native.viterbi(emissions, lengths.astype(np.int64), *chain)
    impossible = scores < IMPOSSIBLE
    if impossible.any():
        raise ValueError(NO_PATH.format(int(impossible.argmax())))
    return paths, scores
