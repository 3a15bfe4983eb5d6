"""The scores of ids and of whole sequences."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman import kernels

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Logits = NDArray[Any]
"""N x V in float32 or float64."""


@dataclass(frozen=True)
class Hypothesis:
    """One sequence that a search found: its ids (the stop id left out), log p, score, and whether it has ended.

    `finished` is False where the limit of length came before the stop id.
    """

    ids: list[int]
    log_prob: float
    score: float
    finished: bool


def normalised(log_prob: Floats, length: float | Ints, power: float) -> Floats:
    """The score of a sequence: its log-probability divided by `length ** power`, the end token counted in `length`.

    >>> normalised(np.array([-6.0]), 4, 0.5).tolist()
    [-3.0]
    """
    return log_prob if power == 0 else np.asarray(log_prob / np.asarray(length, dtype=np.float64) ** power)


def log_softmax(logits: Logits, out: Logits | None = None) -> Logits:
    """log p of each id (N x V), in `out` where that is given; in float32 where the logits are that, or less exact.

    >>> np.exp(log_softmax(np.log([[1.0, 3.0]]))).round(2).tolist()
    [[0.25, 0.75]]
    """
    found: Logits = np.empty(logits.shape, np.result_type(logits.dtype, np.float32)) if out is None else out
    with np.errstate(invalid="ignore"):  # logits that are no numbers give log-probabilities that are none
        if kernels.available() and found.dtype == np.float32 and len(logits):
            np.copyto(found, logits)
            losses = np.empty(len(logits), np.float32)  # N: log Z less the first id's logit; `found` becomes a gradient
            targets, threads = np.zeros(len(logits), np.int64), kernels.threads_for(logits.size)
            kernels.native.cross_entropy(found, targets, losses, 0.0, threads)
            totals = losses + logits[:, 0]  # N: log Z
            if np.isfinite(totals).all():
                np.subtract(logits, totals[:, None], out=found)
                return found
        np.subtract(logits, logits.max(axis=1, keepdims=True), out=found)
    np.subtract(found, np.log(np.exp(found).sum(axis=1, keepdims=True)), out=found)
    return found
