"""The compiled recurrence as a function that PyTorch can differentiate.

The products that do not depend on the step before (the projected input, every weight's gradient) are single
products of PyTorch's; the kernels do the rest, all steps in one call. Of a small layer they project the input too.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.cells import State
from elman.nn.fast.autograd import by_autograd, is_batched, is_transformed, one_by_one
from elman.nn.fast.torch_layers import cell_with
from elman.nn.steps import unroll_directions

FORWARD_MODE = (
    "the compiled kernels have no derivative in forward mode: make the layer with backend='auto' or backend='cells' to "
    "get one (layer.backend = 'cells' on one that exists)"
)

Tensors = dict[str, Tensor]
"""What the kernel works on in one direction, by the names of csrc/recurrence_kernel.hpp."""


@dataclass(frozen=True)
class Shape:
    """What a layer's call depends on besides its tensors."""

    mode: str
    """RNN_ and its nonlinearity, LSTM or GRU."""
    input: int
    hidden: int
    projected: bool
    bias: bool
    directions: int
    batch_sizes: tuple[int, ...]
    keep: bool
    """Whether gates, cell states and the like are kept: for a gradient, or to be shown."""

    @cached_property
    def parts(self) -> int:
        """How many tensors the state has."""
        return 2 if self.mode == "LSTM" else 1

    @cached_property
    def simple(self) -> bool:
        """Whether there are no gates: the projected input lies where the output will."""
        return self.mode.startswith("RNN")

    @cached_property
    def kept_names(self) -> tuple[str, ...]:
        """What is kept of every step in each direction, in this order."""
        if not self.keep:
            return ()
        if self.simple:
            return ("before", "last")
        if self.mode == "GRU":
            return ("gates", "before", "inner")
        return ("gates", "before", "cells", "inner") if self.projected else ("gates", "before", "cells")

    @cached_property
    def whole(self) -> bool:
        """Whether the kernel multiplies with the weights of the input too, while a step's rows are in the cache.

        A large layer's weights would push each other out of it, and PyTorch's products have all cores for one sequence.
        """
        gates = 1 if self.simple else 3 if self.mode == "GRU" else 4
        numbers = gates * self.hidden * (self.input + self.hidden)
        return self.directions == 1 and numbers <= SMALL and sum(self.batch_sizes) >= 4 * len(self.batch_sizes)

    def by_direction(self, flat: Any) -> list[Any]:
        """Things of which each direction has the same number, direction by direction."""
        count = len(flat) // self.directions
        return [flat[i * count : (i + 1) * count] for i in range(self.directions)]

    def call(self, backward: bool, output: Tensor, states: Tensors, directions: list[Tensors]) -> None:
        """Run the kernel on all directions at once."""
        size = output.shape[-1] // self.directions
        rows = output.numel() // output.shape[-1]
        inputs = self.input if "weight_ih" in directions[0] else 0
        threads = min(kernels.threads(), 1 + rows * self.directions * self.hidden * (inputs + size) // GRAIN)
        kernels.native.recurrence(
            backward,
            self.mode,
            inputs,
            self.hidden,
            size,
            threads,
            self.batch_sizes,
            to_dlpack(output),
            {name: to_dlpack(tensor) for name, tensor in states.items()},
            [{name: to_dlpack(tensor) for name, tensor in each.items()} for each in directions],
        )


SMALL = 5 * 2**14
"""So many weights of input and state stay in a core's second-level cache with room for the rows: 320 KB in float32."""
GRAIN = 2**18
"""So many products of two numbers (steps x hidden x input and output size) are worth another thread."""


class _KernelFunction(torch.autograd.Function):
    """A function of the kernels under the transforms of `torch.func`."""

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Refused, in a sentence."""
        raise RuntimeError(FORWARD_MODE)

    @classmethod
    def vmap(cls, info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        """A loop: the kernels' own batch is what runs side by side."""
        results = []
        for i in range(info.batch_size):
            chosen = [x.select(dim, i) if isinstance(dim, int) else x for x, dim in zip(inputs, in_dims, strict=True)]
            results.append(cls.apply(*chosen))  # type: ignore[no-untyped-call]
        stacked = tuple(None if each[0] is None else torch.stack(each) for each in zip(*results, strict=True))
        return stacked, tuple(None if each is None else 0 for each in stacked)


class Recurrence(_KernelFunction):
    """All steps of one layer, in one or two directions: (shape, data, initial state, weights).

    Data are T x B x I or N x I; N below is either. A state of zeros is None.
    """

    @staticmethod
    def forward(shape: Shape, data: Tensor, *tensors: Any) -> tuple[Tensor, ...]:
        """The output (N x D*P), the final state (each D x B x size), and what was kept of each direction."""
        begin, weights = tensors[: shape.parts], shape.by_direction(tensors[shape.parts :])
        size, batch = weights[0][1].shape[1], shape.batch_sizes[0]
        states: Tensors = {"h": data.new_empty(shape.directions, batch, size)}
        if shape.parts == 2:
            states["c"] = data.new_empty(shape.directions, batch, shape.hidden)
        final = tuple(states.values())
        for name, part in zip(("h_0", "c_0"), begin, strict=False):
            if part is not None:
                states[name] = part.contiguous()
        output, calls = _project(shape, data, weights)
        for call in calls:
            _add_kept(shape, call, output)
        shape.call(False, output, states, calls)
        return output, *final, *(call[name] for call in calls for name in shape.kept_names)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep what the gradient needs; that is no output to differentiate."""
        shape, *tensors = inputs
        kept = output[1 + shape.parts :]
        ctx.shape, ctx.needed, ctx.inputs = shape, ctx.needs_input_grad[1:], len(tensors)
        ctx.mark_non_differentiable(*kept)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of data, initial state and weights."""
        # Without a derivative or a transform to come, the function itself will do, and is quicker to call.
        is_followed = torch.is_grad_enabled() or is_transformed()
        gradient = RecurrenceGradient.apply if is_followed else RecurrenceGradient.forward
        call = partial(gradient, ctx.shape, ctx.needed, ctx.inputs)
        tensors = (*gradients[: 1 + ctx.shape.parts], *ctx.saved_tensors)
        return None, *(one_by_one(call, *tensors) if is_batched(*gradients) else call(*tensors))


class RecurrenceGradient(_KernelFunction):
    """The gradients of `Recurrence`, as a function whose own gradient autograd makes of the cells' equations."""

    @staticmethod
    def forward(shape: Shape, needed: tuple[bool, ...], inputs: int, *tensors: Any) -> tuple[Tensor | None, ...]:
        """From the gradients of output and final state, then the inputs of `Recurrence`, then what it kept."""
        parts = shape.parts
        (d_output, *d_final), saved = tensors[: 1 + parts], tensors[1 + parts :]
        data, begin, flat, kept = saved[0], saved[1 : 1 + parts], saved[1 + parts : inputs], saved[inputs:]
        weights = shape.by_direction(flat)
        if d_output is None:
            d_output = data.new_zeros(*data.shape[:-1], shape.directions * weights[0][1].shape[1])
        states = {f"d_{name}_n": d.contiguous() for name, d in zip("hc", d_final, strict=False) if d is not None}
        d_state = [_memory_for(part, asked) for part, asked in zip(begin, needed[1:], strict=False)]
        states |= {f"d_{name}": part for name, part in zip("hc", d_state, strict=False) if part is not None}
        if parts == 2 and begin[1] is not None:
            states["c_0"] = begin[1].contiguous()
        calls = []
        for direction, (group, held) in enumerate(zip(weights, shape.by_direction(kept), strict=True)):
            call = dict(zip(shape.kept_names, held, strict=True))
            calls.append(_add_gradients(shape, direction, call, group))
        d_data = None
        if needed[0] and shape.whole:
            d_data = torch.empty_like(data)
            calls[0] |= {"weight_ih": weights[0][0].contiguous(), "d_input": d_data}
        shape.call(True, d_output.contiguous(), states, calls)
        shape_of_data, data = data.shape, data.reshape(-1, data.shape[-1])  # N x I
        wanted = shape.by_direction(needed[1 + parts :])
        d_weights = [
            gradient
            for call, group, which in zip(calls, weights, wanted, strict=True)
            for gradient in _weight_gradients(shape, data, call, group, which)
        ]
        if needed[0] and d_data is None:
            d_data = _data_gradient(calls, weights).view(shape_of_data)
        return d_data, *d_state, *d_weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        """Keep the gradients of the outputs and the inputs of `Recurrence`, from which all can be computed again."""
        ctx.shape, ctx.needed, count, *tensors = inputs
        ctx.outputs, ctx.kept = 1 + ctx.shape.parts, len(tensors) - (1 + ctx.shape.parts + count)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors[: ctx.outputs + count])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of the outputs' gradients, and of data, initial state and weights."""

        def first(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
            d_outputs, inputs = tensors[: ctx.outputs], tensors[ctx.outputs :]
            return by_autograd(partial(_equations, ctx.shape), inputs, ctx.needed, *d_outputs)

        needed = ctx.needs_input_grad[3 : 3 + len(ctx.saved_tensors)]
        second = by_autograd(first, ctx.saved_tensors, needed, *gradients)
        return None, None, None, *second, *(None,) * ctx.kept


_record: Callable[..., Any] = super(torch.autograd.Function, Recurrence).apply
"""`Recurrence.apply` where no transform of `torch.func` is under way. The other one binds its arguments to a signature
first, which takes a tenth of a millisecond between two kernels."""


def _equations(shape: Shape, data: Tensor, *tensors: Any) -> tuple[Tensor, ...]:
    """What `Recurrence` computes, output and final state, by the cells' equations."""
    weights = shape.by_direction(tensors[shape.parts :])
    cells = [cell_with(shape.mode, shape.hidden, shape.bias, own) for own in weights]
    zeros = cells[0].initial_state(shape.batch_sizes[0], data)
    begin = [part.expand(shape.directions, -1, -1) for part in zeros]
    state = tuple(zero if part is None else part for zero, part in zip(begin, tensors, strict=False))
    sizes = None if data.dim() == 3 else torch.tensor(shape.batch_sizes)
    output, final = unroll_directions(cells, data, sizes, state)
    return output, *final


def _project(shape: Shape, data: Tensor, weights: list[tuple[Tensor, ...]]) -> tuple[Tensor, list[Tensors]]:
    """Memory for the output, and what the kernel gets for each direction, the projected input in its place."""
    calls: list[Tensors] = []
    for weight_ih, weight_hh, *others in weights:
        call = {"weight_hh": weight_hh.contiguous()}
        if shape.whole:
            call |= {"input": data.view(-1, data.shape[-1]), "weight_ih": weight_ih.contiguous()}
        if not shape.simple:
            gates = data.new_empty(*data.shape[:-1], len(weight_ih)) if shape.whole else linear(data, weight_ih)
            call["gates"] = gates  # N x G*H
        if shape.bias:
            call["bias_ih"], call["bias_hh"] = others[0].contiguous(), others[1].contiguous()
        if shape.projected:
            call["weight_hr"] = others[-1].contiguous()
        calls.append(call)
    if shape.whole or not shape.simple:
        return data.new_empty(*data.shape[:-1], shape.directions * weights[0][1].shape[1]), calls  # N x D*P
    inputs = [group[0] for group in weights]
    return linear(data, inputs[0] if len(inputs) == 1 else torch.cat(inputs)), calls


def _add_kept(shape: Shape, call: Tensors, output: Tensor) -> None:
    """Memory for what is kept of every step, besides the gates."""
    steps, size = output.shape[:-1], output.shape[-1] // shape.directions
    for name in shape.kept_names:
        if name == "last":
            call[name] = output.new_empty(shape.batch_sizes[0], size)
        elif name != "gates":
            call[name] = output.new_empty(*steps, size if name == "before" else shape.hidden)


def _add_gradients(shape: Shape, direction: int, call: Tensors, weights: tuple[Tensor, ...]) -> Tensors:
    """What the backward kernel needs besides: weights, and memory for the gradients of every step."""
    before = call["before"]
    rows = before.numel() // before.shape[-1]
    blocks = 1 if shape.simple else 4  # the GRU's fourth is of W_hn h + b_hn
    call["weight_hh"] = weights[1].contiguous()
    call["d_gates"] = scratch(before, direction, rows, blocks * shape.hidden)
    if shape.projected:
        call["weight_hr"], call["d_hidden"] = weights[-1].contiguous(), torch.empty_like(before)
    return call


def _memory_for(state: Tensor | None, asked: bool) -> Tensor | None:
    return torch.empty_like(state, memory_format=torch.contiguous_format) if asked and state is not None else None


_reused = threading.local()
REUSED_BYTES = 64 * 2**20
"""How much memory a thread may keep for the next call."""


def scratch(like: Tensor, place: int | str, rows: int, columns: int) -> Tensor:
    """Memory of the type of `like` that is free again when the call ends, so that the next call can have it.

    Memory that is new costs a visit to the operating system for each page: more than the gates' gradients themselves.
    """
    buffers: dict[tuple[int | str, torch.dtype], Tensor] = _reused.__dict__.setdefault("buffers", {})
    key, count = (place, like.dtype), rows * columns
    buffer = buffers.get(key)
    if buffer is None or buffer.numel() < count:
        buffers.pop(key, None)
        with torch.inference_mode(False):  # the next call may be one that learns
            buffer = torch.empty(count, dtype=like.dtype, device=like.device)
        if buffer.nbytes <= REUSED_BYTES:
            buffers[key] = buffer
    return buffer[:count].view(rows, columns)


def _data_gradient(calls: list[Tensors], weights: list[tuple[Tensor, ...]]) -> Tensor:
    """The gradient of the layer's input (N x I), from all directions."""
    parts = [(call["d_gates"][:, : len(group[0])], group[0]) for call, group in zip(calls, weights, strict=True)]
    total = torch.mm(*parts[0])
    for part in parts[1:]:
        total.addmm_(*part)
    return total


def _weight_gradients(
    shape: Shape, data: Tensor, call: Tensors, weights: tuple[Tensor, ...], wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of one direction's weights, each one product over all steps."""
    d_gates, before = call["d_gates"], call["before"]
    before = before.view(-1, before.shape[-1])  # N x P
    rows, gates = weights[0].shape[0], 2 * shape.hidden
    gradients: list[Tensor | None] = [d_gates[:, :rows].t() @ data if wanted[0] else None]
    if not wanted[1]:
        gradients.append(None)
    elif shape.mode == "GRU":  # the candidate's recurrent part stands behind the part of the input
        d_weight = torch.empty_like(weights[1], memory_format=torch.contiguous_format)
        torch.mm(d_gates[:, :gates].t(), before, out=d_weight[:gates])
        torch.mm(d_gates[:, rows:].t(), before, out=d_weight[gates:])
        gradients.append(d_weight)
    else:
        gradients.append(d_gates.t() @ before)
    if shape.bias:
        sums = d_gates.sum(0)
        recurrent = torch.cat([sums[:gates], sums[rows:]]) if shape.mode == "GRU" else sums.clone()
        gradients += [sums[:rows], recurrent]
    if shape.projected:
        d_hidden, inner = (call[name].view(len(before), -1) for name in ("d_hidden", "inner"))
        gradients.append(d_hidden.t() @ inner if wanted[-1] else None)
    return gradients


def _check(data: Tensor, others: list[Tensor | None]) -> None:
    """RuntimeError, as PyTorch raises it, for what the kernels cannot run on."""
    if not kernels.available():
        raise RuntimeError(f"the compiled kernels are not there ({kernels.missing}): use backend='auto'")
    if data.numel() == 0:
        raise RuntimeError(f"expected at least one step and one sequence, got data of shape {tuple(data.shape)}")
    for tensor in (data, *others):
        if tensor is None:
            continue
        if tensor.dtype != data.dtype:
            raise RuntimeError(f"expected state and weights of {data.dtype} as the input is, got {tensor.dtype}")
        if not tensor.is_cpu:
            raise RuntimeError(
                f"the compiled kernels run on the CPU, and a tensor is on {tensor.device}: use backend='auto'"
            )


def run_layer(
    shape: Shape, data: Tensor, state: State | None, weights: list[list[Tensor]]
) -> tuple[Tensor, State, list[Tensors]]:
    """One layer on contiguous data (T x B x I or N x I): outputs, final state, what was kept of each direction."""
    flat = [weight for group in weights for weight in group]
    begin = (None,) * shape.parts if state is None else state
    _check(data, [*begin, *flat])
    # Without gradients the function itself will do, and is quicker to call; but a transform has to see it applied.
    run: Callable[..., Any] = _record if torch.is_grad_enabled() else Recurrence.forward
    if torch._C._are_functorch_transforms_active():
        run = Recurrence.apply
    output, *rest = run(shape, data, *begin, *flat)
    kept = shape.by_direction(rest[shape.parts :])
    return output, tuple(rest[: shape.parts]), [dict(zip(shape.kept_names, group, strict=True)) for group in kept]


def letters(shape: Shape, kept: Tensors) -> Tensors:
    """What was kept of one direction by the letters of its cell's equation, each N x H."""
    if shape.simple:
        return {}
    names = "ifgo" if shape.mode == "LSTM" else "rzn"
    gates = dict(zip(names, torch.split(kept["gates"], shape.hidden, dim=-1), strict=True))
    return gates | ({"c": kept["cells"]} if shape.mode == "LSTM" else {})
