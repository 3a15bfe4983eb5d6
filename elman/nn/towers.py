"""`Towers`: the stacks of a language model as the body of another network, each reading in its own direction."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from elman.nn.cells import State
from elman.nn.fast.backends import LayerTrace
from elman.nn.recurrent import Recurrent
from elman.nn.steps import Hidden, as_hidden, as_state

Direction = Literal["forward", "backward", "both"]
BACKWARD: dict[str, tuple[bool, ...]] = {"forward": (False,), "backward": (True,), "both": (False, True)}
"""Of each tower whether it reads from the last step to the first."""
Turn = Callable[[PackedSequence], PackedSequence]


class Towers(nn.Module):
    """A stack that reads forwards, one that reads backwards, or both side by side; it is called as a `Recurrent` is.

    In a bidirectional `Recurrent` every layer sees both directions of the layer below. Here a stack sees its own layers
    only, as it has to in a language model, which must not see what it is to predict. `towers` are stacks of one
    direction, of the same sizes; inputs are packed.

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> towers = Towers([Recurrent("gru", 3, 5, num_layers=2) for _ in range(2)], "both")
    >>> output, h = towers(pack_sequence([torch.zeros(4, 3), torch.zeros(2, 3)]))
    >>> output.data.shape, h.shape, towers.output_size
    (torch.Size([6, 10]), torch.Size([4, 2, 5]), 10)
    """

    def __init__(self, towers: Sequence[Recurrent], direction: Direction) -> None:
        super().__init__()
        if len(towers) != len(BACKWARD[direction]):
            raise ValueError(f"direction {direction!r} needs {len(BACKWARD[direction])} towers, got {len(towers)}")
        self.towers, self.direction = nn.ModuleList(towers), direction
        first = towers[0]
        self.cell, self.connections, self.merge = first.cell, first.connections, first.merge
        self.input_size, self.hidden_size, self.num_layers = first.input_size, first.hidden_size, first.num_layers
        self.state_sizes, self.letters, self.directions = first.state_sizes, first.letters, len(towers)
        self.bidirectional = self.directions == 2
        self.output_size = first.output_size * self.directions

    def forward(self, input: PackedSequence, state: Hidden | None = None) -> tuple[PackedSequence, Hidden]:
        """The outputs of the topmost layers at every step, and the final states of all layers (L*D x B x H)."""
        outputs, finals = [], []
        for number, (tower, turn) in enumerate(self._each(input)):
            output, final = tower(turn(input), self._state_of(state, number))
            outputs.append(turn(output).data)
            finals.append(as_state(final))
        return input._replace(data=torch.cat(outputs, dim=1)), self._side_by_side(finals)

    def trace(self, input: PackedSequence, state: Hidden | None = None) -> LayerTrace:
        """As a call, with the gates and states of every step of each layer and direction as well."""
        traces = [
            (tower.trace(turn(input), self._state_of(state, number)), turn)
            for number, (tower, turn) in enumerate(self._each(input))
        ]
        outputs = torch.cat([turn(one.output).data for one, turn in traces], dim=1)
        inside: list[dict[str, Tensor | PackedSequence]] = [
            {name: turn(part) for name, part in one.inside[depth].items()}
            for depth in range(self.num_layers)
            for one, turn in traces
        ]
        finals = [as_state(one.state) for one, _ in traces]
        return LayerTrace(input._replace(data=outputs), self._side_by_side(finals), inside)

    def _each(self, input: PackedSequence) -> list[tuple[Any, Turn]]:
        """Each tower, and what turns packed sequences into the order in which it reads, and back."""
        if self.direction == "forward":
            return [(self.towers[0], _as_it_is)]
        order = turned(input)

        def turn(packed: PackedSequence) -> PackedSequence:
            return packed._replace(data=packed.data.index_select(0, order))

        return [
            (tower, turn if backward else _as_it_is)
            for tower, backward in zip(self.towers, BACKWARD[self.direction], strict=True)
        ]

    def _state_of(self, state: Hidden | None, number: int) -> Hidden | None:
        return None if state is None else as_hidden(tuple(part[number :: self.directions] for part in as_state(state)))

    def _side_by_side(self, finals: list[State]) -> Hidden:
        """The states of the towers, each part L x B x H, as one of L*D x B x H."""
        parts = zip(*finals, strict=True)
        return as_hidden(tuple(torch.stack(part, dim=1).flatten(0, 1) for part in parts))


def _as_it_is(packed: PackedSequence) -> PackedSequence:
    return packed


def turned(packed: PackedSequence) -> Tensor:
    """For each row of packed data the row of the same sequence as far from the other end (N).

    >>> from torch.nn.utils.rnn import pack_sequence
    >>> turned(pack_sequence([torch.tensor([7, 8, 9]), torch.tensor([5])]))
    tensor([3, 1, 2, 0])
    """
    sizes = packed.batch_sizes
    starts = sizes.cumsum(0) - sizes  # T
    step = torch.arange(len(sizes)).repeat_interleave(sizes)  # N
    place = torch.arange(int(sizes.sum())) - starts.repeat_interleave(sizes)  # N: which sequence, the longest first
    lengths = (sizes.unsqueeze(0) > torch.arange(int(sizes[0])).unsqueeze(1)).sum(1)  # B
    return (starts[lengths[place] - 1 - step] + place).to(packed.data.device)
