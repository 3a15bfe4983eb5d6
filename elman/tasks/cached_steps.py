"""A language model with a cache, one id at a time: it remembers what it has read and what it has written."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from elman.decode.scores import Ints, Logits
from elman.nn.cache import ContinuousCache
from elman.nn.language import LanguageNetwork

ROOM = 64  # places that a memory has at first


class _Memory:
    """Hidden states and ids of some rows. A state counts how much of it is its own, so it may grow under others."""

    def __init__(self, hidden: Tensor, ids: Tensor, filled: int) -> None:
        self.hidden, self.ids, self.filled = hidden, ids, filled  # R x C x H, R x C


class CachedState(NamedTuple):
    """What some rows have read: the network's state, the hidden state before the next id, and the rows' own places."""

    inner: Any
    last: Tensor | None  # R x H; None before the first id
    memory: _Memory | None
    used: int


class CachedSteps:
    """A network with a cache, one id at a time; what the cache holds already stands before every row's own words."""

    def __init__(self, network: LanguageNetwork, cache: ContinuousCache, label: int | None = None) -> None:
        self.network, self.cache, self.label = network, cache, label

    def start(self, batch_size: int) -> CachedState:
        """The state of rows that have read nothing yet."""
        return CachedState(None, None, None, 0)

    @torch.no_grad()
    def step(self, ids: Ints, state: CachedState) -> tuple[Logits, CachedState]:
        """Read one id a row; log-probabilities of the next."""
        read = torch.from_numpy(ids)
        memory, used = self._remembered(state, read)
        labels = None if self.label is None else torch.full_like(read, self.label)
        hidden, inner = self.network.hidden(read.unsqueeze(1), state.inner, labels=labels)  # R x 1 x H
        hidden = hidden[:, 0]  # R x H
        rows = self.network.softmax.log_probs(hidden)  # R x V
        after = CachedState(inner, hidden, memory, used)
        return self._mixed(rows, hidden, after).numpy(), after

    def select(self, state: CachedState, rows: Ints) -> CachedState:
        """The state of some rows."""
        picked = torch.from_numpy(rows)
        inner = self.network.select(state.inner, picked)
        last = None if state.last is None else state.last[picked]
        if state.memory is None:
            return CachedState(inner, last, None, 0)
        hidden, ids = (part[picked, : state.used] for part in (state.memory.hidden, state.memory.ids))
        return CachedState(inner, last, _Memory(hidden, ids, state.used), state.used)

    def _remembered(self, state: CachedState, read: Tensor) -> tuple[_Memory | None, int]:
        """The rows' own places with the ids that they read now, each behind the hidden state before it."""
        if state.last is None:
            return None, 0
        memory, used = state.memory, state.used
        if memory is None or memory.filled != used or used == memory.ids.shape[1]:
            kept = min(used, self.cache.size)
            hidden = state.last.new_empty(len(read), max(ROOM, 2 * kept), state.last.shape[1])
            ids = read.new_empty(len(read), hidden.shape[1])
            if memory is not None:
                latest = slice(used - kept, used)
                hidden[:, :kept], ids[:, :kept] = memory.hidden[:, latest], memory.ids[:, latest]
            memory, used = _Memory(hidden, ids, kept), kept
        memory.hidden[:, used], memory.ids[:, used] = state.last, read
        memory.filled = used + 1
        return memory, used + 1

    def _mixed(self, rows: Tensor, hidden: Tensor, state: CachedState) -> Tensor:
        """log((1 - λ) p_softmax + λ p_cache) for every id: R x V."""
        own = min(state.used, self.cache.size)
        shared = min(len(self.cache), self.cache.size - own)
        if not own + shared or not self.cache.weight:
            return rows
        scores, weight = [], self.cache.weight
        if shared:
            assert self.cache.hidden is not None and self.cache.ids is not None
            scores.append(hidden @ self.cache.hidden[-shared:].t())  # R x M
        if own:
            assert state.memory is not None
            places = slice(state.used - own, state.used)
            scores.append(torch.einsum("rh,rch->rc", hidden, state.memory.hidden[:, places]))
        weights = (self.cache.theta * torch.cat(scores, dim=1)).softmax(dim=1)  # R x (M + C)
        mixed = (1 - weight) * rows.exp()
        if shared:
            mixed.index_add_(1, self.cache.ids[-shared:], weights[:, :shared], alpha=weight)  # type: ignore[index]
        if own:
            mixed.scatter_add_(1, state.memory.ids[:, places], weight * weights[:, shared:])  # type: ignore[union-attr]
        return mixed.log()
