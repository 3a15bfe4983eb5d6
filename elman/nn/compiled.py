"""The compiled recurrence as a function that PyTorch can differentiate.

The products that do not depend on the step before (the projected input, every weight's gradient) are single
products of PyTorch's; the kernels do the rest, all steps in one call.
"""

import inspect
import threading
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils.dlpack import to_dlpack  # type: ignore[attr-defined]

from elman import kernels
from elman.nn.cells import State

SECOND_DERIVATIVE = (
    "the compiled kernels have no second derivative: make the layer with backend='cells' to get one "
    "(layer.backend = 'cells' on one that exists)"
)
FORWARD_MODE = SECOND_DERIVATIVE.replace("second derivative", "derivative in forward mode")

Tensors = dict[str, Tensor]
"""What the kernel works on in one direction, by the names of csrc/recurrence.hpp."""


@dataclass(frozen=True)
class Shape:
    """What a layer's call depends on besides its tensors."""

    mode: str
    """RNN_TANH, RNN_RELU, LSTM or GRU."""
    hidden: int
    projected: bool
    bias: bool
    directions: int
    batch_sizes: tuple[int, ...]
    keep: bool
    """Whether gates, cell states and the like are to be kept: for a gradient, or to be looked at."""

    @property
    def parts(self) -> int:
        """How many tensors the state has."""
        return 2 if self.mode == "LSTM" else 1

    @property
    def blocks(self) -> int:
        """How many blocks of H columns the kernels keep of every step's gates; the GRU's fourth is W_hn h + b_hn."""
        return 1 if self.mode.startswith("RNN") else 4

    @property
    def kept_names(self) -> list[str]:
        """What is kept of every step, in this order: gates, the h before it, the c after it, what was projected."""
        lstm = ["cells"] * (self.mode == "LSTM") + ["inner"] * self.projected
        return ["gates", "before", *lstm] if self.keep else []

    @property
    def in_place(self) -> bool:
        """Whether the gates are the output itself, in the same memory: a simple network in one direction."""
        return self.blocks == 1 and self.directions == 1

    def by_direction(self, flat: Any) -> list[Any]:
        """Things of which each direction has the same number, direction by direction."""
        count = len(flat) // self.directions
        return [flat[i * count : (i + 1) * count] for i in range(self.directions)]

    def call(self, backward: bool, output: Tensor, directions: list[Tensors]) -> None:
        """Run the kernel on all directions at once."""
        size = output.shape[1] // self.directions
        tensors = [{name: to_dlpack(tensor) for name, tensor in each.items()} for each in directions]
        kernels.native.recurrence(
            backward, self.mode, self.hidden, size, kernels.threads(), self.batch_sizes, to_dlpack(output), tensors
        )


class Recurrence(torch.autograd.Function):
    """All steps of one layer, in one or two directions: (shape, data N x I, initial state, weights)."""

    @staticmethod
    def forward(shape: Shape, data: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        """The output (N x D*P), the final state (each D x B x size), and what was kept of each direction."""
        state = [part.detach().clone(memory_format=torch.contiguous_format) for part in tensors[: shape.parts]]
        size = state[0].shape[-1]
        output = data.new_empty(data.shape[0], shape.directions * size)  # N x D*P
        calls = []
        for direction, weights in enumerate(shape.by_direction(tensors[shape.parts :])):
            begin = {name: part[direction] for name, part in zip("hc", state, strict=False)}
            calls.append(begin | _prepare(shape, data, output, weights))
        shape.call(False, output, calls)
        return output, *state, *(call[name] for call in calls for name in shape.kept_names[shape.in_place :])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        """Keep what the gradient needs; that is no output to differentiate."""
        shape, *tensors = inputs
        kept = output[1 + shape.parts :]
        ctx.shape, ctx.needed, ctx.inputs = shape, ctx.needs_input_grad[1:], len(tensors)
        ctx.mark_non_differentiable(*kept)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, *output[: shape.in_place], *kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        """The gradients of data, initial state and weights."""
        # Recorded only where the gradient is to be differentiated again, to refuse that in a sentence.
        gradient = RecurrenceGradient.apply if torch.is_grad_enabled() else RecurrenceGradient.forward
        given = gradients[: 1 + ctx.shape.parts]
        return None, *gradient(ctx.shape, ctx.needed, ctx.inputs, *given, *ctx.saved_tensors)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Any:
        """Refused, in a sentence."""
        raise RuntimeError(FORWARD_MODE)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        """For `torch.func`."""
        return _one_by_one(Recurrence, info, in_dims, inputs)


class RecurrenceGradient(torch.autograd.Function):
    """The gradients of `Recurrence`, which cannot be differentiated again."""

    @staticmethod
    def forward(shape: Shape, needed: tuple[bool, ...], inputs: int, *tensors: Any) -> tuple[Tensor | None, ...]:
        """From the gradients of output and final state, then the inputs of `Recurrence`, then what it kept."""
        parts = shape.parts
        given, saved = tensors[: 1 + parts], tensors[1 + parts :]
        data, state, flat, kept = saved[0], saved[1 : 1 + parts], saved[1 + parts : inputs], saved[inputs:]
        weights = shape.by_direction(flat)
        d_output = given[0]
        if d_output is None:
            d_output = data.new_zeros(data.shape[0], shape.directions * state[0].shape[-1])
        d_state = [_copy_or_zeros(grad, part) for grad, part in zip(given[1:], state, strict=True)]
        calls = []
        for direction, (group, held) in enumerate(zip(weights, shape.by_direction(kept), strict=True)):
            begin = {f"d_{name}": part[direction] for name, part in zip("hc", d_state, strict=False)}
            if parts == 2:
                begin["c"] = state[1][direction].detach().contiguous()
            begin |= dict(zip(shape.kept_names, held, strict=True))
            calls.append(begin | _prepare_back(shape, direction, held, group))
        shape.call(True, d_output.contiguous(), calls)
        wanted = shape.by_direction(needed[1 + parts :])
        d_weights = [
            gradient
            for call, group, which in zip(calls, weights, wanted, strict=True)
            for gradient in _weight_gradients(shape, data, call, group, which)
        ]
        return _data_gradient(calls, weights) if needed[0] else None, *d_state, *d_weights

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...]) -> None:
        """Nothing is kept: see `backward`."""

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Refused, in a sentence."""
        raise RuntimeError(SECOND_DERIVATIVE)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Any, Any]:
        """For `torch.func`."""
        return _one_by_one(RecurrenceGradient, info, in_dims, inputs)


# PyTorch asks for the signature at every call; found once here, it costs nothing there.
_functions: tuple[Any, ...] = (Recurrence, RecurrenceGradient)
for _function in _functions:
    _function.forward.__signature__ = inspect.signature(_function.forward)


def _prepare(shape: Shape, data: Tensor, output: Tensor, weights: tuple[Tensor, ...]) -> Tensors:
    """What the kernel gets for one direction, the projected input in the place of the gates."""
    weight_ih, weight_hh = weights[:2]
    gates = output if shape.in_place else data.new_empty(data.shape[0], shape.blocks * shape.hidden)  # N x K*H
    torch.mm(data, weight_ih.t(), out=gates[:, : weight_ih.shape[0]])
    found = {"gates": gates, "weight_hh": weight_hh.detach().contiguous()}
    if shape.bias:
        found["bias"] = _bias(shape, *weights[2:4])
    if shape.projected:
        found["weight_hr"] = weights[-1].detach().contiguous()
    for name in shape.kept_names[1:]:
        size = output.shape[1] // shape.directions if name == "before" else shape.hidden
        found[name] = data.new_empty(data.shape[0], size)
    return found


def _bias(shape: Shape, bias_ih: Tensor, bias_hh: Tensor) -> Tensor:
    """The bias of each of the kernel's blocks (1 x K*H); the GRU's candidate has two, inside and outside the gate."""
    if shape.mode != "GRU":
        return (bias_ih + bias_hh).detach().unsqueeze(0)
    gates = 2 * shape.hidden
    return torch.cat([bias_ih[:gates] + bias_hh[:gates], bias_ih[gates:], bias_hh[gates:]]).detach().unsqueeze(0)


def _prepare_back(shape: Shape, direction: int, kept: tuple[Tensor, ...], weights: tuple[Tensor, ...]) -> Tensors:
    """What the kernel needs besides for the way back: weights, and room for the gradients of every step."""
    gates, before = kept[:2]
    found = {"weight_hh": weights[1].detach().contiguous(), "d_gates": scratch(gates, direction)}
    if shape.projected:
        found |= {"weight_hr": weights[-1].detach().contiguous(), "d_hidden": torch.empty_like(before)}
    return found


_reused = threading.local()
REUSED_BYTES = 64 * 2**20
"""How large the room may be that a thread keeps for the next call."""


def scratch(like: Tensor, place: int) -> Tensor:
    """Room of the shape of `like` that is done with when the call ends, so that the next call can have it again.

    Memory that is new costs a visit to the operating system for each page: more than the gates' gradients themselves.
    """
    key = (place, like.dtype)
    buffers = _reused.__dict__.setdefault("buffers", {})
    if key not in buffers or buffers[key].numel() < like.numel():
        buffers.pop(key, None)
        room = like.new_empty(like.numel())
        if like.nbytes > REUSED_BYTES:
            return room.view(like.shape)
        buffers[key] = room
    found: Tensor = buffers[key][: like.numel()].view(like.shape)
    return found


def _data_gradient(calls: list[Tensors], weights: list[tuple[Tensor, ...]]) -> Tensor:
    """The gradient of the layer's input (N x I), from all directions."""
    total = torch.empty(0)
    for call, (weight_ih, *_) in zip(calls, weights, strict=True):
        d_gates = call["d_gates"][:, : weight_ih.shape[0]]
        total = torch.addmm(total, d_gates, weight_ih) if total.numel() else d_gates @ weight_ih
    return total


def _weight_gradients(
    shape: Shape, data: Tensor, call: Tensors, weights: tuple[Tensor, ...], wanted: tuple[bool, ...]
) -> list[Tensor | None]:
    """The gradients of one direction's weights, each one product over all steps."""
    d_gates, before = call["d_gates"], call["before"]
    rows, gates = weights[0].shape[0], 2 * shape.hidden
    found: list[Tensor | None] = [d_gates[:, :rows].t() @ data if wanted[0] else None]
    if not wanted[1]:
        found.append(None)
    elif shape.mode == "GRU":  # the candidate's recurrent part stands behind the part of the input
        d_weight = torch.empty_like(weights[1], memory_format=torch.contiguous_format)
        torch.mm(d_gates[:, :gates].t(), before, out=d_weight[:gates])
        torch.mm(d_gates[:, rows:].t(), before, out=d_weight[gates:])
        found.append(d_weight)
    else:
        found.append(d_gates.t() @ before)
    if shape.bias:
        sums = d_gates.sum(0)
        recurrent = torch.cat([sums[:gates], sums[rows:]]) if shape.mode == "GRU" else sums.clone()
        found += [sums[:rows], recurrent]
    if shape.projected:
        found.append(call["d_hidden"].t() @ call["inner"] if wanted[-1] else None)
    return found


def _copy_or_zeros(gradient: Tensor | None, like: Tensor) -> Tensor:
    if gradient is None:
        return torch.zeros_like(like, memory_format=torch.contiguous_format)
    return gradient.clone(memory_format=torch.contiguous_format)


def _one_by_one(function: Any, info: Any, in_dims: tuple[Any, ...], inputs: tuple[Any, ...]) -> tuple[Any, Any]:
    """What `torch.vmap` asks of a function, here a loop: the kernels' own batch is what runs side by side."""
    results = []
    for i in range(info.batch_size):
        chosen = [x.select(dim, i) if isinstance(dim, int) else x for x, dim in zip(inputs, in_dims, strict=True)]
        results.append(function.apply(*chosen))
    stacked = tuple(None if each[0] is None else torch.stack(each) for each in zip(*results, strict=True))
    return stacked, tuple(None if each is None else 0 for each in stacked)


def _check(data: Tensor, others: list[Tensor]) -> None:
    """RuntimeError, as PyTorch raises it, for what the kernels cannot run on."""
    if not kernels.available():
        raise RuntimeError(f"the compiled kernels are not there ({kernels.missing}): use backend='auto'")
    if data.numel() == 0:
        raise RuntimeError(f"expected at least one step and one sequence, got data of shape {tuple(data.shape)}")
    for other in others:
        if other.dtype != data.dtype:
            raise RuntimeError(f"expected state and weights of {data.dtype} as the input is, got {other.dtype}")


def run_layer(
    shape: Shape, data: Tensor, state: State, weights: list[list[Tensor]]
) -> tuple[Tensor, State, list[Tensors]]:
    """One layer on data of N x I: the output of all steps, the final state, what was kept of each direction."""
    flat = [weight for group in weights for weight in group]
    _check(data, [*state, *flat])
    # Without gradients the function itself will do, and is quicker to call; but vmap has to see it applied.
    recorded = torch.is_grad_enabled() or torch._C._are_functorch_transforms_active()
    run = Recurrence.apply if recorded else Recurrence.forward
    output, *rest = run(shape, data, *state, *flat)
    kept = shape.by_direction([output] * (shape.keep and shape.in_place) + rest[shape.parts :])
    return output, tuple(rest[: shape.parts]), [dict(zip(shape.kept_names, group, strict=True)) for group in kept]


def letters(shape: Shape, kept: Tensors) -> Tensors:
    """What was kept of one direction by the letters of its cell's equation, each N x H."""
    names = {"LSTM": "ifgo", "GRU": "rzn"}.get(shape.mode, "")
    gates = dict(zip(names, torch.split(kept["gates"], shape.hidden, dim=-1), strict=False))
    return gates | ({"c": kept["cells"]} if shape.mode == "LSTM" else {})
