"""A decoder taken through the targets of one batch, step after step: how one that is fed learns."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from elman.nn.decoder import Decoder, Memory
from elman.nn.fast.shared import SharedLinear, SharedMemory
from elman.nn.fast.walk import Walk


class Unrolled:
    """A decoder before the first step of its targets, and after each.

    Its readouts are those of `Decoder.step`. What does not wait for the step before is computed for all steps at once,
    the gradients of weights and memory are made once, and masks that hold for a sequence are drawn once.

    >>> from elman.nn.attention import DotAttention
    >>> decoder = Decoder("luong-feeding", "gru", 3, 4, 4, 6, attention=DotAttention(4, 4))
    >>> states = torch.randn(2, 5, 4)
    >>> memory = Memory(states, states, torch.zeros(2, 5, dtype=torch.bool))
    >>> inputs = PackedSequence(torch.randn(5, 3), torch.tensor([2, 2, 1]))
    >>> Unrolled(decoder, (torch.zeros(1, 2, 4),), memory).all(inputs).shape
    torch.Size([5, 6])
    """

    def __init__(self, decoder: Decoder, hidden: tuple[Tensor, ...], memory: Memory) -> None:
        self.kind, attention = decoder.kind, decoder.attention
        self.walk = Walk(decoder.body, decoder.input_size)
        self.state, self.fed = self.walk.begin(hidden), decoder.begin(hidden).fed
        self.to_readout = SharedLinear(decoder.to_readout.weight, decoder.to_readout.bias)
        self.look = None if attention is None else attention.over(memory.keys, memory.padding)
        self.memory = SharedMemory(memory.states, memory.padding)
        self.sees_input = attention is not None and attention.sees_input

    def all(self, inputs: PackedSequence) -> Tensor:
        """The readouts of all steps (N x O, packed), the embedded tokens of which are known."""
        sizes = inputs.batch_sizes.tolist()
        projected = torch.split(self.walk.project(inputs.data), sizes)
        steps = zip(torch.split(inputs.data, sizes), projected, strict=True)
        if self.kind == "luong-feeding":
            return torch.cat([self._next(x, seen)[0] for x, seen in steps])
        parts = zip(*(self._next(x, seen) for x, seen in steps), strict=True)
        return self._readout(*(torch.cat(part) for part in parts))

    def one(self, inputs: Tensor) -> Tensor:
        """The readouts (R x O) of one more step (R x E) of the first R rows, those whose target has not ended."""
        found = self._next(inputs, self.walk.project(inputs))
        return found[0] if self.kind == "luong-feeding" else self._readout(*found)

    def _next(self, x: Tensor, projected: Tensor) -> tuple[Tensor, ...]:
        """What the readout of one more step is made of; or itself, where the next step is fed it."""
        self._keep(len(x))
        if self.kind == "bahdanau":
            h = self.state[-1][0]  # R x H
            context = self._context(torch.cat((x, h), dim=1) if self.sees_input else h)
            output, self.state = self.walk.step(x, projected, context, self.state)
            return output, context, x
        output, self.state = self.walk.step(x, projected, self.fed, self.state)
        if self.look is None:
            return (output,)
        context = self._context(output)
        if self.kind == "luong":
            return output, context
        self.fed = self._readout(output, context)
        return (self.fed,)

    def _keep(self, rows: int) -> None:
        """Leave out the rows whose target has ended."""
        if rows < len(self.state[0][0]):
            self.state = [tuple(part[:rows] for part in layer) for layer in self.state]
            self.fed = None if self.fed is None else self.fed[:rows]

    def _context(self, query: Tensor) -> Tensor:
        """What the rows see with their queries (R x Q to R x M)."""
        assert self.look is not None
        return self.memory(self.look(query))

    def _readout(self, *parts: Tensor) -> Tensor:
        return self.to_readout(torch.cat(parts, dim=1) if len(parts) > 1 else parts[0]).tanh()
