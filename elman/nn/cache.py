"""The continuous cache: words that stood in the text of late are likelier where it looks as it did before them."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.fast.autograd import can_call
from elman.nn.fast.compiled import scratch

Floats = NDArray[np.float64]


class ContinuousCache:
    """The latest words of a text, by the hidden states that they stood behind (Grave, Joulin and Usunier, 2017).

        p_cache(w | h_t) = Σ_i 1{w = x_i+1} exp(θ h_t · h_i) / Σ_i exp(θ h_t · h_i),   i < t, the `size` latest
        p(w | h_t) = (1 - λ) p_softmax(w | h_t) + λ p_cache(w | h_t)

    h_t is what the softmax sees after the word x_t, θ is `theta`, λ is `weight`. A cache that holds nothing yet leaves
    the softmax alone. What is asked of it changes nothing; `add` does.

    >>> cache = ContinuousCache(size=100, theta=1.0, weight=0.25)
    >>> cache.add(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), torch.tensor([7, 8]))
    >>> share = cache.shares(torch.tensor([[0.0, 2.0]]), torch.tensor([8]))  # e^2 of 1 + e^2
    >>> share.round(4).tolist()
    [0.8808]
    >>> np.exp(cache.mixed(np.log([0.5]), share)).round(4).tolist()  # 0.75 * 0.5 + 0.25 * 0.8808
    [0.5952]
    """

    def __init__(self, size: int, theta: float, weight: float) -> None:
        self.size, self.theta, self.weight = size, theta, weight
        self.hidden: Tensor | None = None  # M x H, the latest last
        self.ids: Tensor | None = None  # M: the word behind each

    def __len__(self) -> int:
        return 0 if self.ids is None else len(self.ids)

    def copy(self) -> "ContinuousCache":
        """A cache of the same words; to add to it leaves this one as it is."""
        twin = ContinuousCache(self.size, self.theta, self.weight)
        twin.hidden, twin.ids = self.hidden, self.ids  # which are never written to
        return twin

    def add(self, hidden: Tensor, ids: Tensor) -> None:
        """Remember words (N) and the hidden states that they stood behind (N x H); the oldest are forgotten."""
        self.hidden, self.ids = (part[-self.size :].clone() for part in self._with(hidden, ids))

    def shares(self, hidden: Tensor, targets: Tensor) -> Floats:
        """p_cache of each target (N) of a text, after its hidden state (N x H).

        A row sees the rows before it, too. The share of a row that sees nothing is NaN.
        """
        states, ids = self._with(hidden, targets)  # M + N
        if can_call(hidden, states):
            scores = scratch(hidden, "cache", len(hidden), len(states))
            torch.mm(hidden, states.t(), out=scores)
            told = [part.long().contiguous() for part in (ids, targets)]
            threads = kernels.threads_for(min(scores.numel(), len(hidden) * self.size))
            found: Floats = kernels.native.cache_shares(
                *map(to_dlpack, (scores, *told)), self.size, self.theta, threads
            )
        else:
            weights = self._weights(hidden, states).masked_fill(ids != targets.unsqueeze(1), 0.0)
            found = weights.sum(dim=1).double().numpy()
        if not len(self) and len(found):
            found[0] = np.nan
        return found

    def distributions(self, hidden: Tensor, targets: Tensor, vocab_size: int) -> Tensor:
        """p_cache of every word (N x V) at each place of a text; of a row that sees nothing, NaN."""
        states, ids = self._with(hidden, targets)
        weights = self._weights(hidden, states)  # N x (M + N)
        rows = weights.new_zeros(len(hidden), vocab_size)
        rows.index_add_(1, ids, weights)
        if not len(self) and len(rows):
            rows[0] = np.nan
        return rows

    def mixed(self, log_probs: Floats, shares: Floats) -> Floats:
        """log p of words, from log p_softmax and p_cache; where that is NaN, there is only the softmax."""
        if not self.weight:
            return log_probs
        with np.errstate(divide="ignore", invalid="ignore"):  # what is not in the cache; what has seen nothing
            both = np.logaddexp(np.log1p(-self.weight) + log_probs, np.log(self.weight) + np.log(shares))
        return np.where(np.isnan(shares), log_probs, both)

    def _with(self, hidden: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        if self.hidden is None or self.ids is None:
            return hidden, ids
        return torch.cat([self.hidden, hidden]), torch.cat([self.ids, ids])

    def _weights(self, hidden: Tensor, states: Tensor) -> Tensor:
        """How much each of M + N places counts for each of N rows: the equation itself."""
        places = torch.arange(len(states))
        own = len(states) - len(hidden) + torch.arange(len(hidden)).unsqueeze(1)  # N x 1: the place of each row
        hidden_from = (places >= own) | (places < own - self.size)  # N x (M + N)
        scores = (self.theta * (hidden @ states.t())).masked_fill(hidden_from, -torch.inf)
        return scores.softmax(dim=1).nan_to_num(0.0)
