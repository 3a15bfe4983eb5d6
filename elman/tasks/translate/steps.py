"""A translator as something that writes one id at a time: what `elman.decode` searches."""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elman.nn.decoder import DecoderState, Memory
from elman.nn.translation import TranslationNetwork

LARGE = 2**18
"""So many logits go to memory that is there already: fresh memory would be mapped page by page at every step."""


class StepState(NamedTuple):
    """What some rows have written so far, and the sources that they look at."""

    decoder: DecoderState
    memory: Memory
    owners: NDArray[np.int64]
    """R: the source of each row."""
    room: Tensor | None = None
    """Where the logits of many rows stand until the next step."""


class TranslationSteps:
    """The sources of a batch, row i the i-th of them. The state is explicit; nothing is kept on the network.

    However many rows a source has, its memory is there once.
    """

    def __init__(self, network: TranslationNetwork, source: Tensor, lengths: Tensor) -> None:
        self.network, self.source, self.lengths = network, source, lengths

    @torch.no_grad()
    def start(self, batch_size: int) -> StepState:
        """The sources read, nothing written yet."""
        memory, hidden = self.network.encode(self.source[:batch_size], self.lengths[:batch_size])
        return StepState(self.network.decoder.begin(hidden), memory, np.arange(batch_size))

    @torch.no_grad()
    def step(self, ids: Tensor, state: StepState) -> tuple[Tensor, StepState]:
        """Write one id a row; logits of the next. Those of many rows last until the step after."""
        size = self.network.softmax.vocab_size
        room = state.room
        if len(ids) * size >= LARGE and (room is None or len(room) < len(ids)):
            room = state.decoder.hidden[0].new_empty(len(ids), size)
        out = room[: len(ids)] if room is not None and len(ids) * size >= LARGE else None
        logits, decoder = self.network.step(ids, state.decoder, state.memory, out)
        return logits, StepState(decoder, state.memory, state.owners, room)

    def select(self, state: StepState, rows: Tensor) -> StepState:
        """The state of some rows."""
        owners = state.owners[rows.numpy()]
        decoder = state.decoder.select(rows)
        if np.array_equal(owners, state.owners):  # other hypotheses, as many for each source as before
            return StepState(decoder, state.memory, owners, state.room)
        memory, owners = _share(state.memory, owners)
        return StepState(decoder, memory, owners, state.room)

    def attention(self, state: StepState) -> Tensor:
        """Where the last step of each row looked (R x S)."""
        if state.decoder.weights is None:
            raise ValueError("nothing was looked at: the decoder has no attention, or has made no step yet")
        return state.decoder.weights


def _share(memory: Memory, owners: NDArray[np.int64]) -> tuple[Memory, NDArray[np.int64]]:
    """A memory whose sources have the rows that `owners` says, and the owners in it."""
    if np.any(np.diff(owners) < 0):  # rows of a source that are apart each get a copy of it
        return memory.select(torch.from_numpy(owners)), np.arange(len(owners))
    kept, owners, counts = np.unique(owners, return_inverse=True, return_counts=True)
    if len(kept) < len(memory):
        memory = memory.select(torch.from_numpy(kept))
    width = int(counts.max())
    if (counts == width).all():
        return Memory(memory.states, memory.keys, memory.padding, None, width), owners
    slots = np.arange(len(owners)) - (np.cumsum(counts) - counts)[owners]  # R: each row's place among its source's
    places = torch.from_numpy(owners * width + slots)
    return Memory(memory.states, memory.keys, memory.padding, places, width), owners
