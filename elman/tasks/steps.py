"""Models as something that writes one id at a time: what `elman.decode` searches.

Networks are here for those that `elman.runtime` does not run. The state is explicit; nothing is kept on the network.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from elman.baselines.kneser_ney import KneserNey
from elman.decode.scores import Ints, Logits
from elman.decode.step_model import StepModel
from elman.nn.decoder import DecoderState, Memory
from elman.nn.language import LanguageNetwork
from elman.nn.translation import TranslationNetwork
from elman.nn.writing import WritingNetwork
from elman.ragged import Ragged
from elman.runtime import Engine, State


class StepState(NamedTuple):
    """What some rows have written so far, and the memory of the source of each."""

    decoder: DecoderState
    memory: Memory
    owners: Tensor
    """R: the source of each row."""


class WritingSteps:
    """The sources of a batch (B x ..., of so many places each), row i the i-th of them, written by the network."""

    def __init__(self, network: WritingNetwork, source: Tensor, lengths: Tensor) -> None:
        self.network, self.source, self.lengths = network, source, lengths

    @torch.no_grad()
    def start(self, batch_size: int) -> StepState:
        """The sources read, nothing written yet."""
        memory, hidden = self.network.encode(self.source[:batch_size], self.lengths[:batch_size])
        return StepState(self.network.decoder.begin(hidden), memory, torch.arange(batch_size))

    @torch.no_grad()
    def step(self, ids: Ints, state: StepState) -> tuple[Logits, StepState]:
        """Write one id a row; logits of the next."""
        logits, decoder = self.network.step(torch.from_numpy(ids), state.decoder, state.memory)
        return logits.numpy(), StepState(decoder, state.memory, state.owners)

    def select(self, state: StepState, rows: Ints) -> StepState:
        """The state of some rows."""
        picked = torch.from_numpy(rows)
        owners = state.owners[picked]
        as_before = torch.equal(owners, state.owners)  # other hypotheses of the same sources
        return StepState(
            state.decoder.select(picked), state.memory if as_before else state.memory.select(picked), owners
        )

    def attention(self, state: StepState) -> Logits:
        """What the last step of each row attended to (R x S)."""
        if state.decoder.weights is None:
            raise ValueError("there is no attention: the decoder has no attention, or has made no step yet")
        return state.decoder.weights.detach().numpy()


class TranslationSteps(WritingSteps):
    """The sources of a batch, row i the i-th of them, written by the network itself."""

    def __init__(self, network: TranslationNetwork, sources: Ragged) -> None:
        super().__init__(network, torch.from_numpy(sources.padded()), torch.from_numpy(sources.lengths))  # B x S, B


class MemorySteps(WritingSteps):
    """A translator's steps from outputs and final states that the caller gives in the place of the encoder's."""

    network: TranslationNetwork

    def __init__(self, network: TranslationNetwork, outputs: Ragged, final: tuple[Logits, ...]) -> None:
        self.network, self.dtype = network, next(network.parameters()).dtype
        self.outputs = outputs
        self.final = tuple(torch.tensor(part, dtype=self.dtype) for part in final)  # each L*D x B x H

    @torch.no_grad()
    def start(self, batch_size: int) -> StepState:
        """Nothing written yet."""
        outputs = self.outputs.take(np.arange(batch_size))
        states, lengths = torch.tensor(outputs.padded(), dtype=self.dtype), torch.from_numpy(outputs.lengths)
        attention = self.network.decoder.attention
        keys = states if attention is None else attention.keys(states)  # B x S x K
        padding = torch.arange(states.shape[1]) >= lengths.unsqueeze(1)  # B x S
        hidden = self.network.begin(tuple(part[:, :batch_size] for part in self.final))
        return StepState(self.network.decoder.begin(hidden), Memory(states, keys, padding), torch.arange(batch_size))


class ForcedState(NamedTuple):
    """What some rows have written so far, and in how many steps."""

    inner: StepState
    steps: int


class ForcedSteps:
    """A source written by the network itself, which at some steps is made to attend to one place alone.

    `places` maps steps to places of the source, both from 0.
    """

    def __init__(self, network: TranslationNetwork, sources: Ragged, places: Mapping[int, int]) -> None:
        self.inner, self.places = TranslationSteps(network, sources), places

    def start(self, batch_size: int) -> ForcedState:
        """The sources read, nothing written yet."""
        return ForcedState(self.inner.start(batch_size), 0)

    @torch.no_grad()
    def step(self, ids: Ints, state: ForcedState) -> tuple[Logits, ForcedState]:
        """Write one id a row; logits of the next."""
        before, weights = state.inner, None
        if state.steps in self.places:
            place = torch.full((len(ids),), self.places[state.steps])
            weights = torch.nn.functional.one_hot(place, before.memory.states.shape[1]).to(before.memory.states.dtype)
        logits, decoder = self.inner.network.step(torch.from_numpy(ids), before.decoder, before.memory, weights)
        return logits.numpy(), ForcedState(StepState(decoder, before.memory, before.owners), state.steps + 1)

    def select(self, state: ForcedState, rows: Ints) -> ForcedState:
        """The state of some rows."""
        return ForcedState(self.inner.select(state.inner, rows), state.steps)

    def attention(self, state: ForcedState) -> Logits:
        """What the last step of each row attended to (R x S)."""
        return self.inner.attention(state.inner)


class NetworkSteps:
    """A network, one id at a time. The state is explicit; nothing is kept on the network."""

    def __init__(self, network: LanguageNetwork, label: int | None = None) -> None:
        self.network, self.label = network, label

    def start(self, batch_size: int) -> Any:
        """The state of rows that have read nothing yet."""
        return None

    @torch.no_grad()
    def step(self, ids: Ints, state: Any) -> tuple[Logits, Any]:
        """Read one id a row; log-probabilities of the next."""
        read = torch.from_numpy(ids)
        labels = None if self.label is None else torch.full_like(read, self.label)
        hidden, state = self.network.hidden(read.unsqueeze(1), state, labels=labels)  # B x 1 x H
        return self.network.softmax.log_probs(hidden[:, 0]).numpy(), state

    def select(self, state: Any, rows: Ints) -> Any:
        """The state of some rows."""
        return self.network.select(state, torch.from_numpy(rows))


class EngineSteps:
    """The compiled engine, one id at a time."""

    def __init__(self, engine: Engine, label: int | None = None) -> None:
        self.engine, self.label = engine, label

    def start(self, batch_size: int) -> State:
        """The state of rows that have read nothing yet."""
        return self.engine.start(batch_size)

    def step(self, ids: Ints, state: State) -> tuple[Logits, State]:
        """Read one id a row; log-probabilities of the next."""
        return self.engine.step(ids, state, None if self.label is None else [self.label] * len(ids))

    def select(self, state: State, rows: Ints) -> State:
        """The state of some rows."""
        return state.select(rows.tolist())


class NgramSteps:
    """An n-gram model, one id at a time; the state is the last ids of each row, None before the first."""

    def __init__(self, model: KneserNey) -> None:
        self.model = model

    def start(self, batch_size: int) -> list[list[int] | None]:
        """The state of rows that have read nothing yet."""
        return [None] * batch_size

    def step(self, ids: Ints, state: list[list[int] | None]) -> tuple[Logits, list[list[int] | None]]:
        """Read one id a row; log-probabilities of the next."""
        read = [self._read(row, int(new)) for row, new in zip(state, ids, strict=True)]
        rows = np.stack([self.model.distribution(row) for row in read])
        return np.log(rows), list(read)

    def _read(self, row: list[int] | None, new: int) -> list[int]:
        if row is None:  # the model puts the start before a text by itself
            return [] if new == self.model.start else [new]
        return [*row, new][-max(self.model.order - 1, 1) :]

    def select(self, state: list[list[int] | None], rows: Ints) -> list[list[int] | None]:
        """The state of some rows."""
        return [state[int(row)] for row in rows]


class Continued:
    """A step model that has already read all but the last of some ids."""

    def __init__(self, model: StepModel[Any], ids: list[int]) -> None:
        self.model, self.step, self.select = model, model.step, model.select
        self.state = model.start(1)
        for new in ids[:-1]:
            _, self.state = model.step(np.array([new]), self.state)
        self.fresh = len(ids) == 1

    def start(self, batch_size: int) -> Any:
        """The state after those ids, for every row."""
        if self.fresh:
            return self.model.start(batch_size)
        return self.model.select(self.state, np.zeros(batch_size, np.int64))
