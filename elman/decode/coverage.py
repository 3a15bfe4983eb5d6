"""Whether a translation has attended to all of its source (Wu et al. 2016)."""

from typing import Any

import numpy as np

from elman.decode.scores import Floats, Ints, Logits
from elman.decode.step_model import Attending
from elman.errors import UserError

UNSEEN = 1e-6  # the least attention a place counts as, since log 0 would outweigh everything else


class Coverage:
    """The attention that each open hypothesis (N) has paid to each place of its source (S), summed over its steps.

    The penalty is cp = beta * sum over places of log(min(attention, 1)): 0 where every place has had its share.

    >>> class Attentive:
    ...     def attention(self, state): return state
    >>> coverage = Coverage(Attentive(), beta=0.2, source_lengths=np.array([2, 1]))
    >>> coverage.read(np.array([[1.0, 0.5], [1.0, 0.0]]))
    >>> coverage.penalties(np.array([0, 1]), np.array([0, 1])).round(3).tolist()  # the second has one place only
    [-0.139, 0.0]
    """

    def __init__(self, model: object, beta: float, source_lengths: Ints | None) -> None:
        if not isinstance(model, Attending):
            raise UserError("coverage counts attention, which this model does not have: set coverage to 0")
        self.model, self.beta, self.source_lengths = model, beta, source_lengths
        self.paid: Logits | None = None  # N x S

    def read(self, state: Any) -> None:
        """Add what the step that led to `state` attended to."""
        weights = self.model.attention(state)  # N x S
        self.paid = weights if self.paid is None else self.paid + weights

    def select(self, parents: Ints) -> None:
        """Go on with these hypotheses."""
        if self.paid is not None:
            self.paid = self.paid[parents]

    def penalties(self, parents: Ints, rows: Ints) -> Floats:
        """The penalties of some hypotheses, which belong to sentences `rows`."""
        if self.paid is None:
            return np.zeros(len(rows))
        paid = self.paid[parents].astype(np.float64)  # M x S
        logs = np.log(paid.clip(UNSEEN, 1))  # M x S
        if self.source_lengths is not None:
            logs[np.arange(paid.shape[1]) >= self.source_lengths[rows][:, None]] = 0
        return np.asarray(self.beta * logs.sum(axis=1))
