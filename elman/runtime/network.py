"""From a `LanguageNetwork` to what the compiled engine takes, or the reason why it cannot run it."""

from typing import Any, cast

import numpy as np
from torch import nn

from elman import kernels
from elman.nn.language import LanguageNetwork, OneHot
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.runtime.body import biases, cell_refusal, product, type_refusal
from elman.runtime.weights import Float, Weights, columns

FOLDED_BYTES = 64 * 2**20
"""How large the tables may be that hold the first layer's part of each token."""


def refusal(network: LanguageNetwork, tower: int = 0) -> str | None:
    """Why the engine cannot run this network, in one sentence; None if it can.

    >>> from elman.nn.window import FixedWindow
    >>> window = FixedWindow(embedding_size=4, window=3, hidden_size=5)
    >>> refusal(LanguageNetwork(nn.Embedding(9, 4), [window], ChunkedSoftmax(5, 9)))
    'the engine runs recurrent networks, and this is a FixedWindow'
    """
    if not kernels.available():
        return f"the compiled kernels are not installed ({kernels.missing})"
    if not 0 <= tower < len(network.bodies):
        return f"the network has {len(network.bodies)} towers, numbered from 0, and tower {tower} is none of them"
    body = network.bodies[tower]
    if not isinstance(body, Recurrent):
        return f"the engine runs recurrent networks, and this is a {type(body).__name__}"
    if body.bidirectional:
        return "the engine reads from left to right, and this network reads both ways in one layer"
    if (reason := cell_refusal(body)) is not None:
        return reason
    if not isinstance(network.softmax, ChunkedSoftmax):
        return f"the engine runs the full softmax, and this network has {type(network.softmax).__name__}"
    if not isinstance(network.embedding, nn.Embedding | OneHot):
        return f"the engine does not know the embedding {type(network.embedding).__name__}"
    return type_refusal(network)


def description(network: LanguageNetwork, weights: Weights, tower: int = 0) -> dict[str, Any]:
    """The sizes and arrays of `network` as the kernels take them; its own weights are not looked at."""
    body = cast(Recurrent, network.bodies[tower])
    first = cast(nn.RNNBase, body.layers[0])
    vocabulary = cast(ChunkedSoftmax, network.softmax).vocab_size
    inputs = _Inputs(network, body, weights)
    bridged = "to_softmax.weight" in weights
    return {
        "cell": first.mode,
        "vocabulary": vocabulary,
        "hidden": body.hidden_size,
        "output": body.output_size,
        "labels": 0 if network.labels is None else network.labels.num_embeddings,
        "residual": body.connections == "residual",
        "dense": body.connections == "dense",
        **inputs.vectors(),
        "layers": [_layer(f"bodies.{tower}.layers.{i}", i, body, weights, inputs) for i in range(body.num_layers)],
        "bridge": weights.matrix("to_softmax.weight") if bridged else None,
        "bridge_bias": weights.bias("to_softmax.bias", network.to_softmax.out_features) if network.to_softmax else None,
        "softmax": weights.matrix("embedding.weight" if weights.tied else "softmax.weight"),
        "softmax_bias": weights.bias("softmax.bias", vocabulary),
        "initial": _initial(f"bodies.{tower}.initial", body, weights),
    }


class _Inputs:
    """What the first layer sees: a token's vector and a label's, or the tables that they are folded into."""

    def __init__(self, network: LanguageNetwork, body: Recurrent, weights: Weights) -> None:
        self.weights, self.body = weights, body
        self.one_hot = isinstance(network.embedding, OneHot)
        self.token_size = network.embedding.embedding_dim
        self.label_size = 0 if network.labels is None else network.labels.embedding_dim
        self.size = self.token_size + self.label_size
        readers = body.num_layers if body.connections == "dense" else 1
        rows = cast(nn.Parameter, body.layers[0].weight_ih_l0).shape[0]
        vocabulary = cast(ChunkedSoftmax, network.softmax).vocab_size
        # A one-hot vector's table is the matrix itself, turned.
        self.folded = self.one_hot or 4 * readers * rows * vocabulary <= FOLDED_BYTES
        self.added = body.connections == "residual" and self.size == body.output_size

    def vectors(self) -> dict[str, Any]:
        """Token and label as vectors, where a product or a residual connection needs them."""
        if self.folded and not self.added:
            return {"token_size": 0, "label_size": 0, "tokens": None, "label_vectors": None}
        tokens = np.eye(self.token_size, dtype=np.float32) if self.one_hot else self.weights.matrix("embedding.weight")
        labels = self.weights.numbers("labels.weight") if self.label_size else None
        return {
            "token_size": self.token_size,
            "label_size": self.label_size,
            "tokens": tokens,
            "label_vectors": labels,
        }

    def table(self, name: str, bias: Float) -> Float:
        """W e + b for every token: V x G*H."""
        weight = self.weights.numbers(name)[:, : self.token_size]  # G*H x E
        if self.one_hot:
            return np.ascontiguousarray(weight.T + bias)
        return product(self.weights.numbers("embedding.weight"), weight) + bias

    def labels(self, name: str) -> Float | None:
        """W e for every label: labels x G*H."""
        if not self.label_size:
            return None
        return product(
            self.weights.numbers("labels.weight"), self.weights.numbers(name)[:, self.token_size : self.size]
        )


def _layer(prefix: str, depth: int, body: Recurrent, weights: Weights, inputs: _Inputs) -> dict[str, Any]:
    name = f"{prefix}.weight_ih_l0"
    bias, hidden_bias = biases(prefix, body, weights)
    folded = inputs.folded and (depth == 0 or body.connections == "dense")
    seen = inputs.size if folded else 0  # columns that the tables stand for
    whole = weights.matrix(name)
    width = (whole[0] if isinstance(whole, tuple) else whole).shape[1]
    return {
        "input": columns(whole, seen) if width > seen else None,
        "hidden": weights.matrix(f"{prefix}.weight_hh_l0"),
        "projection": weights.matrix(f"{prefix}.weight_hr_l0") if f"{prefix}.weight_hr_l0" in weights else None,
        "bias": bias,
        "table": inputs.table(name, bias) if folded else None,
        "labels": inputs.labels(name) if folded else None,
        "hidden_bias": hidden_bias,
    }


def _initial(prefix: str, body: Recurrent, weights: Weights) -> Float | None:
    """The learned state before the first step: for each layer h, then c."""
    if not len(body.initial):
        return None
    parts = [weights.numbers(f"{prefix}.{i}")[:, 0] for i in range(len(body.initial))]  # each L x size
    return np.ascontiguousarray(np.concatenate(parts, axis=1))
