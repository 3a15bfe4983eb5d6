"""`Recurrent`: any cell, stacked, in one or two directions, with the dropouts of language models."""

from collections.abc import Sequence
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as plain_dropout
from torch.nn.utils.rnn import PackedSequence

from elman.nn.cells import Cell, ChoGRUCell, ElmanCell, GRUCell, LSTMCell, State
from elman.nn.combined import CombinedCell
from elman.nn.dropout import check_probability, drop_weight, locked_dropout
from elman.nn.fast import torch_layers
from elman.nn.fast.backends import Inside, LayerTrace
from elman.nn.layers import GRU, LSTM, RNN
from elman.nn.mutants import MUT1Cell, MUT2Cell, MUT3Cell
from elman.nn.steps import Hidden, Steps, as_hidden, as_state, join_states, run_stack, unroll_directions

Merge = Literal["concat", "mean"]
Connections = Literal["plain", "residual", "dense"]

CELLS: dict[str, type[Cell]] = {
    "elman": ElmanCell,
    "rnn": ElmanCell,
    "lstm": LSTMCell,
    "gru": GRUCell,
    "gru-cho": ChoGRUCell,
    "mut1": MUT1Cell,
    "mut2": MUT2Cell,
    "mut3": MUT3Cell,
}
"""Every cell by its name; "rnn" is another name of "elman"."""

FUSED: dict[type[Cell], type[RNN] | type[LSTM] | type[GRU]] = {ElmanCell: RNN, LSTMCell: LSTM, GRUCell: GRU}
"""The cells for which there is a layer of `torch.nn`."""


class CellLayer(nn.Module):
    """One layer of any cell in one or two directions, called as a one-layer `torch.nn.GRU` is.

    >>> layer = CellLayer([ChoGRUCell(3, 5), ChoGRUCell(3, 5)])
    >>> output, h = layer(torch.zeros(7, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([7, 2, 10]), torch.Size([2, 2, 5]))
    """

    def __init__(self, cells: list[Cell], weight_dropout: float = 0.0) -> None:
        super().__init__()
        self.cells = nn.ModuleList(cells)
        self.weight_dropout = check_probability(weight_dropout, "weight_dropout")

    def forward(
        self, input: Tensor | PackedSequence, hx: Hidden | None = None
    ) -> tuple[Tensor | PackedSequence, Hidden]:
        return self._run(input, hx, (None,) * len(self.cells))

    def trace(self, input: Tensor | PackedSequence, hx: Hidden | None = None) -> LayerTrace:
        """As a call, with the gates and states of every step as well.

        >>> sorted(CellLayer([ChoGRUCell(3, 5)]).trace(torch.zeros(7, 2, 3)).inside[0])
        ['h', 'r', 'z']
        """
        records: list[list[dict[str, Tensor]]] = [[] for _ in self.cells]
        output, final = self._run(input, hx, records)
        steps = Steps.of(input, batch_first=False)
        join = torch.stack if steps.batch_sizes is None else torch.cat
        inside = [{name: join([step[name] for step in record]) for name in record[0]} for record in records]
        return LayerTrace(output, final, [{name: steps.output(part) for name, part in each.items()} for each in inside])

    def _run(
        self,
        input: Tensor | PackedSequence,
        hx: Hidden | None,
        records: Sequence[list[dict[str, Tensor]] | None],
    ) -> tuple[Tensor | PackedSequence, Hidden]:
        steps = Steps.of(input, batch_first=False)
        cells = [self.dropped(cast(Cell, module)) for module in self.cells]
        if hx is None:
            shapes = [(len(cells), steps.batch_size, size) for size in cells[0].state_sizes]
            begin = tuple(steps.data.new_zeros(shape) for shape in shapes)
        else:
            begin = steps.state(hx)  # each D x B x H
        output, final = unroll_directions(cells, steps.data, steps.batch_sizes, begin, records)
        return steps.output(output), steps.final_state(final)

    def dropped(self, cell: Cell) -> Cell:
        """A cell of this layer, its recurrent weights with a fresh mask while training."""
        if not self.training or self.weight_dropout == 0:
            return cell
        return cell.with_weights(weight_hh=drop_weight(cell.weight_hh, self.weight_dropout, training=True))


class Recurrent(nn.Module):
    """Any cell, stacked; called as PyTorch's layers are: T x B x I, T x I, or packed.

    `cell` is a name of `CELLS`, or a class of your own that derives from `Cell`.

    `merge` joins the two directions of a layer. `dropout` falls between the layers, `locked_dropout` with one
    mask for all steps. Connections: "plain", each layer sees the one below; "residual", a layer's input is
    added to its output where the sizes match; "dense", a layer sees the input and the outputs of all layers
    below. With `learned_state` the state before the first step is a parameter in place of zeros.

    >>> layer = Recurrent("gru", 3, 5, num_layers=2, connections="residual", batch_first=True)
    >>> output, h = layer(torch.zeros(2, 7, 3))
    >>> output.shape, h.shape, layer.output_size
    (torch.Size([2, 7, 5]), torch.Size([2, 2, 5]), 5)
    """

    def __init__(
        self,
        cell: str | type[Cell],
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        *,
        bidirectional: bool = False,
        merge: Merge = "concat",
        dropout: float = 0.0,
        locked_dropout: bool = False,
        weight_dropout: float = 0.0,
        connections: Connections = "plain",
        learned_state: bool = False,
        proj_size: int = 0,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        kind = _cell_class(cell)
        _check_options(kind, num_layers, merge, connections, proj_size, nonlinearity)
        self.cell = cell if isinstance(cell, str) else cell.__name__
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bidirectional, self.batch_first = bidirectional, batch_first
        self.merge, self.connections = merge, connections
        self.dropout, self.locked_dropout = check_probability(dropout), locked_dropout
        self.directions = 2 if bidirectional else 1
        options: dict[str, Any] = {"bias": bias}
        if issubclass(kind, ElmanCell):
            options["nonlinearity"] = nonlinearity
        if proj_size:
            options["proj_size"] = proj_size
        self.state_sizes = kind(input_size, hidden_size, device="meta", **options).state_sizes
        """The last dimension of each part of the state."""
        self.letters = kind.letters
        self.output_size = self.state_sizes[0] * (self.directions if merge == "concat" else 1)
        self.layers = nn.ModuleList(
            _layer(kind, size, hidden_size, self.directions, weight_dropout, options) for size in self._input_sizes()
        )
        shapes = [(num_layers * self.directions, 1, size) for size in self.state_sizes if learned_state]
        self.initial = nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in shapes)

    def forward(
        self, input: Tensor | PackedSequence, state: Hidden | None = None
    ) -> tuple[Tensor | PackedSequence, Hidden]:
        """The output of the last layer at every step, and the final state of all layers (L*D x B x H)."""
        steps, output, final = self._run(input, state, None)
        return steps.output(output), steps.final_state(final)

    def trace(self, input: Tensor | PackedSequence, state: Hidden | None = None) -> LayerTrace:
        """As a call, with the gates and states of every step of each layer and direction as well.

        What `inside` calls h is what the cell gives, before connections are added or directions merged.

        >>> trace = Recurrent("mut1", 3, 5, num_layers=2, connections="residual").trace(torch.zeros(7, 2, 3))
        >>> len(trace.inside), sorted(trace.inside[1]), trace.inside[1]["z"].shape
        (2, ['h', 'r', 'z'], torch.Size([7, 2, 5]))
        """
        inside: Inside = []
        steps, output, final = self._run(input, state, inside)
        shown = [{name: steps.output(part) for name, part in each.items()} for each in inside]
        return LayerTrace(steps.output(output), steps.final_state(final), shown)

    def _run(
        self, input: Tensor | PackedSequence, state: Hidden | None, inside: Inside | None
    ) -> tuple[Steps, Tensor, State]:
        """All layers; gates and states of every step are added to `inside`, where it is given."""
        steps = Steps.of(input, self.batch_first)
        if steps.data.size(-1) != self.input_size:
            raise RuntimeError(f"expected input of size {self.input_size}, got {steps.data.size(-1)}")
        begin = self._initial(steps) if state is None else self._checked(steps, state)

        def run(depth: int, layer: nn.Module, below: Tensor) -> tuple[Tensor, State]:
            return self._run_layer(layer, steps, below, self._state_of_layer(begin, depth), inside)

        def drop(_: int, data: Tensor) -> Tensor:
            if self.locked_dropout:
                return locked_dropout(data, self.dropout, self.training, batch_sizes=steps.batch_sizes)
            return plain_dropout(data, self.dropout, self.training)

        output, finals = run_stack(self.layers, steps.data, run, drop, self.connections)
        return steps, output, join_states(finals)

    def step(self, input: Tensor, state: State) -> tuple[Tensor, State]:
        """One step of each row (R x I): the output (R x H), and the state after it (each part L x R x H).

        Without gradients this is quicker than a call with a sequence of length one.
        """
        steps_alone = all(map(torch_layers.can_step, self.layers))
        if torch.is_grad_enabled() or self.training or self.directions == 2 or not steps_alone:
            time = 1 if self.batch_first else 0
            output, after = self(input.unsqueeze(time), as_hidden(state))
            return output.squeeze(time), as_state(after)

        def run(depth: int, layer: nn.Module, below: Tensor) -> tuple[Tensor, State]:
            final = torch_layers.step(cast(nn.RNNBase, layer), below, tuple(part[depth] for part in state))
            return final[0], final

        output, finals = run_stack(self.layers, input, run, lambda _, data: data, self.connections)
        return output, tuple(torch.stack(parts) for parts in zip(*finals, strict=True))  # each L x R x H

    def _run_layer(
        self, layer: nn.Module, steps: Steps, below: Tensor, state: State, inside: Inside | None
    ) -> tuple[Tensor, State]:
        """One layer on the data below it: its output, the directions merged, and its final state."""
        packed = steps.batch_sizes is not None
        input = PackedSequence(below, steps.batch_sizes) if packed else below
        if inside is None:
            output, final = layer(input, as_hidden(state))
        else:
            traced: LayerTrace = layer.trace(input, as_hidden(state))  # type: ignore[operator]
            output, final = traced.output, traced.state
            inside.extend({name: _rows(part) for name, part in each.items()} for each in traced.inside)
        data = _rows(output)
        if self.directions == 2 and self.merge == "mean":
            data = data.reshape(*data.shape[:-1], 2, -1).mean(dim=-2)
        return data, as_state(final)

    def _input_sizes(self) -> list[int]:
        """The size of what each layer sees."""
        if self.connections == "dense":
            return [self.input_size + depth * self.output_size for depth in range(self.num_layers)]
        return [self.input_size] + [self.output_size] * (self.num_layers - 1)

    def _initial(self, steps: Steps) -> State:
        """The state before the first step: learned, or zeros."""
        count, batch = self.num_layers * self.directions, steps.batch_size
        if len(self.initial):
            return tuple(part.expand(count, batch, -1).contiguous() for part in self.initial)
        return tuple(steps.data.new_zeros(count, batch, size) for size in self.state_sizes)

    def _checked(self, steps: Steps, state: Hidden) -> State:
        """The caller's state in the order of the data; RuntimeError where it does not fit."""
        parts = steps.state(state)
        count = self.num_layers * self.directions
        expected = [(count, steps.batch_size, size) for size in self.state_sizes]
        shapes = [tuple(part.shape) for part in parts]
        if shapes != expected:
            raise RuntimeError(f"expected a state of {expected}, got {shapes}")
        return parts

    def _state_of_layer(self, state: State, depth: int) -> State:
        """The state of one layer, each part D x B x H."""
        return tuple(part[depth * self.directions : (depth + 1) * self.directions] for part in state)

    def extra_repr(self) -> str:
        shape = f"{self.cell}, {self.input_size}, {self.hidden_size}, num_layers={self.num_layers}"
        return shape + (f", bidirectional, merge={self.merge}" if self.bidirectional else "")


def cells_of(layer: nn.Module) -> list[Cell]:
    """The cells of one layer of a `Recurrent`, one for each direction, with the layer's own weights.

    >>> [type(cell).__name__ for cell in cells_of(Recurrent("gru", 3, 5, bidirectional=True).layers[0])]
    ['GRUCell', 'GRUCell']
    """
    if isinstance(layer, CellLayer):
        return list(layer.cells)  # type: ignore[arg-type]
    assert isinstance(layer, nn.RNNBase)
    groups = torch_layers.weights_of(layer)
    return [torch_layers.cell_with(layer.mode, layer.hidden_size, layer.bias, weights) for weights in groups]


def _rows(part: Tensor | PackedSequence) -> Tensor:
    return part.data if isinstance(part, PackedSequence) else part


def _layer(
    kind: type[Cell], input_size: int, hidden_size: int, directions: int, weight_dropout: float, options: dict[str, Any]
) -> nn.Module:
    """One layer: PyTorch's where there is one for the cell, else the cell's own equation step by step."""
    if kind in FUSED and options.get("nonlinearity") != "logistic":
        fused = FUSED[kind]
        return fused(input_size, hidden_size, bidirectional=directions == 2, weight_dropout=weight_dropout, **options)
    return CellLayer([kind(input_size, hidden_size, **options) for _ in range(directions)], weight_dropout)


def _cell_class(cell: str | type[Cell]) -> type[Cell]:
    if isinstance(cell, str):
        if cell not in CELLS:
            raise ValueError(f"unknown cell {cell!r}, known are: {', '.join(CELLS)}")
        return CELLS[cell]
    return cell


def _check_options(
    kind: type[Cell], num_layers: int, merge: str, connections: str, proj_size: int, nonlinearity: str
) -> None:
    """ValueError for an option that there is not, or that the cell has not."""
    if num_layers <= 0:
        raise ValueError(f"num_layers must be greater than zero, got {num_layers}")
    if merge not in ("concat", "mean"):
        raise ValueError(f"merge must be 'concat' or 'mean', got {merge!r}")
    if connections not in ("plain", "residual", "dense"):
        raise ValueError(f"connections must be 'plain', 'residual' or 'dense', got {connections!r}")
    if proj_size and kind is not LSTMCell:
        raise ValueError(f"proj_size is for the cell 'lstm' only, got it for {kind.__name__}")
    if kind is CombinedCell and num_layers > 1:
        raise ValueError("CombinedCell gives another layer its own input beside the state: it is for one layer only")
    if nonlinearity != "tanh" and not issubclass(kind, ElmanCell):
        raise ValueError(f"nonlinearity is for the cell 'rnn' only, got {nonlinearity!r} for {kind.__name__}")
