"""Stacked recurrent layers over whole texts, compiled: for classifiers and taggers, with no PyTorch call inside.

encoder = Encoder.of(network, network.body, pooling=network.pooling, output=network.output)
scores = encoder(vectors, lengths)
"""

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import nn

from elman import kernels
from elman.errors import UserError
from elman.nn.pooling import POOLINGS, AttentionPooling, Pooling
from elman.nn.recurrent import Recurrent
from elman.runtime.body import biases, cell_refusal, product, type_refusal
from elman.runtime.given import checked_threads, whole_numbers
from elman.runtime.quantise import Arrays, numbers
from elman.runtime.weights import Float, Weights, tensors_of

TABLE_BYTES = 16 * 2**20
"""How large the tables may be that stand in for the product of the first layer with every vector of an embedding."""


def encoder_refusal(body: Recurrent) -> str | None:
    """Why the encoder cannot run these layers, in one sentence; None if it can.

    >>> encoder_refusal(Recurrent("gru-cho", 3, 5)) or "it can"
    "the engine runs rnn (tanh, relu), lstm and gru, and this network's cell is gru-cho"
    """
    if (reason := cell_refusal(body)) is not None:
        return reason
    if body.state_sizes[0] != body.hidden_size:
        return "the encoder runs layers without a projection, and this network has one"
    if body.bidirectional and body.merge != "concat":
        return "the encoder has both directions side by side, and this network takes their mean"
    if len(body.initial):
        return "the encoder begins with a state of zeros, and this network has learned one"
    return type_refusal(body)


class Encoder:
    """Layers whose weights were packed once and never change; several threads of a program may use them at once.

    It reads vectors, or the ids of an `embedding`, and answers for every step; with a `pooling` for every text. With an
    `output` layer the answers are what that makes of them, else they are the states themselves.

    >>> import torch
    >>> network = nn.ModuleDict({"body": Recurrent("gru", 3, 5, bidirectional=True), "output": nn.Linear(10, 4)})
    >>> encoder = Encoder.of(network, network["body"], output=network["output"])
    >>> encoder(np.zeros((7, 3), np.float32), [5, 2]).shape
    (7, 4)
    """

    def __init__(self, native: Any, vectors: Float | None, threads: int | None) -> None:
        self._native, self._vectors, self._threads = native, vectors, threads

    @classmethod
    def of(
        cls,
        network: nn.Module,
        body: Recurrent,
        *,
        arrays: Arrays | None = None,
        embedding: nn.Embedding | None = None,
        pooling: Pooling | None = None,
        output: nn.Linear | None = None,
        threads: int | None = None,
    ) -> "Encoder":
        """An encoder of some parts of `network`, with its weights as they are now, or those of `arrays` in their place.

        `threads` is how many it uses at most (None: as many as PyTorch); a short text is quickest on one.
        """
        if (reason := encoder_refusal(body)) is not None:
            raise UserError(reason)
        threads = checked_threads(threads)
        given = arrays or {name: numbers(tensor) for name, tensor in tensors_of(network).items()}
        parts = _Parts(network, body, Weights(network, given))
        vectors = None if embedding is None else parts.weights.numbers(f"{parts.name(embedding)}.weight")
        folded = vectors is not None and parts.folds(vectors)
        description = {
            **parts.layers(vectors if folded else None),
            **parts.pooling(pooling),
            **parts.output(output),
        }
        try:
            native = kernels.native.make_encoder(description)
        except ValueError as error:
            raise UserError(f"the network cannot be packed: {error}") from None
        return cls(native, None if folded else vectors, threads)

    def __call__(self, inputs: NDArray[Any], lengths: Any) -> Float:
        """What it makes of texts that lie one after the other: vectors (N x I) or ids (N), `lengths` steps each (B).

        N x C, an answer for each step; with a pooling B x C, one for each text.
        """
        many = whole_numbers(lengths, "the lengths")
        try:
            if self._native.ids:
                ids = whole_numbers(inputs, "the ids")
                return cast(Float, self._native.read_ids(ids, many, self.threads))
            given = inputs if self._vectors is None else self._looked_up(self._vectors, inputs)
            return cast(Float, self._native.read_vectors(np.ascontiguousarray(given, np.float32), many, self.threads))
        except (ValueError, TypeError) as error:
            raise UserError(str(error)) from None

    def _looked_up(self, vectors: Float, inputs: NDArray[Any]) -> Float:
        ids = whole_numbers(inputs, "the ids")
        if ids.size and not (ids.min() >= 0 and ids.max() < len(vectors)):
            raise UserError(f"the ids must lie in 0 to {len(vectors) - 1}, and go from {ids.min()} to {ids.max()}")
        return vectors.take(ids, axis=0)

    @property
    def threads(self) -> int:
        """How many threads it uses at most."""
        return self._threads or kernels.threads()


class _Parts:
    """The parts of a network as the kernels take them."""

    def __init__(self, network: nn.Module, body: Recurrent, weights: Weights) -> None:
        self.body, self.weights = body, weights
        self.names: dict[int, str] = {id(module): name for name, module in network.named_modules()}
        self.first = cast(nn.RNNBase, body.layers[0])

    def name(self, module: nn.Module) -> str:
        """The name that the weights of a part begin with."""
        return self.names[id(module)]

    def folds(self, vectors: Float) -> bool:
        """Whether ids are looked up in a table of the first layer's products: it is small, and all that is seen."""
        body = self.body
        rows = cast(nn.Parameter, self.first.weight_ih_l0).shape[0] * body.directions
        added = body.connections == "residual" and body.input_size == body.output_size
        return not added and body.connections != "dense" and 4 * rows * len(vectors) <= TABLE_BYTES

    def layers(self, vectors: Float | None) -> dict[str, Any]:
        """Sizes, and both directions of each layer; the first with its table where `vectors` are given."""
        body = self.body
        suffixes = ("", "_reverse")[: body.directions]
        return {
            "cell": self.first.mode,
            "hidden": body.hidden_size,
            "directions": body.directions,
            "inputs": body.input_size if vectors is None else 0,
            "ids": 0 if vectors is None else len(vectors),
            "residual": body.connections == "residual",
            "dense": body.connections == "dense",
            "parts": [
                self._direction(self.name(layer), suffix, vectors if depth == 0 else None)
                for depth, layer in enumerate(body.layers)
                for suffix in suffixes
            ],
        }

    def _direction(self, prefix: str, suffix: str, vectors: Float | None) -> dict[str, Any]:
        bias, hidden_bias = biases(prefix, self.body, self.weights, suffix)
        name = f"{prefix}.weight_ih_l0{suffix}"
        table = None if vectors is None else product(vectors, self.weights.numbers(name)) + bias
        return {
            "input": self.weights.matrix(name) if vectors is None else None,
            "hidden": self.weights.matrix(f"{prefix}.weight_hh_l0{suffix}"),
            "bias": bias,
            "table": table,
            "hidden_bias": hidden_bias,
        }

    def pooling(self, pooling: Pooling | None) -> dict[str, Any]:
        """Its name, and the weights of attention."""
        kinds = {kind: name for name, kind in POOLINGS.items()}
        found: dict[str, Any] = {"query": None, "query_bias": None, "query_vector": None}
        if isinstance(pooling, AttentionPooling):
            name = self.name(pooling)
            found["query"] = self.weights.matrix(f"{name}.W.weight")
            found["query_bias"] = self.weights.numbers(f"{name}.W.bias")
            found["query_vector"] = self.weights.numbers(f"{name}.v.weight")[0]
        return {"pooling": "steps" if pooling is None else kinds[type(pooling)], **found}

    def output(self, output: nn.Linear | None) -> dict[str, Any]:
        """The matrix and the bias of a layer on top."""
        if output is None:
            return {"head": None, "head_bias": None}
        name = self.name(output)
        return {
            "head": self.weights.matrix(f"{name}.weight"),
            "head_bias": self.weights.bias(f"{name}.bias", output.out_features),
        }
