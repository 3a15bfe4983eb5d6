"""A translator as something that writes one id at a time: what `elman.decode` searches.

The compiled decoder does it wherever it can run the network, PyTorch does the rest; both agree up to rounding. The
state is explicit; nothing is kept on the network.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from elman.nn.decoder import DecoderState, Memory
from elman.nn.translation import TranslationNetwork
from elman.runtime import decoder as compiled


class CompiledState(NamedTuple):
    """The state of the compiled decoder, and where the logits of its rows stand until the next step."""

    decoder: compiled.DecoderState
    room: Tensor


class CompiledSteps:
    """The sources of a batch, row i the i-th of them, written by the compiled decoder."""

    def __init__(self, decoder: compiled.Decoder, network: TranslationNetwork, source: Tensor, lengths: Tensor) -> None:
        self.decoder, self.network, self.source, self.lengths = decoder, network, source, lengths

    @torch.no_grad()
    def start(self, batch_size: int) -> CompiledState:
        """The sources read, nothing written yet."""
        memory, hidden = self.network.encode(self.source[:batch_size], self.lengths[:batch_size])
        return CompiledState(self.decoder.begin(memory, hidden), self.decoder.room(batch_size))

    def step(self, ids: Tensor, state: CompiledState) -> tuple[Tensor, CompiledState]:
        """Write one id a row; logits of the next, which last until the step after."""
        # Fresh memory would be mapped page by page at every step.
        room = state.room if len(state.room) >= len(ids) else self.decoder.room(len(ids))
        logits, decoder = self.decoder.step(ids, state.decoder, room)
        return logits, CompiledState(decoder, room)

    def select(self, state: CompiledState, rows: Tensor) -> CompiledState:
        """The state of some rows."""
        return CompiledState(state.decoder.select(rows.numpy()), state.room)

    def attention(self, state: CompiledState) -> Tensor:
        """Where the last step of each row looked (R x S)."""
        return _looked(torch.from_numpy(state.decoder.weights) if state.decoder.weights.size else None)


class StepState(NamedTuple):
    """What some rows have written so far, and the memory of the source of each."""

    decoder: DecoderState
    memory: Memory
    owners: Tensor
    """R: the source of each row."""


class TranslationSteps:
    """The same by the network itself."""

    def __init__(self, network: TranslationNetwork, source: Tensor, lengths: Tensor) -> None:
        self.network, self.source, self.lengths = network, source, lengths

    @torch.no_grad()
    def start(self, batch_size: int) -> StepState:
        """The sources read, nothing written yet."""
        memory, hidden = self.network.encode(self.source[:batch_size], self.lengths[:batch_size])
        return StepState(self.network.decoder.begin(hidden), memory, torch.arange(batch_size))

    @torch.no_grad()
    def step(self, ids: Tensor, state: StepState) -> tuple[Tensor, StepState]:
        """Write one id a row; logits of the next."""
        logits, decoder = self.network.step(ids, state.decoder, state.memory)
        return logits, StepState(decoder, state.memory, state.owners)

    def select(self, state: StepState, rows: Tensor) -> StepState:
        """The state of some rows."""
        owners = state.owners[rows]
        as_before = torch.equal(owners, state.owners)  # other hypotheses of the same sources
        return StepState(state.decoder.select(rows), state.memory if as_before else state.memory.select(rows), owners)

    def attention(self, state: StepState) -> Tensor:
        """Where the last step of each row looked (R x S)."""
        return _looked(state.decoder.weights)


def _looked(weights: Tensor | None) -> Tensor:
    if weights is None:
        raise ValueError("nothing was looked at: the decoder has no attention, or has made no step yet")
    return weights
