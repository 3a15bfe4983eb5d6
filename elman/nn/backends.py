"""How the recurrence of `RNN`, `LSTM` and `GRU` is computed: the one place where that is chosen.

A backend is a function from a `Call` to the outputs of all steps and the final state. It keeps nothing
between calls, so one layer can serve several threads.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from elman import kernels
from elman.nn.cells import Cell, State
from elman.nn.dropout import drop_weight
from elman.nn.fast.compiled import Shape, letters
from elman.nn.fast.compiled import run_layer as run_compiled_layer
from elman.nn.steps import Steps, unroll_directions
from elman.nn.weights import cell_with, weights_of

Hidden = Tensor | tuple[Tensor, Tensor]
"""A layer's state as the caller has it: (h, c) for the LSTM, h for the others."""


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
    return run_stack(call, cells_layer)[:2]


def run_compiled(call: Call) -> tuple[Tensor, State]:
    """Elman's own kernels."""
    return run_stack(call, compiled_layer)[:2]


Seen = list[dict[str, Tensor]]
"""What was seen inside a layer, for each direction: gates and states by their letters, each (T x B or N) x H."""

OneLayer = Callable[[Call, slice, Tensor, State | None, bool], tuple[Tensor, State, Seen]]
"""A layer of a call: where its weights are, its input, its state, whether to look inside."""


def run_stack(call: Call, run_layer: OneLayer, look: bool = False) -> tuple[Tensor, State, Seen]:
    """Layer upon layer, with dropout between them."""
    layer, data = call.layer, call.data
    if layer.num_layers == 1:
        return run_layer(call, slice(None), data, call.state, look)
    directions = 2 if layer.bidirectional else 1
    finals, seen = [], []
    for depth in range(layer.num_layers):
        places = slice(depth * directions, (depth + 1) * directions)
        state = None if call.state is None else tuple(part[places] for part in call.state)  # each D x B x H
        data, final, inside = run_layer(call, places, data, state, look)
        finals.append(final)
        seen += inside
        if depth < layer.num_layers - 1:
            data = dropout(data, layer.dropout, layer.training)
    return data, tuple(torch.cat(part) for part in zip(*finals, strict=True)), seen


def cells_layer(call: Call, places: slice, data: Tensor, state: State | None, look: bool) -> tuple[Tensor, State, Seen]:
    """One layer by its cell's equation."""
    layer, weights = call.layer, call.weights[places]
    state = tuple(part[places] for part in call.begin) if state is None else state
    cells = [cell_with(layer.mode, layer.hidden_size, layer.bias, own) for own in weights]
    records: list[list[dict[str, Tensor]] | None] = [[] if look else None for _ in cells]
    output, final = unroll_directions(cells, data, call.batch_sizes, state, records)
    join = torch.stack if call.batch_sizes is None else torch.cat
    seen = [{name: join([step[name] for step in record]) for name in record[0]} for record in records if record]
    return output, final, seen


def compiled_layer(
    call: Call, places: slice, data: Tensor, state: State | None, look: bool
) -> tuple[Tensor, State, Seen]:
    """One layer by the kernels."""
    layer, weights = call.layer, call.weights[places]
    sizes = (data.size(1),) * data.size(0) if call.batch_sizes is None else tuple(call.batch_sizes.tolist())
    shape = Shape(
        layer.mode,
        data.size(-1),
        layer.hidden_size,
        projected=layer.proj_size > 0,
        bias=layer.bias,
        directions=len(weights),
        batch_sizes=sizes,
        keep=look or torch.is_grad_enabled(),
    )
    output, final, kept = run_compiled_layer(shape, data.contiguous(), state, weights)
    if not look:
        return output, final, []
    seen = [letters(shape, each) | {"h": h} for each, h in zip(kept, output.chunk(len(kept), dim=-1), strict=True)]
    return output, final, seen


def cell_of(layer: nn.RNNBase) -> Cell:
    """The cell of a layer that is one layer in one direction, its recurrent weights with a fresh mask while training.

    >>> cell_of(nn.LSTM(3, 5, proj_size=2)).output_size
    2
    """
    (weights,) = _weights(layer, getattr(layer, "weight_dropout", 0.0))
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
    if name == "auto" and forward_ad._current_level >= 0:
        name = "cells"  # in forward mode neither the kernels nor PyTorch's LSTM have a derivative
    elif name == "auto":
        name = "compiled" if can_compile(data, *others) else "torch"
    return BACKENDS[name]


def can_compile(data: Tensor, *others: Tensor) -> bool:
    """Whether the kernels can run; what records or replaces operations needs PyTorch's own."""
    return (
        kernels.available()
        and data.dtype in (torch.float32, torch.float64)
        and data.numel() > 0
        and all(type(tensor) in PLAIN and tensor.is_cpu for tensor in (data, *others))
        and not torch.is_autocast_enabled("cpu")
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        and torch._C._len_torch_dispatch_stack() == 0  # fake tensors, make_fx, counters of operations
        and not (torch._C._are_functorch_transforms_active() and _functionalizes())
    )


def can_call(data: Tensor, *others: Tensor) -> bool:
    """Whether a kernel can run that is for float32 alone, and that neither forward mode nor `torch.func` can follow.

    >>> can_call(torch.zeros(1)) == kernels.available(), can_call(torch.zeros(1).double())
    (True, False)
    """
    followed = forward_ad._current_level >= 0 or torch._C._are_functorch_transforms_active()
    return data.dtype == torch.float32 and not followed and can_compile(data, *others)


PLAIN = (Tensor, nn.Parameter)
"""The types of tensors that compute as themselves: a subclass may not."""


def _functionalizes() -> bool:
    """Whether `torch.func.functionalize` is under way, which knows no functions of one's own."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    return any(level.key() == torch._C._functorch.TransformType.Functionalize for level in stack)


def run(
    layer: nn.RNNBase,
    input: Tensor | PackedSequence,
    hx: Hidden | None,
    *,
    backend: str = "auto",
    weight_dropout: float = 0.0,
) -> tuple[Tensor | PackedSequence, Hidden]:
    """Call a layer of `torch.nn` with the backend chosen: its output and final state, in the caller's layout.

    >>> layer = nn.GRU(3, 5)
    >>> output, h = run(layer, torch.ones(7, 2, 3), None, backend="cells")
    >>> torch.allclose(output, layer(torch.ones(7, 2, 3))[0], atol=1e-6)
    True
    """
    steps, call = _prepared(layer, input, hx, weight_dropout)
    data, final = choose(backend, *call.tensors())(call)
    return steps.output(data), _hidden(steps.final_state(final))


@dataclass(frozen=True)
class Trace:
    """A layer's output and final state, and what happened inside at every step."""

    output: Tensor | PackedSequence
    state: Hidden
    inside: list[dict[str, Tensor | PackedSequence]]
    """For each layer and direction the gates by the letters of the cell's equation, h, and the LSTM's c."""


def trace(
    layer: nn.RNNBase,
    input: Tensor | PackedSequence,
    hx: Hidden | None,
    *,
    backend: str = "auto",
    weight_dropout: float = 0.0,
) -> Trace:
    """As `run`, and gates and states too; PyTorch's own kernels do not give them, so the equations do in their place.

    >>> inside = trace(nn.LSTM(3, 5), torch.ones(7, 2, 3), None).inside
    >>> sorted(inside[0]), inside[0]["f"].shape
    (['c', 'f', 'g', 'h', 'i', 'o'], torch.Size([7, 2, 5]))
    """
    steps, call = _prepared(layer, input, hx, weight_dropout)
    compiled = choose(backend, *call.tensors()) is run_compiled
    data, final, seen = run_stack(call, compiled_layer if compiled else cells_layer, look=True)
    inside = [{name: steps.output(part) for name, part in each.items()} for each in seen]
    return Trace(steps.output(data), _hidden(steps.final_state(final)), inside)


def _prepared(
    layer: nn.RNNBase, input: Tensor | PackedSequence, hx: Hidden | None, weight_dropout: float
) -> tuple[Steps, Call]:
    steps = Steps.of(input, layer.batch_first)
    layer.check_input(steps.data, steps.batch_sizes)
    state = None if hx is None else _state(layer, steps, hx)
    return steps, Call(layer, _weights(layer, weight_dropout), steps.data, steps.batch_sizes, state)


def _state_shapes(layer: nn.RNNBase, batch: int) -> list[tuple[int, int, int]]:
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    sizes = [layer.proj_size or layer.hidden_size] + [layer.hidden_size] * (layer.mode == "LSTM")
    return [(count, batch, size) for size in sizes]


def _state(layer: nn.RNNBase, steps: Steps, hx: Hidden) -> State:
    """The caller's state in the order of the data; RuntimeError where it does not fit the layer."""
    shapes = _state_shapes(layer, steps.batch_size)
    given = (hx,) if isinstance(hx, Tensor) else tuple(hx)
    if len(given) != len(shapes):
        raise RuntimeError(f"expected a state of {len(shapes)} tensors, got {len(given)}")
    state = steps.state(given)
    for part, shape in zip(state, shapes, strict=True):
        layer.check_hidden_size(part, shape)
    return state


def _weights(layer: nn.RNNBase, weight_dropout: float) -> list[list[Tensor]]:
    """The weights of each layer and direction, the recurrent matrix with its mask."""
    weights = weights_of(layer)
    if weight_dropout:
        for group in weights:
            group[1] = drop_weight(group[1], weight_dropout, layer.training)  # which is the recurrent one
    return weights


def _hidden(state: State) -> Hidden:
    return state[0] if len(state) == 1 else (state[0], state[1])
