"""A layer of Elman's beside PyTorch's: the same weights, the same input, and everything that the two compute."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import elman.nn

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "tanh": ("RNN", {}),
    "relu": ("RNN", {"nonlinearity": "relu"}),
    "lstm": ("LSTM", {}),
    "lstm projected": ("LSTM", {"proj_size": 2}),
    "gru": ("GRU", {}),
}


def pair(
    kind: str, backend: str, dtype: torch.dtype, input_size: int, hidden_size: int, **options: Any
) -> tuple[nn.RNNBase, nn.RNNBase]:
    """The layer of PyTorch and Elman's, with the same weights."""
    name, own = KINDS[kind]
    theirs = getattr(nn, name)(input_size, hidden_size, dtype=dtype, **own, **options)
    ours = getattr(elman.nn, name)(input_size, hidden_size, dtype=dtype, backend=backend, **own, **options)
    ours.load_state_dict(theirs.state_dict(), strict=True)
    return theirs, ours


def values(output: Tensor | PackedSequence) -> Tensor:
    return output.data if isinstance(output, PackedSequence) else output


def state_for(layer: nn.RNNBase, dtype: torch.dtype, batch: int | None) -> list[Tensor]:
    """A random state, h and the LSTM's c; without a batch where that is None."""
    count = layer.num_layers * (2 if layer.bidirectional else 1)
    sizes = [layer.proj_size or layer.hidden_size] + [layer.hidden_size] * (layer.mode == "LSTM")
    return [torch.randn((count, size) if batch is None else (count, batch, size), dtype=dtype) for size in sizes]


def result(layer: nn.RNNBase, x: Tensor, state: list[Tensor], lengths: list[int] | None = None) -> dict[str, Tensor]:
    """Output, final states and the gradients of a loss that weighs each of their numbers differently."""
    x = x.clone().requires_grad_()
    state = [part.clone().requires_grad_() for part in state]
    input: Tensor | PackedSequence = x
    if lengths is not None:
        in_order = lengths == sorted(lengths, reverse=True)
        input = pack_padded_sequence(x, lengths, layer.batch_first, enforce_sorted=in_order)
    output, final = layer(input, tuple(state) if len(state) == 2 else state[0])
    results = {"output": values(output)}
    results |= {f"final {i}": part for i, part in enumerate(final if len(state) == 2 else [final])}
    layer.zero_grad()
    sum((v * torch.linspace(-1, 2, v.numel(), dtype=v.dtype).view(v.shape)).sum() for v in results.values()).backward()
    gradients = {"d input": x.grad, **{f"d state {i}": part.grad for i, part in enumerate(state)}}
    gradients |= {f"d {name}": p.grad for name, p in layer.named_parameters()}
    return {**results, **{name: g for name, g in gradients.items() if g is not None}}
