"""Sequences in the one layout that layers compute in; the loop over their steps, and the loop over stacked layers."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from elman.nn.cells import Cell, State

Hidden = Tensor | tuple[Tensor, Tensor]
"""A state as callers of a layer have it: (h, c) of the LSTM, h of the others."""


def as_hidden(state: State) -> Hidden:
    """A state as callers of a layer have it: a single tensor where it has one part."""
    return state[0] if len(state) == 1 else cast(tuple[Tensor, Tensor], state)


def as_state(hidden: Hidden) -> State:
    """The parts of a state that a caller of a layer has."""
    return (hidden,) if isinstance(hidden, Tensor) else tuple(hidden)


@dataclass(frozen=True)
class Steps:
    """A layer's input with time first, and the layout in which its caller wants the output.

    >>> steps = Steps.of(torch.zeros(2, 7, 3), batch_first=True)
    >>> steps.data.shape, steps.batch_size, steps.output(steps.data).shape
    (torch.Size([7, 2, 3]), 2, torch.Size([2, 7, 3]))
    """

    data: Tensor
    """T x B x I; packed: N x I, the steps one after the other, the sequences longest first."""
    batch_sizes: Tensor | None = None
    """How many sequences each step of packed data has; None where the data are not packed."""
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None
    batched: bool = True
    batch_first: bool = False

    @classmethod
    def of(cls, input: Tensor | PackedSequence, batch_first: bool) -> "Steps":
        """From a packed sequence, T x B x I (B x T x I where batch_first), or T x I without a batch."""
        if isinstance(input, PackedSequence):
            return cls(input.data, input.batch_sizes, input.sorted_indices, input.unsorted_indices)
        if input.dim() == 2:
            return cls(input.unsqueeze(1), batched=False)
        if input.dim() != 3:
            raise ValueError(f"expected input of 2 or 3 dimensions, got {input.dim()}")
        return cls(input.transpose(0, 1) if batch_first else input, batch_first=batch_first)

    @property
    def batch_size(self) -> int:
        """How many sequences there are."""
        return self.data.size(1) if self.batch_sizes is None else int(self.batch_sizes[0])

    def state(self, hidden: Hidden) -> State:
        """The caller's state (L*D x B x H; L*D x H without a batch) in the order of the data."""
        state, expected = as_state(hidden), 3 if self.batched else 2
        for part in state:
            if part.dim() != expected:
                raise RuntimeError(f"expected a state of {expected} dimensions, got {part.dim()}")
        if not self.batched:
            return tuple(part.unsqueeze(1) for part in state)
        return _permute(state, self.sorted_indices)

    def output(self, data: Tensor) -> Tensor | PackedSequence:
        """The output of all steps in the caller's layout."""
        if self.batch_sizes is not None:
            return PackedSequence(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)
        if not self.batched:
            return data.squeeze(1)
        return data.transpose(0, 1) if self.batch_first else data

    def final_state(self, state: State) -> Hidden:
        """The state after the last step, as the caller counts the sequences."""
        if not self.batched:
            return as_hidden(tuple(part.squeeze(1) for part in state))
        return as_hidden(_permute(state, self.unsorted_indices))


def _permute(state: State, order: Tensor | None) -> State:
    return state if order is None else tuple(part.index_select(1, order) for part in state)


def sequence_of_rows(packed: PackedSequence) -> Tensor:
    """Which sequence, as the caller counts them, each row of packed data belongs to (N).

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> sequence_of_rows(pack_sequence([torch.zeros(1), torch.zeros(3)], enforce_sorted=False))
    tensor([1, 0, 1, 1])
    """
    sizes = packed.batch_sizes
    starts = sizes.cumsum(0) - sizes
    place = torch.arange(int(sizes.sum())) - starts.repeat_interleave(sizes)  # N, counted longest first
    place = place.to(packed.data.device)
    return place if packed.sorted_indices is None else packed.sorted_indices[place]


def padded(packed: PackedSequence, length: int | None = None) -> Tensor:
    """Packed rows by their sequence, as the caller counts them, zeros behind its end (N x H to B x T x H).

    What `pad_packed_sequence` does, with one copy in the backward pass, where that copies everything for each length.

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> packed = pack_sequence([torch.ones(1, 1), torch.ones(3, 1)], enforce_sorted=False)
    >>> padded(packed, length=4).squeeze(2).tolist()
    [[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]]
    """
    sizes, data = packed.batch_sizes, packed.data
    length = len(sizes) if length is None else length
    step = torch.arange(len(sizes)).repeat_interleave(sizes).to(data.device)  # N
    places = sequence_of_rows(packed) * length + step
    grid = data.new_zeros(int(sizes[0]) * length, data.shape[1]).index_copy_(0, places, data)
    return grid.view(-1, length, data.shape[1])


def unroll(
    cell: Cell,
    data: Tensor,
    batch_sizes: Tensor | None,
    state: State,
    *,
    reverse: bool = False,
    record: list[dict[str, Tensor]] | None = None,
) -> tuple[Tensor, State]:
    """Run a cell over all steps: the outputs in the layout of `data`, and the state after the last step.

    `record` is filled with the gates and the state of every step, first step first.

    >>> from elman.nn.cells import ElmanCell
    >>> cell = ElmanCell(3, 5)
    >>> output, (h,) = unroll(cell, torch.ones(7, 2, 3), None, cell.initial_state(2, torch.ones(1)))
    >>> output.shape, torch.equal(output[-1], h)
    (torch.Size([7, 2, 5]), True)
    """
    projected = cell.project(data)
    steps = projected.unbind(0) if batch_sizes is None else torch.split(projected, batch_sizes.tolist())
    if not steps:
        raise RuntimeError("expected at least one step, got a sequence of length 0")
    step = cell.step if record is None else _recorded(cell, record)
    outputs, state = _last_to_first(step, steps, state) if reverse else _first_to_last(step, steps, state)
    if record is not None and reverse:
        record.reverse()
    return torch.stack(outputs) if batch_sizes is None else torch.cat(outputs), state


def unroll_directions(
    cells: Sequence[Cell],
    data: Tensor,
    batch_sizes: Tensor | None,
    state: State,
    records: Sequence[list[dict[str, Tensor]] | None] = (None, None),
) -> tuple[Tensor, State]:
    """Run a layer's cells, the second from the last step to the first: outputs side by side, states D x B x H.

    >>> from elman.nn.cells import ElmanCell
    >>> cells = [ElmanCell(3, 5), ElmanCell(3, 5)]
    >>> output, (h,) = unroll_directions(cells, torch.ones(7, 2, 3), None, (torch.zeros(2, 2, 5),))
    >>> output.shape, h.shape
    (torch.Size([7, 2, 10]), torch.Size([2, 2, 5]))
    """
    outputs, finals = [], []
    for direction, (cell, record) in enumerate(zip(cells, records, strict=False)):
        begin = tuple(part[direction] for part in state)
        output, final = unroll(cell, data, batch_sizes, begin, reverse=direction == 1, record=record)
        outputs.append(output)
        finals.append(final)
    return torch.cat(outputs, dim=-1), tuple(torch.stack(part) for part in zip(*finals, strict=True))


Layer = TypeVar("Layer")


def run_stack(
    layers: Iterable[Layer],
    input: Tensor,
    run: Callable[[int, Layer, Tensor], tuple[Tensor, State]],
    drop: Callable[[int, Tensor], Tensor],
    connections: str = "plain",
) -> tuple[Tensor, list[State]]:
    """Layer upon layer: the output of the last, and the final state of each.

    `run` computes a layer, known by its depth, on what is below it; `drop` is what is done to the output of a layer
    before the layer at a depth sees it. For the connections see `Recurrent`.

    >>> run_stack([2, 3], torch.ones(1), lambda _, factor, x: (factor * x, ()), lambda _, x: x, "residual")[0]
    tensor([12.])
    """
    below = output = input
    finals = []
    for depth, layer in enumerate(layers):
        if depth > 0:
            dropped = drop(depth, output)
            below = torch.cat((below, dropped), dim=-1) if connections == "dense" else dropped
        output, final = run(depth, layer, below)
        if connections == "residual" and output.shape == below.shape:
            output = output + below
        finals.append(final)
    return output, finals


def join_states(finals: list[State]) -> State:
    """The states of some layers (each D x B x H) as that of all (each L*D x B x H)."""
    return finals[0] if len(finals) == 1 else tuple(torch.cat(parts) for parts in zip(*finals, strict=True))


Step = Callable[[Tensor, State], State]


def _recorded(cell: Cell, record: list[dict[str, Tensor]]) -> Step:
    def step(x: Tensor, state: State) -> State:
        after = cell.step(x, state)
        record.append(cell.gates(x, state) | dict(zip(cell.letters, after, strict=False)))
        return after

    return step


def _first_to_last(step: Step, steps: tuple[Tensor, ...], state: State) -> tuple[list[Tensor], State]:
    """First step to last. The last sequences end first: the state of those that a narrower step has not is final."""
    outputs: list[Tensor] = []
    finished: list[State] = []
    for x in steps:
        if len(x) < len(state[0]):
            finished.append(tuple(part[len(x) :] for part in state))
            state = tuple(part[: len(x)] for part in state)
        state = step(x, state)
        outputs.append(state[0])
    parts = zip(state, *reversed(finished), strict=True)
    return outputs, tuple(torch.cat(part) for part in parts) if finished else state


def _last_to_first(step: Step, steps: tuple[Tensor, ...], initial: State) -> tuple[list[Tensor], State]:
    """Last step to first. Shorter sequences join later, each with its own initial state."""
    outputs: list[Tensor] = []
    state = tuple(part[: len(steps[-1])] for part in initial)
    for x in reversed(steps):
        if len(x) > len(state[0]):
            joining = (part[len(state[0]) : len(x)] for part in initial)
            state = tuple(torch.cat(pair) for pair in zip(state, joining, strict=True))
        state = step(x, state)
        outputs.append(state[0])
    return outputs[::-1], state
