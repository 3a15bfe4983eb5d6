"""`RNN`, `LSTM` and `GRU`: in place of those of `torch.nn`, with the same arguments, shapes and state dict.

Two keyword arguments are new. `weight_dropout` drops recurrent weights while training, with a fresh mask for
each call. `backend` says how the recurrence is computed: "torch" (PyTorch's kernels), "cells" (the readable
equations of `elman.nn.cells`), "compiled" (Elman's kernels), or "auto": the kernels on the CPU, else PyTorch's.
`trace` is a call that shows the gates too. `convert` turns the layers of a whole network into these, and back.
"""

from typing import Any, Literal, TypeVar

from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.nn.utils.rnn import PackedSequence

from elman.nn.dropout import check_probability
from elman.nn.fast.backends import LayerTrace, check_backend, run, trace
from elman.nn.steps import Hidden

OWN_NONLINEARITIES = ("logistic", "identity")
"""Those of the simple network that PyTorch's layer has not."""


class _DropIn(nn.RNNBase):
    """What the three layers add to PyTorch's."""

    # For a layer of PyTorch's that became one of these by its class alone: see `convert`.
    weight_dropout: float = 0.0
    backend: str = "auto"

    def __init__(self, *args: Any, weight_dropout: float = 0.0, backend: str = "auto", **kwargs: Any) -> None:
        check_probability(weight_dropout, "weight_dropout")
        check_backend(backend)
        super().__init__(*args, **kwargs)
        self.weight_dropout = float(weight_dropout)
        self.backend = backend

    def forward(
        self, input: Tensor | PackedSequence, hx: Hidden | None = None
    ) -> tuple[Tensor | PackedSequence, Hidden]:
        """The output of the last layer at every step, and the final state of all layers."""
        return run(self, input, hx)

    def trace(self, input: Tensor | PackedSequence, hx: Hidden | None = None) -> LayerTrace:
        """As a call, with the gates and states of every step as well."""
        return trace(self, input, hx)

    def extra_repr(self) -> str:
        dropped = f", weight_dropout={self.weight_dropout}" if self.weight_dropout else ""
        backend = f", backend={self.backend}" if self.backend != "auto" else ""
        return super().extra_repr() + dropped + backend


class RNN(_DropIn, nn.RNN):  # type: ignore[misc]
    """`torch.nn.RNN`: the simple recurrent network (`ElmanCell`), stacked, in one or two directions.

        h_t = f(W_ih x_t + b_ih + W_hh h_t-1 + b_hh)

    with f = tanh or relu, or, which PyTorch has not, logistic or identity. The input of each layer but the first is
    h_t of the layer below. With two directions the second reads from the last step to the first with weights of its
    own, and the output is both side by side.

    >>> import torch
    >>> layer = RNN(3, 5, num_layers=2, nonlinearity="relu")
    >>> output, h = layer(torch.zeros(7, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([7, 2, 5]), torch.Size([2, 2, 5]))
    >>> RNN(3, 5, nonlinearity="logistic").mode
    'RNN_LOGISTIC'
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        asked = args[3] if len(args) > 3 else kwargs.get("nonlinearity")
        if asked not in OWN_NONLINEARITIES:
            super().__init__(*args, **kwargs)
            return
        if kwargs.get("backend") == "torch":
            raise ValueError(f"PyTorch's kernels do not know the nonlinearity {asked!r}: leave backend out")
        super().__init__(*args[:3], *args[4:], **{**kwargs, "nonlinearity": "tanh"})
        self.nonlinearity, self.mode = asked, f"RNN_{asked.upper()}"


class LSTM(_DropIn, nn.LSTM):  # type: ignore[misc]
    """`torch.nn.LSTM`: long short-term memory (`LSTMCell`), stacked, in one or two directions.

        i_t = σ(W_ii x_t + b_ii + W_hi h_t-1 + b_hi)
        f_t = σ(W_if x_t + b_if + W_hf h_t-1 + b_hf)
        g_t = tanh(W_ig x_t + b_ig + W_hg h_t-1 + b_hg)
        o_t = σ(W_io x_t + b_io + W_ho h_t-1 + b_ho)
        c_t = f_t * c_t-1 + i_t * g_t
        h_t = o_t * tanh(c_t)

    W_ii, W_if, W_ig, W_io are the blocks of `weight_ih_l0`, W_hi to W_ho those of `weight_hh_l0`, * is the product
    element by element. With `proj_size`, h_t = W_hr (o_t * tanh(c_t)). The input of each layer but the first is h_t
    of the layer below. With two directions the second reads from the last step to the first with weights of its own,
    and the output is both side by side.

    >>> import torch
    >>> layer = LSTM(3, 5, batch_first=True, bidirectional=True, weight_dropout=0.2)
    >>> output, (h, c) = layer(torch.zeros(2, 7, 3))
    >>> output.shape, h.shape
    (torch.Size([2, 7, 10]), torch.Size([2, 2, 5]))
    >>> _ = layer.load_state_dict(torch.nn.LSTM(3, 5, bidirectional=True).state_dict())
    """


class GRU(_DropIn, nn.GRU):  # type: ignore[misc]
    """`torch.nn.GRU`: the gated recurrent unit (`GRUCell`), stacked, in one or two directions.

        r_t = σ(W_ir x_t + b_ir + W_hr h_t-1 + b_hr)
        z_t = σ(W_iz x_t + b_iz + W_hz h_t-1 + b_hz)
        n_t = tanh(W_in x_t + b_in + r_t * (W_hn h_t-1 + b_hn))
        h_t = (1 - z_t) * n_t + z_t * h_t-1

    W_ir, W_iz, W_in are the blocks of `weight_ih_l0`, W_hr, W_hz, W_hn those of `weight_hh_l0`, * is the product
    element by element. The reset gate r stands after the product; before it, as published, it is in `ChoGRUCell`.
    The input of each layer but the first is h_t of the layer below. With two directions the second reads from the
    last step to the first with weights of its own, and the output is both side by side.

    >>> import torch
    >>> layer = GRU(3, 5, backend="cells")
    >>> output, h = layer(torch.zeros(7, 3))
    >>> output.shape, h.shape
    (torch.Size([7, 5]), torch.Size([1, 5]))
    """


Module = TypeVar("Module", bound=nn.Module)


def convert(module: Module, to: Literal["elman", "torch"] = "elman") -> Module:
    """Make every `torch.nn.RNN`, `LSTM` and `GRU` in a module, itself included, Elman's; to="torch" makes it back.

    It happens in place, and only the class of a layer changes: weights, state dict, hooks, parametrizations, what an
    optimizer holds and the options of `backend` and `weight_dropout` stay. A subclass of a layer is left as it is.

    >>> model = nn.Sequential(nn.Embedding(9, 3), nn.LSTM(3, 5))
    >>> type(convert(model)[1]) is LSTM
    True
    >>> type(convert(model, to="torch")[1]) is nn.LSTM
    True
    """
    pairs: list[tuple[type[nn.Module], type[nn.Module]]] = [(nn.RNN, RNN), (nn.LSTM, LSTM), (nn.GRU, GRU)]
    if to not in ("elman", "torch"):
        raise ValueError(f"to must be 'elman' or 'torch', got {to!r}")
    classes = dict(pairs) if to == "elman" else {ours: theirs for theirs, ours in pairs}
    found = [(name, layer) for name, layer in module.named_modules() if _own_class(layer) in classes]
    for name, layer in found:
        if to == "torch" and layer.training and getattr(layer, "weight_dropout", 0.0):
            which = f"the layer {name!r}" if name else "the layer"
            raise ValueError(f"{which} drops weights while training, which PyTorch's does not: call eval() first")
        if to == "torch" and getattr(layer, "nonlinearity", "tanh") in OWN_NONLINEARITIES:
            raise ValueError(f"PyTorch's layer has no nonlinearity {layer.nonlinearity!r}: keep Elman's")
    for _, layer in found:
        new = classes[_own_class(layer)]
        if parametrize.is_parametrized(layer):  # its class is its own, made by PyTorch, with the weights as properties
            own = {name: value for name, value in vars(type(layer)).items() if name not in ("__dict__", "__weakref__")}
            new = type(type(layer).__name__, (new,), own)
        layer.__class__ = new
    return module


def _own_class(layer: nn.Module) -> type:
    """The class of a layer, where it is parametrized the one that it had before."""
    return type(layer).__bases__[0] if parametrize.is_parametrized(layer) else type(layer)
