"""`RNN`, `LSTM` and `GRU`: in place of those of `torch.nn`, with the same arguments, shapes and state dict.

Two keyword arguments are new. `weight_dropout` drops recurrent weights while training, with a fresh mask for
each call. `backend` says how the recurrence is computed: "torch" (PyTorch's kernels), "cells" (the readable
equations of `elman.nn.cells`), "compiled" (Elman's kernels), or "auto": the kernels on the CPU, else PyTorch's.
`trace` is a call that shows the gates too.
"""

from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from elman.nn.backends import Hidden, Trace, check_backend, run, trace
from elman.nn.dropout import check_probability


class _DropIn(nn.RNNBase):
    """What the three layers add to PyTorch's."""

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
        return run(self, input, hx, backend=self.backend, weight_dropout=self.weight_dropout)

    def trace(self, input: Tensor | PackedSequence, hx: Hidden | None = None) -> Trace:
        """As a call, with the gates and states of every step as well."""
        return trace(self, input, hx, backend=self.backend, weight_dropout=self.weight_dropout)

    def extra_repr(self) -> str:
        dropped = f", weight_dropout={self.weight_dropout}" if self.weight_dropout else ""
        backend = f", backend={self.backend}" if self.backend != "auto" else ""
        return super().extra_repr() + dropped + backend


class RNN(_DropIn, nn.RNN):  # type: ignore[misc]
    """`torch.nn.RNN`: the simple recurrent network (`ElmanCell`), stacked, in one or two directions.

    >>> import torch
    >>> layer = RNN(3, 5, num_layers=2, nonlinearity="relu")
    >>> output, h = layer(torch.zeros(7, 2, 3))
    >>> output.shape, h.shape
    (torch.Size([7, 2, 5]), torch.Size([2, 2, 5]))
    """


class LSTM(_DropIn, nn.LSTM):  # type: ignore[misc]
    """`torch.nn.LSTM`: long short-term memory (`LSTMCell`), stacked, in one or two directions.

    >>> import torch
    >>> layer = LSTM(3, 5, batch_first=True, bidirectional=True, weight_dropout=0.2)
    >>> output, (h, c) = layer(torch.zeros(2, 7, 3))
    >>> output.shape, h.shape
    (torch.Size([2, 7, 10]), torch.Size([2, 2, 5]))
    >>> _ = layer.load_state_dict(torch.nn.LSTM(3, 5, bidirectional=True).state_dict())
    """


class GRU(_DropIn, nn.GRU):  # type: ignore[misc]
    """`torch.nn.GRU`: the gated recurrent unit (`GRUCell`), stacked, in one or two directions.

    >>> import torch
    >>> layer = GRU(3, 5, backend="cells")
    >>> output, h = layer(torch.zeros(7, 3))
    >>> output.shape, h.shape
    (torch.Size([7, 5]), torch.Size([1, 5]))
    """
