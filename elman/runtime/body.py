"""What a `Recurrent` is to the kernels: which of them they run, and its biases as they take them."""

from typing import cast

import numpy as np
import torch
from torch import nn

from elman import kernels
from elman.nn.recurrent import Recurrent
from elman.runtime.weights import Float, Weights


def cell_refusal(body: Recurrent) -> str | None:
    """Why the kernels do not run this network's cell, in one sentence; None if they do.

    >>> cell_refusal(Recurrent("mut1", 3, 5)) or "the kernels run it"
    "the engine runs rnn (tanh, relu), lstm and gru, and this network's cell is mut1"
    """
    if not kernels.available():
        return f"the compiled kernels are not installed ({kernels.missing})"
    if not all(isinstance(layer, nn.RNNBase) and layer.num_layers == 1 for layer in body.layers):
        cell = "logistic rnn" if body.cell in ("rnn", "elman") else body.cell
        return f"the engine runs rnn (tanh, relu), lstm and gru, and this network's cell is {cell}"
    return None


def type_refusal(network: nn.Module) -> str | None:
    """Why the kernels do not take these weights, in one sentence; None if they do.

    >>> type_refusal(nn.Linear(2, 3).double())
    'the engine runs float32 weights, and these are torch.float64'
    """
    types = {tensor.dtype for tensor in network.parameters()}
    if types != {torch.float32}:
        return f"the engine runs float32 weights, and these are {', '.join(sorted(map(str, types)))}"
    return None


def biases(prefix: str, body: Recurrent, weights: Weights, suffix: str = "") -> tuple[Float, Float | None]:
    """The sum of both biases; the GRU's candidate has one of its own inside the reset gate."""
    layer = cast(nn.RNNBase, body.layers[0])
    H, rows = body.hidden_size, cast(nn.Parameter, layer.weight_hh_l0).shape[0]
    inner, outer = (weights.bias(f"{prefix}.bias_{kind}_l0{suffix}", rows) for kind in ("hh", "ih"))
    if layer.mode != "GRU":
        return outer + inner, None
    return np.concatenate([outer[: 2 * H] + inner[: 2 * H], outer[2 * H :]]), np.ascontiguousarray(inner[2 * H :])


def product(vectors: Float, weight: Float) -> Float:
    """vectors (N x K) times the transposed weight (M x K)."""
    found = torch.from_numpy(vectors) @ torch.from_numpy(np.ascontiguousarray(weight)).t()
    return cast(Float, found.numpy())
