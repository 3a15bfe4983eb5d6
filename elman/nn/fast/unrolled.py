"""Networks unrolled over the targets of one batch, step after step: how a decoder learns that is fed its own output.

What does not depend on the step before is computed for all steps at once, the gradients of weights and memory are made
once, and masks that hold for a whole sequence are drawn once.
"""

from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from elman.nn.cells import Cell, State
from elman.nn.decoder import AttentionSums, Decoder, Memory
from elman.nn.fast.attention import SharedMemory
from elman.nn.fast.autograd import can_defer
from elman.nn.fast.backends import cell_of
from elman.nn.fast.shared import SharedLinear
from elman.nn.fast.torch_layers import GRUStep, can_step, next_state, step_weights
from elman.nn.layers import GRU, LSTM, RNN
from elman.nn.recurrent import CellLayer, Recurrent
from elman.nn.steps import run_stack


class UnrolledRecurrent:
    """A `Recurrent` taken step by step through one batch; the result is that of one call with all steps.

    The first `known` entries of its input may be there for all steps at once; the others, which are fed, are not.

    >>> body = Recurrent("gru", 5, 4, num_layers=2)
    >>> unrolled, x, fed = UnrolledRecurrent(body, known=3), torch.ones(2, 3), torch.ones(2, 2)
    >>> state = unrolled.begin((torch.zeros(2, 2, 4),))
    >>> for _ in range(7):
    ...     output, state = unrolled.step(x, unrolled.project(x), fed, state)
    >>> torch.allclose(output, body(torch.ones(7, 2, 5))[0][-1], atol=1e-6)
    True
    """

    def __init__(self, body: Recurrent, known: int) -> None:
        if body.directions == 2:
            raise ValueError("a network that reads in two directions cannot be taken from step to step")
        self.body = body
        first, *others = body.layers
        self.layers = [_unrolled(first, known), *map(_unrolled, others)]
        self._masks: dict[int, Tensor] = {}

    def begin(self, hidden: State) -> list[State]:
        """The state of each layer (its parts R x H) from that of all (its parts L x R x H)."""
        return list(zip(*(part.unbind(0) for part in hidden), strict=True))

    def project(self, x: Tensor) -> Tensor:
        """What the first layer makes of the known part of its input (N x known): of one step, or of all at once."""
        return self.layers[0].project(x)

    def step(self, x: Tensor, projected: Tensor, fed: Tensor | None, state: list[State]) -> tuple[Tensor, list[State]]:
        """The output (R x H) and the state after one more step; `projected` is what `project` made of x."""

        def run(depth: int, layer: _Layer, below: Tensor) -> tuple[Tensor, State]:
            own, other = (projected, fed) if depth == 0 else (layer.project(below), None)
            final = layer.step(own, other, state[depth])
            return final[0], final

        connections = self.body.connections
        input = torch.cat((x, fed), dim=1) if connections != "plain" and fed is not None else x  # R x I
        return run_stack(self.layers, input, run, self._drop, connections)

    def _drop(self, depth: int, data: Tensor) -> Tensor:
        body = self.body
        if not body.locked_dropout or not body.training or body.dropout == 0:
            return dropout(data, body.dropout, body.training)
        if depth not in self._masks:
            self._masks[depth] = dropout(torch.ones_like(data), body.dropout)  # B x H
        return data * self._masks[depth][: len(data)]


class _Layer(Protocol):
    """One unrolled layer."""

    def project(self, x: Tensor) -> Tensor: ...

    def step(self, projected: Tensor, fed: Tensor | None, state: State) -> State: ...


class _TorchLayer:
    """A layer of `torch.nn`: products with shared weights, then its gates."""

    def __init__(self, layer: RNN | LSTM | GRU, known: int | None) -> None:
        weight_ih, weight_hh, bias_ih, bias_hh = step_weights(layer, layer.weight_dropout)
        parts = [weight_ih] if known is None else torch.split(weight_ih, [known, weight_ih.shape[1] - known], dim=1)
        self.mode = layer.mode
        self.is_one_function = layer.mode == "GRU" and can_defer(weight_hh)
        self.project = SharedLinear(parts[0], bias_ih)
        self.fed = SharedLinear(parts[1]) if len(parts) > 1 and parts[1].shape[1] else None
        self.recur = SharedLinear(weight_hh, bias_hh)

    def step(self, projected: Tensor, fed: Tensor | None, state: State) -> State:
        x = projected if fed is None or self.fed is None else self.fed(fed, projected)  # R x G*H
        hh = self.recur(state[0])
        if self.is_one_function:
            return (GRUStep.apply(x, hh, state[0]),)  # type: ignore[no-untyped-call]
        return next_state(self.mode, x, hh, state)


class _AnyCell:
    """A layer of any other cell, by its equation."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def project(self, x: Tensor) -> Tensor:
        """The input as it is: a cell of one's own may do anything with the whole of it."""
        return x

    def step(self, projected: Tensor, fed: Tensor | None, state: State) -> State:
        x = projected if fed is None else torch.cat((projected, fed), dim=1)  # R x I
        return self.cell.step(self.cell.project(x), state)


def _unrolled(layer: nn.Module, known: int | None = None) -> _Layer:
    if isinstance(layer, CellLayer):
        return _AnyCell(layer.dropped(cast(Cell, layer.cells[0])))
    layer = cast(GRU, layer)
    return _TorchLayer(layer, known) if can_step(layer) and layer.backend != "cells" else _AnyCell(cell_of(layer))


class UnrolledDecoder:
    """A decoder before the first step of its targets, and after each; its readouts are those of `Decoder.step`.

    >>> from elman.nn.attention import DotAttention
    >>> decoder = Decoder("luong-feeding", "gru", 3, 4, 4, 6, attention=DotAttention(4, 4))
    >>> states = torch.randn(2, 5, 4)
    >>> memory = Memory(states, states, torch.zeros(2, 5, dtype=torch.bool))
    >>> inputs = PackedSequence(torch.randn(5, 3), torch.tensor([2, 2, 1]))
    >>> UnrolledDecoder(decoder, (torch.zeros(1, 2, 4),), memory).all_steps(inputs).shape
    torch.Size([5, 6])
    """

    def __init__(self, decoder: Decoder, hidden: State, memory: Memory, sums: AttentionSums | None = None) -> None:
        self.sums, self.gate = sums, None
        if decoder.gate is not None:
            self.gate = SharedLinear(decoder.gate.weight, decoder.gate.bias)
        self.kind, attention = decoder.kind, decoder.attention
        self.body = UnrolledRecurrent(decoder.body, decoder.input_size)
        self.state, self.fed = self.body.begin(hidden), decoder.begin(hidden).fed
        readout, combine, size = decoder.to_readout, decoder.combine, decoder.input_size
        self.to_readout = None if readout is None else SharedLinear(readout.weight, readout.bias)
        if combine is not None:  # what of it depends on the token is there for all steps
            self.combine = SharedLinear(combine.weight[:, :size], combine.bias)
            self.combine_context = SharedLinear(combine.weight[:, size:])
        self.weights = None if attention is None else attention.unrolled(memory.keys, memory.padding)
        self.memory = SharedMemory(memory.states, memory.padding)
        self.sees_input = attention is not None and attention.sees_input

    def all_steps(self, inputs: PackedSequence) -> Tensor:
        """The readouts of all steps (N x O, packed), the embedded tokens of which are known."""
        sizes = inputs.batch_sizes.tolist()
        steps = zip(*(torch.split(part, sizes) for part in self._projected(inputs.data)), strict=True)
        if self.kind == "luong-feeding":
            return torch.cat([self._next(x, projected)[0] for x, projected in steps])
        parts = zip(*(self._next(x, projected) for x, projected in steps), strict=True)
        return self._readout(*(torch.cat(part) for part in parts))

    def step(self, inputs: Tensor) -> Tensor:
        """The readouts (R x O) of one more step (R x E) of the first R rows, those whose target goes on."""
        parts = self._next(*self._projected(inputs))
        return parts[0] if self.kind == "luong-feeding" else self._readout(*parts)

    def _projected(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Embedded tokens as they are read, and what of a step depends on them only: of one step, or of all at once."""
        if self.kind == "tutorial-attention":
            return inputs, self.combine(inputs)
        x = inputs.relu() if self.kind == "tutorial" else inputs
        return x, self.body.project(x)

    def _next(self, x: Tensor, projected: Tensor) -> tuple[Tensor, ...]:
        """What the readout of one more step is made of; or the readout itself, where the next step is fed it."""
        self._keep(len(x))
        if self.kind in ("bahdanau", "tutorial-attention"):
            h = self.state[-1][0]  # R x H
            context = self._attend(torch.cat((x, h), dim=1) if self.sees_input else h, h)
            if self.kind == "tutorial-attention":
                combined = self.combine_context(context, projected).relu()  # R x E
                output, self.state = self.body.step(combined, self.body.project(combined), None, self.state)
                return (output,)
            output, self.state = self.body.step(x, projected, context, self.state)
            return output, context, x
        output, self.state = self.body.step(x, projected, self.fed, self.state)
        if self.weights is None:
            return (output,)
        context = self._attend(output, output)
        if self.kind == "luong":
            return output, context
        self.fed = self._readout(output, context)
        return (self.fed,)

    def _keep(self, rows: int) -> None:
        """Drop the rows whose target is finished."""
        if rows < len(self.state[0][0]):
            self.state = [tuple(part[:rows] for part in layer) for layer in self.state]
            self.fed = None if self.fed is None else self.fed[:rows]

    def _attend(self, query: Tensor, state: Tensor) -> Tensor:
        """The contexts of the rows' queries (R x Q to R x M), as far as the state lets them through."""
        assert self.weights is not None
        weights = self.weights(query)  # R x S
        if self.sums is not None:
            self.sums.add(weights)
        context = self.memory(weights)
        return context if self.gate is None else context * self.gate(state).sigmoid()

    def _readout(self, *parts: Tensor) -> Tensor:
        if self.to_readout is None:
            return parts[0]
        return self.to_readout(torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]).tanh()
