"""How the recurrence of `RNN`, `LSTM` and `GRU` is computed: the one place where that is chosen.

A backend is a function from a `Call` to the outputs of all steps and the final state. It keeps nothing
between calls, so one layer can serve several threads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from elman.nn.cells import Cell, State
from elman.nn.fast import compiled
from elman.nn.fast.autograd import can_compile, in_forward_mode
from elman.nn.fast.torch_layers import cell_with, weights_of
from elman.nn.steps import Hidden, Steps, as_state, join_states, run_stack, unroll_directions


@dataclass(frozen=True)
class Call:
    """One call of a layer: data with time first, weights as they are to be used, a state that is there."""

    layer: nn.RNNBase
    weights: list[list[Tensor]]
    """For each layer and direction: weight_ih, weight_hh, then the biases and weight_hr where it has them."""
    data: Tensor
    """T x B x I; packed: N x I."""
    batch_sizes: Tensor | None
    state: State | None
    """Each part L*D x B x H; None for zeros."""

    @property
    def begin(self) -> State:
        """The state, the zeros too."""
        if self.state is not None:
            return self.state
        batch = self.data.size(1) if self.batch_sizes is None else int(self.batch_sizes[0])
        return tuple(self.data.new_zeros(shape) for shape in _state_shapes(self.layer, batch))

    def tensors(self) -> Iterator[Tensor]:
        """All that it computes with, the data first."""
        return chain((self.data,), self.state or (), *self.weights)


Backend = Callable[[Call], tuple[Tensor, State]]


def run_torch(call: Call) -> tuple[Tensor, State]:
    """PyTorch's own fused kernels."""
    layer = call.layer
    kernel = getattr(torch, layer.mode.lower())  # torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu
    flat = [weight for group in call.weights for weight in group]
    state = call.begin if layer.mode == "LSTM" else call.begin[0]
    options = (flat, layer.bias, layer.num_layers, layer.dropout, layer.training, bool(layer.bidirectional))
    if call.batch_sizes is None:
        output, *final = kernel(call.data, state, *options, False)  # False: time comes first
    else:
        output, *final = kernel(call.data, call.batch_sizes, state, *options)
    return output, tuple(final)


def run_cells(call: Call) -> tuple[Tensor, State]:
    """The equations of `elman.nn.cells`, step by step."""
    return run_layers(call, cells_layer)[:2]


def run_compiled(call: Call) -> tuple[Tensor, State]:
    """Elman's own kernels."""
    return run_layers(call, compiled_layer)[:2]


Inside = list[dict[str, Tensor]]
"""For each direction of a layer: gates and states by their letters, each (T x B or N) x H."""

OneLayer = Callable[[Call, list[list[Tensor]], Tensor, State | None, bool], tuple[Tensor, State, Inside]]
"""One layer of a call: the weights of its directions, its input, its state, whether to show its inside."""


def run_layers(call: Call, run_layer: OneLayer, show_inside: bool = False) -> tuple[Tensor, State, Inside]:
    """Layer upon layer, with dropout between them."""
    layer, inside = call.layer, []
    if layer.num_layers == 1:
        return run_layer(call, call.weights, call.data, call.state, show_inside)

    def run(depth: int, weights: list[list[Tensor]], data: Tensor) -> tuple[Tensor, State]:
        places = slice(depth * len(weights), (depth + 1) * len(weights))
        state = None if call.state is None else tuple(part[places] for part in call.state)  # each D x B x H
        output, final, shown = run_layer(call, weights, data, state, show_inside)
        inside.extend(shown)
        return output, final

    directions = 2 if layer.bidirectional else 1
    groups = [call.weights[first : first + directions] for first in range(0, len(call.weights), directions)]
    output, finals = run_stack(groups, call.data, run, lambda _, data: dropout(data, layer.dropout, layer.training))
    return output, join_states(finals), inside


def cells_layer(
    call: Call, weights: list[list[Tensor]], data: Tensor, state: State | None, show_inside: bool
) -> tuple[Tensor, State, Inside]:
    """One layer by its cell's equation."""
    layer = call.layer
    state = tuple(part[: len(weights)] for part in call.begin) if state is None else state
    cells = [cell_with(layer.mode, layer.hidden_size, layer.bias, own) for own in weights]
    records: list[list[dict[str, Tensor]] | None] = [[] if show_inside else None for _ in cells]
    output, final = unroll_directions(cells, data, call.batch_sizes, state, records)
    join = torch.stack if call.batch_sizes is None else torch.cat
    inside = [{name: join([step[name] for step in record]) for name in record[0]} for record in records if record]
    return output, final, inside


def compiled_layer(
    call: Call, weights: list[list[Tensor]], data: Tensor, state: State | None, show_inside: bool
) -> tuple[Tensor, State, Inside]:
    """One layer by the kernels."""
    layer = call.layer
    sizes = (data.size(1),) * data.size(0) if call.batch_sizes is None else tuple(call.batch_sizes.tolist())
    shape = compiled.Shape(
        layer.mode,
        data.size(-1),
        layer.hidden_size,
        projected=layer.proj_size > 0,
        bias=layer.bias,
        directions=len(weights),
        batch_sizes=sizes,
        keep=show_inside or torch.is_grad_enabled(),
    )
    output, final, kept = compiled.run_layer(shape, data.contiguous(), state, weights)
    if not show_inside:
        return output, final, []
    pairs = zip(kept, output.chunk(len(kept), dim=-1), strict=True)
    return output, final, [compiled.letters(shape, each) | {"h": h} for each, h in pairs]


def cell_of(layer: nn.RNNBase) -> Cell:
    """The cell of a layer that is one layer in one direction, its recurrent weights with a fresh mask while training.

    >>> cell_of(nn.LSTM(3, 5, proj_size=2)).output_size
    2
    """
    (weights,) = weights_of(layer, getattr(layer, "weight_dropout", 0.0))
    return cell_with(layer.mode, layer.hidden_size, layer.bias, weights)


BACKENDS: dict[str, Backend] = {"torch": run_torch, "cells": run_cells, "compiled": run_compiled}


def check_backend(name: str) -> str:
    """The name, if it is one of a backend or "auto".

    >>> check_backend("auto")
    'auto'
    """
    if name != "auto" and name not in BACKENDS:
        raise ValueError(f"unknown backend {name!r}, known are: auto, {', '.join(BACKENDS)}")
    return name


def choose(name: str, data: Tensor, *others: Tensor) -> Backend:
    """The backend that a layer with this setting uses for these tensors: on the CPU the kernels where they are built.

    >>> choose("cells", torch.zeros(1)).__name__
    'run_cells'
    >>> choose("auto", torch.zeros(1, dtype=torch.bfloat16)).__name__
    'run_torch'
    """
    if name == "auto" and in_forward_mode():
        name = "cells"  # in forward mode neither the kernels nor PyTorch's LSTM have a derivative
    elif name == "auto":
        name = "compiled" if can_compile(data, *others) else "torch"
    return BACKENDS[name]


def run(layer: nn.RNNBase, input: Tensor | PackedSequence, hx: Hidden | None) -> tuple[Tensor | PackedSequence, Hidden]:
    """Call a layer of `torch.nn` with its `backend` and `weight_dropout`, where it has them, in the caller's layout.

    >>> layer = nn.GRU(3, 5)
    >>> right, _ = layer(torch.ones(7, 2, 3))
    >>> layer.backend = "cells"
    >>> torch.allclose(run(layer, torch.ones(7, 2, 3), None)[0], right, atol=1e-6)
    True
    """
    steps, call, backend = _prepared(layer, input, hx)
    data, final = backend(call)
    return steps.output(data), steps.final_state(final)


@dataclass(frozen=True)
class LayerTrace:
    """A layer's output and final state, and its gates and states at every step."""

    output: Tensor | PackedSequence
    state: Hidden
    inside: list[dict[str, Tensor | PackedSequence]]
    """For each layer and direction the gates by the letters of the cell's equation, h, and the LSTM's c."""


def trace(layer: nn.RNNBase, input: Tensor | PackedSequence, hx: Hidden | None) -> LayerTrace:
    """Call a layer of `torch.nn` and show its gates and states; PyTorch's kernels do not, so the equations do.

    >>> inside = trace(nn.LSTM(3, 5), torch.ones(7, 2, 3), None).inside
    >>> sorted(inside[0]), inside[0]["f"].shape
    (['c', 'f', 'g', 'h', 'i', 'o'], torch.Size([7, 2, 5]))
    """
    steps, call, backend = _prepared(layer, input, hx)
    run_layer = compiled_layer if backend is run_compiled else cells_layer
    data, final, shown = run_layers(call, run_layer, show_inside=True)
    inside = [{name: steps.output(part) for name, part in each.items()} for each in shown]
    return LayerTrace(steps.output(data), steps.final_state(final), inside)


def _prepared(layer: nn.RNNBase, input: Tensor | PackedSequence, hx: Hidden | None) -> tuple[Steps, Call, Backend]:
    steps = Steps.of(input, layer.batch_first)
    layer.check_input(steps.data, steps.batch_sizes)
    state = None if hx is None else _state(layer, steps, hx)
    weights = weights_of(layer, getattr(layer, "weight_dropout", 0.0))
    call = Call(layer, weights, steps.data, steps.batch_sizes, state)
    backend = choose(getattr(layer, "backend", "auto"), *call.tensors())
    if backend is run_torch and not hasattr(torch, layer.mode.lower()):  # the logistic and the identity network
        backend = run_cells
    return steps, call, backend


def _state_shapes(layer: nn.RNNBase, batch: int) -> list[tuple[int, int, int]]:
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    sizes = [layer.proj_size or layer.hidden_size] + [layer.hidden_size] * (layer.mode == "LSTM")
    return [(count, batch, size) for size in sizes]


def _state(layer: nn.RNNBase, steps: Steps, hx: Hidden) -> State:
    """The caller's state in the order of the data; RuntimeError where it does not fit the layer."""
    shapes = _state_shapes(layer, steps.batch_size)
    if len(as_state(hx)) != len(shapes):
        raise RuntimeError(f"expected a state of {len(shapes)} tensors, got {len(as_state(hx))}")
    state = steps.state(hx)
    for part, shape in zip(state, shapes, strict=True):
        layer.check_hidden_size(part, shape)
    return state
