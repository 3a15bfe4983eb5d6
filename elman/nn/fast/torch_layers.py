"""The layers of `torch.nn` from inside: the weights they compute with, the cell that has them, a single step."""

from collections.abc import Callable, Sequence
from operator import is_
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.nn.cells import Cell, ElmanCell, GRUCell, LSTMCell, State
from elman.nn.dropout import drop_weight
from elman.nn.fast.autograd import by_autograd

_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward


def weights_of(layer: nn.RNNBase, weight_dropout: float = 0.0) -> list[list[Tensor]]:
    """For each layer and direction: weight_ih, weight_hh, then the biases and weight_hr where it has them.

    As in PyTorch these are the tensors of `_flat_weights`, but for a layer whose weights have others by now: by a
    parametrization, a hook, or `torch.func.functional_call`. With `weight_dropout` each weight_hh of a layer that
    trains has a fresh mask.

    >>> layer = nn.GRU(3, 5)
    >>> [tuple(weight.shape) for weight in weights_of(layer)[0]]
    [(15, 3), (15, 5), (15,), (15,)]
    >>> layer._flat_weights[3] = layer.bias_hh_l0 + 1
    >>> weights_of(layer)[0][3] is layer._flat_weights[3]
    True
    """
    flat = [getattr(layer, name) for name in layer._flat_weights_names]
    if not all(map(is_, flat, layer._flat_weights)):
        references = zip(layer._flat_weight_refs, flat, strict=True)
        if all(reference is not None and reference() is weight for reference, weight in references):
            flat = layer._flat_weights
    count = len(flat) // len(layer._all_weights)
    weights = [flat[place : place + count] for place in range(0, len(flat), count)]
    if weight_dropout:
        for group in weights:
            group[1] = drop_weight(group[1], weight_dropout, layer.training)
    return weights


def cell_with(mode: str, hidden_size: int, bias: bool, weights: Sequence[Tensor]) -> Cell:
    """The cell of a layer of a `mode` of `torch.nn` that computes with these weights, in the order of `weights_of`.

    >>> layer = nn.LSTM(3, 5, proj_size=2)
    >>> cell_with(layer.mode, 5, True, *weights_of(layer)).output_size
    2
    """
    names = ("weight_ih", "weight_hh", *(("bias_ih", "bias_hh") if bias else ()), "weight_hr")
    named = dict(zip(names, weights, strict=False))
    sizes = (weights[0].size(1), hidden_size, bias)
    cell: Cell
    # On the meta device the cell's own weights take neither memory nor random numbers.
    if mode == "LSTM":
        cell = LSTMCell(*sizes, proj_size=len(named.get("weight_hr", ())), device="meta")
    elif mode == "GRU":
        cell = GRUCell(*sizes, device="meta")
    else:
        cell = ElmanCell(*sizes, nonlinearity=mode.removeprefix("RNN_").lower(), device="meta")
    return cell.with_weights(**named)


def can_step(layer: nn.Module) -> bool:
    """Whether `step` knows the equations of a layer."""
    return isinstance(layer, nn.RNNBase) and layer.num_layers == 1 and not (layer.bidirectional or layer.proj_size)


def step(layer: nn.RNNBase, x: Tensor, state: State) -> State:
    """The state (each R x H) of a layer that `can_step` after one more step (R x I).

    This is leaner than a call of the layer with a sequence of length one.

    >>> layer = nn.LSTM(3, 5)
    >>> x, state = torch.randn(2, 3), (torch.randn(2, 5), torch.randn(2, 5))
    >>> _, (h, c) = layer(x.unsqueeze(0), tuple(part.unsqueeze(0) for part in state))
    >>> torch.allclose(step(layer, x, state)[1], c[0], atol=1e-6)
    True
    """
    weight_ih, weight_hh, bias_ih, bias_hh = step_weights(layer)
    return next_state(layer.mode, linear(x, weight_ih, bias_ih), linear(state[0], weight_hh, bias_hh), state)


def step_weights(layer: nn.RNNBase, weight_dropout: float = 0.0) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The matrices of input and state, then their biases, of a layer that `can_step`."""
    ((weight_ih, weight_hh, *biases),) = weights_of(layer, weight_dropout)
    return weight_ih, weight_hh, *(biases or (None, None))


def next_state(mode: str, x: Tensor, hh: Tensor, state: State) -> State:
    """The next state of a layer of a `mode` of `torch.nn`, from x = W_ih x + b_ih and hh = W_hh h + b_hh (R x G*H)."""
    if mode == "GRU":
        return _gru(x, hh, state[0])[:1]
    total = x + hh
    if mode == "LSTM":
        i, f, g, o = total.chunk(4, dim=1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    return (IN_PLACE[mode](total),)


IN_PLACE: dict[str, Callable[[Tensor], Tensor]] = {
    "RNN_TANH": Tensor.tanh_,
    "RNN_RELU": Tensor.relu_,
    "RNN_LOGISTIC": Tensor.sigmoid_,
    "RNN_IDENTITY": lambda total: total,
}


def _gru(x: Tensor, hh: Tensor, h: Tensor) -> State:
    """h' and the gates r, z and n of a GRU, in fewer operations than `GRUCell` is written in."""
    x_rz, x_n = torch.split(x, [2 * h.shape[1], h.shape[1]], dim=1)
    h_rz, h_n = torch.split(hh, [2 * h.shape[1], h.shape[1]], dim=1)
    r, z = (x_rz + h_rz).sigmoid_().chunk(2, dim=1)
    n = torch.addcmul(x_n, r, h_n).tanh_()
    return torch.lerp(n, h, z), r, z, n


class GRUStep(torch.autograd.Function):
    """`next_state` of a GRU as one function, whose backward pass is a dozen small operations shorter.

    >>> x, hh, h = torch.randn(2, 12), torch.randn(2, 12), torch.randn(2, 4)
    >>> torch.equal(GRUStep.apply(x, hh, h), next_state("GRU", x, hh, (h,))[0])
    True
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, hh: Tensor, h: Tensor) -> Tensor:
        after, r, z, n = _gru(x, hh, h)
        ctx.save_for_backward(x, hh, h, r, z, n)
        return after

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, ...]:
        x, hh, h, r, z, n = ctx.saved_tensors
        if torch.is_grad_enabled():
            return by_autograd(lambda *parts: _gru(*parts)[0], (x, hh, h), ctx.needs_input_grad, d)
        d_h = d * z
        d_n = _tanh_backward(d - d_h, n)
        d_z = _sigmoid_backward(d * (h - n), z)
        d_r = _sigmoid_backward(d_n * hh[:, 2 * h.shape[1] :], r)
        return torch.cat((d_r, d_z, d_n), dim=1), torch.cat((d_r, d_z, d_n * r), dim=1), d_h
