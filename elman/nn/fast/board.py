"""States that are written height by height and read by number, in one piece of memory with one gradient.

With `torch.cat` every height would copy all states below it, and autograd a gradient of all of them back.
"""

from typing import Any

import torch
from torch import Tensor


class Board:
    """N rows, of which some more are written each time; a read picks rows that were written before it.

    >>> first = torch.ones(2, 3, requires_grad=True)
    >>> board = Board(first, rows=3)
    >>> board.write(2 * board.read(torch.tensor([0])))
    >>> board.states()[:, 0].tolist()
    [1.0, 1.0, 2.0]
    >>> board.states().sum().backward()
    >>> first.grad[:, 0].tolist()
    [3.0, 1.0]
    """

    def __init__(self, first: Tensor, rows: int) -> None:
        self.memory = _Memory(first.new_empty(rows, first.size(1)))
        self.written = 0
        self._last = first.new_zeros(())  # what the next operation depends on, so that autograd keeps their order
        self.write(first)

    def write(self, states: Tensor) -> None:
        """Put states (M x S) behind those that are there."""
        first, self.written = self.written, self.written + len(states)
        self._last = _Write.apply(states, self._last, self.memory, first)  # type: ignore[no-untyped-call]

    def read(self, rows: Tensor) -> Tensor:
        """The states of some rows (E x S)."""
        return _Read.apply(self._last, self.memory, rows)  # type: ignore[no-untyped-call, no-any-return]

    def states(self) -> Tensor:
        """All that were written (N x S)."""
        return _Read.apply(self._last, self.memory, None)  # type: ignore[no-untyped-call, no-any-return]


class _Memory:
    """The states, and in the backward pass their gradient."""

    def __init__(self, states: Tensor) -> None:
        self.states = states
        self.gradient: Tensor | None = None


class _Write(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, last: Tensor, memory: _Memory, first: int) -> Tensor:
        memory.states[first : first + len(states)] = states
        ctx.memory, ctx.rows = memory, slice(first, first + len(states))
        ctx.set_materialize_grads(False)
        return last.clone()

    @staticmethod
    def backward(ctx: Any, _: Tensor | None) -> tuple[Tensor | None, ...]:
        assert ctx.memory.gradient is not None
        gradient = ctx.memory.gradient[ctx.rows]
        if ctx.rows.start == 0:
            ctx.memory.gradient = None  # the next backward pass begins anew
        return gradient, None, None, None


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, last: Tensor, memory: _Memory, rows: Tensor | None) -> Tensor:
        ctx.memory, ctx.rows = memory, rows
        return memory.states if rows is None else memory.states.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        memory = ctx.memory
        if memory.gradient is None:
            memory.gradient = torch.zeros_like(memory.states)
        if ctx.rows is None:
            memory.gradient += gradient
        else:
            memory.gradient.index_add_(0, ctx.rows, gradient)
        return None, None, None
