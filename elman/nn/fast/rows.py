"""One step of some rows through a layer of `torch.nn`, by its equations: leaner than a call with a sequence of one."""

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.nn.cells import State
from elman.nn.weights import weights_of


def can_step(layer: nn.Module) -> bool:
    """Whether `step` knows the equations of a layer."""
    return isinstance(layer, nn.RNNBase) and layer.num_layers == 1 and not (layer.bidirectional or layer.proj_size)


def step(layer: nn.RNNBase, x: Tensor, state: State) -> State:
    """The state (each R x H) of a layer of `torch.nn` in one direction after one more step (R x I).

    >>> layer = nn.LSTM(3, 5)
    >>> x, state = torch.randn(2, 3), (torch.randn(2, 5), torch.randn(2, 5))
    >>> _, (h, c) = layer(x.unsqueeze(0), tuple(part.unsqueeze(0) for part in state))
    >>> torch.allclose(step(layer, x, state)[1], c[0], atol=1e-6)
    True
    """
    weight_ih, weight_hh, bias_ih, bias_hh = all_weights(layer)
    return after(layer.mode, linear(x, weight_ih, bias_ih), linear(state[0], weight_hh, bias_hh), state)


def all_weights(layer: nn.RNNBase) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """The matrices of input and state, then their biases, of a layer that `can_step`."""
    ((weight_ih, weight_hh, *biases),) = weights_of(layer)
    return weight_ih, weight_hh, *(biases or (None, None))


def after(mode: str, seen: Tensor, kept: Tensor, state: State) -> State:
    """The next state of a layer of a `mode` of `torch.nn`, from W_ih x + b_ih and W_hh h + b_hh (each R x G*H)."""
    h = state[0]
    H = h.shape[1]
    if mode == "GRU":
        # Split and not sliced: what comes back is then joined in one go.
        seen_rz, seen_n = torch.split(seen, [2 * H, H], dim=1)
        kept_rz, kept_n = torch.split(kept, [2 * H, H], dim=1)
        r, z = (seen_rz + kept_rz).sigmoid_().chunk(2, dim=1)
        n = torch.addcmul(seen_n, r, kept_n).tanh_()
        return (torch.lerp(n, h, z),)
    total = seen + kept
    if mode == "LSTM":
        i, f, g, o = total.chunk(4, dim=1)
        c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c
    return (total.tanh_() if mode == "RNN_TANH" else total.relu_(),)
