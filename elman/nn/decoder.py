"""The decoder of a sequence-to-sequence network: a recurrent network that writes, attending to a memory.

Its kinds are the equations of `Decoder`. Of a known target, "plain", "tutorial" and "luong" compute all steps at once.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from elman.nn.attention import Attention
from elman.nn.recurrent import Recurrent
from elman.nn.steps import as_hidden, padded

Kind = Literal["plain", "bahdanau", "luong", "luong-feeding", "tutorial", "tutorial-attention"]


@dataclass(frozen=True)
class Memory:
    """The outputs of an encoder for B sources, which a decoder attends to."""

    states: Tensor
    """B x S x M."""
    keys: Tensor
    """B x S x K: what the attention makes of the states, once."""
    padding: Tensor
    """B x S: true behind the end of a source."""

    def select(self, rows: Tensor | slice) -> "Memory":
        """The memory of some of the sources."""
        return Memory(self.states[rows], self.keys[rows], self.padding[rows])

    def __len__(self) -> int:
        return len(self.states)


class DecoderState(NamedTuple):
    """What a decoder carries from step to step."""

    hidden: tuple[Tensor, ...]
    """Each L x R x H."""
    fed: Tensor | None
    """The readout of the step before (R x O) where that is fed."""
    weights: Tensor | None
    """The attention weights of the last step (R x S)."""

    def select(self, rows: Tensor) -> "DecoderState":
        """The state of some of the rows."""
        return DecoderState(
            tuple(part.index_select(1, rows) for part in self.hidden),
            None if self.fed is None else self.fed.index_select(0, rows),
            None if self.weights is None else self.weights.index_select(0, rows),
        )


class AttentionSums:
    """How much weight each place of a memory gets over all steps of a target: what a loss may ask for.

    >>> sums = AttentionSums()
    >>> sums.add(torch.tensor([[0.5, 0.5], [0.0, 1.0]]))
    >>> sums.add(torch.tensor([[1.0, 0.0]]))
    >>> sums.total
    tensor([[1.5000, 0.5000],
            [0.0000, 1.0000]])
    """

    def __init__(self) -> None:
        self.total: Tensor | None = None
        """B x S; None before the first step."""

    def add(self, weights: Tensor) -> None:
        """The weights of one step (R x S) of the first R rows, those whose target goes on."""
        before = self.total
        if before is not None:
            weights = before + nn.functional.pad(weights, (0, 0, 0, len(before) - len(weights)))  # B x S
        self.total = weights


class Decoder(nn.Module):
    """Embedded target tokens in, readouts for a softmax out; `kind` says which of these equations it computes.

        plain           s_t = f(x_t, s_t-1)              r_t = tanh(W s_t + b)
        bahdanau        s_t = f([x_t; c_t], s_t-1)       r_t = tanh(W [s_t; c_t; x_t] + b),  c_t = c(s_t-1)
        luong           s_t = f(x_t, s_t-1)              r_t = tanh(W [s_t; c_t] + b),       c_t = c(s_t)
        luong-feeding   s_t = f([x_t; r_t-1], s_t-1)     r_t = tanh(W [s_t; c_t] + b),       c_t = c(s_t)
        tutorial        s_t = f(relu(x_t), s_t-1)        r_t = s_t
        tutorial-attention
                        s_t = f(relu(W [x_t; c_t] + b), s_t-1)      r_t = s_t,               c_t = c(s_t-1)

    s_t is the state after step t, f the recurrent layers, x_t the embedded input, r_t the readout, and c(q) the context
    of a query q: the mean of the memory, weighted by the attention (Bahdanau et al. 2015; Luong et al. 2015). The last
    two are those of PyTorch's tutorial: the softmax is a linear layer of the state itself. With `gate` the context is
    β_t c(q), β_t = σ(w s + b) with s the state that is the query: how much of what it looks at a step takes in (Xu et
    al. 2015).

    >>> from elman.nn.attention import DotAttention
    >>> decoder = Decoder("luong", "gru", 3, 4, 4, 6, attention=DotAttention(4, 4))
    >>> states = torch.randn(2, 5, 4)
    >>> memory = Memory(states, states, torch.zeros(2, 5, dtype=torch.bool))
    >>> readout, state = decoder.step(torch.randn(2, 3), decoder.begin((torch.zeros(1, 2, 4),)), memory)
    >>> readout.shape, state.weights.shape
    (torch.Size([2, 6]), torch.Size([2, 5]))
    """

    def __init__(
        self,
        kind: Kind,
        cell: str,
        input_size: int,
        hidden_size: int,
        memory_size: int,
        output_size: int,
        *,
        attention: Attention | None = None,
        num_layers: int = 1,
        gate: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        alone = kind in ("plain", "tutorial")
        if (attention is None) != alone:
            raise ValueError(f"a {kind} decoder {'has no' if alone else 'needs an'} attention")
        self.kind, self.attention, self.input_size = kind, attention, input_size
        self.output_size = output_size
        fed = {"bahdanau": memory_size, "luong-feeding": output_size}.get(kind, 0)
        self.body = Recurrent(cell, input_size + fed, hidden_size, num_layers, **options)
        seen = memory_size if attention is not None else 0
        state = self.body.output_size  # of a projected LSTM less than the hidden size
        self.to_readout: nn.Linear | None = None
        self.combine: nn.Linear | None = None
        if kind not in ("tutorial", "tutorial-attention"):
            self.to_readout = nn.Linear(state + seen + (input_size if kind == "bahdanau" else 0), output_size)
        elif output_size != state:
            raise ValueError(f"the readout of a {kind} decoder is its state, of {state}, not {output_size}")
        if kind == "tutorial-attention":
            self.combine = nn.Linear(input_size + memory_size, input_size)
        if gate and attention is None:
            raise ValueError(f"a {kind} decoder has no context for a gate to let through")
        self.gate = nn.Linear(state, 1) if gate else None

    @property
    def at_once(self) -> bool:
        """Whether all steps of a known target can be computed at once."""
        return self.kind in ("plain", "luong", "tutorial")

    def begin(self, hidden: tuple[Tensor, ...]) -> DecoderState:
        """The state before the first step."""
        fed = hidden[0].new_zeros(hidden[0].shape[1], self.output_size) if self.kind == "luong-feeding" else None
        return DecoderState(hidden, fed, None)

    def all_steps(
        self, inputs: PackedSequence, hidden: tuple[Tensor, ...], memory: Memory, sums: AttentionSums | None = None
    ) -> Tensor:
        """The readouts of all steps (N x O, packed); only where `at_once`. Sources follow the order of the packing."""
        inputs = inputs._replace(data=self._activated(inputs.data))
        output, _ = self.body(inputs, as_hidden(hidden))
        if self.attention is None:
            return self._readout(output.data)
        states = padded(output)  # B x T x H
        real = torch.arange(len(states)) < inputs.batch_sizes.unsqueeze(1)  # T x B
        context, weights = self._attend(states, memory, real.sum(dim=0))  # B x T x M
        context = self._gated(context, states)
        if sums is not None:
            sums.add((weights * real.t().unsqueeze(2).to(weights)).sum(dim=1))  # B x S
        packed = context.transpose(0, 1)[real.to(context.device)]  # N x M
        return self._readout(output.data, packed)

    def step(
        self, inputs: Tensor, state: DecoderState, memory: Memory, weights: Tensor | None = None
    ) -> tuple[Tensor, DecoderState]:
        """The readouts (B x O) after one more embedded token of each source (B x E), and the state after it.

        `weights` (B x S) take the place of what the attention would compute.
        """
        if self.kind in ("bahdanau", "tutorial-attention"):
            query = before = state.hidden[0][-1]  # R x H
            assert self.attention is not None
            if self.attention.sees_input:
                query = torch.cat((inputs, query), dim=1)
            context, weights = self._attend_once(query, memory, weights)
            context = self._gated(context, before)
            both = torch.cat((inputs, context), dim=1)  # R x E + M
            if self.combine is not None:
                output, hidden = self.body.step(self.combine(both).relu(), state.hidden)
                return self._readout(output), DecoderState(hidden, None, weights)
            output, hidden = self.body.step(both, state.hidden)
            return self._readout(output, context, inputs), DecoderState(hidden, None, weights)
        inputs = self._activated(inputs)
        fed = inputs if state.fed is None else torch.cat((inputs, state.fed), dim=1)
        output, hidden = self.body.step(fed, state.hidden)  # R x H
        if self.attention is None:
            return self._readout(output), DecoderState(hidden, None, None)
        context, weights = self._attend_once(output, memory, weights)
        readout = self._readout(output, self._gated(context, output))
        return readout, DecoderState(hidden, readout if self.kind == "luong-feeding" else None, weights)

    def _attend_once(self, query: Tensor, memory: Memory, weights: Tensor | None) -> tuple[Tensor, Tensor]:
        """The context of one query of each source (B x M), and its weights (B x S), unless these are given."""
        if weights is not None:
            return (weights.unsqueeze(1) @ memory.states).squeeze(1), weights
        context, weights = self._attend(query.unsqueeze(1), memory)
        return context.squeeze(1), weights.squeeze(1)

    def _attend(self, query: Tensor, memory: Memory, counts: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The contexts of B x T queries (B x T x M), and their weights (B x T x S); `counts` (B) of them are real."""
        assert self.attention is not None
        weights = self.attention(query, memory.keys, memory.padding, counts)
        return weights @ memory.states, weights

    def _gated(self, context: Tensor, state: Tensor) -> Tensor:
        """What of a context (... x M) is let through, by the state (... x H) that asked for it."""
        return context if self.gate is None else context * self.gate(state).sigmoid()

    def _activated(self, inputs: Tensor) -> Tensor:
        """The embedded tokens as the recurrent layers read them."""
        return inputs.relu() if self.kind == "tutorial" else inputs

    def _readout(self, *parts: Tensor) -> Tensor:
        if self.to_readout is None:
            return parts[0]
        joined = torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]
        readout: Tensor = self.to_readout(joined)
        return readout.tanh()
