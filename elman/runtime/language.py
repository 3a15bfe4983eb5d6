"""The network of a language model, described in plain words, and its weights as the compiled engine takes them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from elman.errors import UserError
from elman.runtime.layers import Layers
from elman.runtime.quantise import Arrays
from elman.runtime.weights import Float, Shapes, Weights, arrays_of, columns, type_refusal

if TYPE_CHECKING:
    from elman.nn.language import LanguageNetwork

FOLDED_BYTES = 64 * 2**20
"""How large the tables may be that hold the first layer's part of each token."""


@dataclass(frozen=True)
class LanguageParts:
    """An embedding, layers that read from left to right, and a softmax, as `elman.nn.language` has them.

    `embedding` is the size of a token's vector, 0 for one-hot vectors; `labels` is how many labels there are, with
    vectors of `label_size`. `to_softmax` is the size of what the softmax sees where that is not the layers' output. The
    softmax is "full", or "sampled", which is full after training; `tied` is one whose matrix is the embedding's.

    >>> parts = LanguageParts(Layers("bodies.0", "gru", 8, 16), vocabulary=50, embedding=8)
    >>> parts.refusal(), parts.shapes()["softmax.weight"]
    (None, (50, 16))
    """

    layers: Layers
    vocabulary: int
    embedding: int
    labels: int = 0
    label_size: int = 0
    to_softmax: int = 0
    tied: bool = False
    softmax: str = "full"
    softmax_bias: bool = True

    @classmethod
    def of(cls, network: "LanguageNetwork", tower: int = 0) -> "LanguageParts":
        """The description of a network of PyTorch's; UserError where there is none."""
        from torch import nn

        from elman.nn.embedding import OneHot
        from elman.nn.recurrent import Recurrent
        from elman.nn.softmax import ChunkedSoftmax, SampledSoftmax

        if not 0 <= tower < len(network.bodies):
            raise UserError(
                f"the network has {len(network.bodies)} towers, numbered from 0, and tower {tower} is none of them"
            )
        body, softmax, embedding = network.bodies[tower], network.softmax, network.embedding
        if not isinstance(body, Recurrent):
            raise UserError(f"the engine runs recurrent networks, and this is a {type(body).__name__}")
        if not isinstance(embedding, nn.Embedding | OneHot):
            raise UserError(f"the engine does not know the embedding {type(embedding).__name__}")
        full = isinstance(softmax, ChunkedSoftmax)
        return cls(
            Layers.of(body, f"bodies.{tower}"),
            embedding.embedding_dim if isinstance(embedding, OneHot) else embedding.num_embeddings,
            0 if isinstance(embedding, OneHot) else embedding.embedding_dim,
            0 if network.labels is None else network.labels.num_embeddings,
            0 if network.labels is None else network.labels.embedding_dim,
            0 if network.to_softmax is None else network.to_softmax.out_features,
            full and softmax.weight is getattr(embedding, "weight", None),
            {ChunkedSoftmax: "full", SampledSoftmax: "sampled"}.get(type(softmax), type(softmax).__name__),
            full and softmax.bias is not None,
        )

    def refusal(self) -> str | None:
        """Why the engine cannot run this network, in one sentence; None if it can."""
        if (reason := self.layers.refusal()) is not None:
            return reason
        if self.layers.bidirectional:
            return "the engine reads from left to right, and this network reads both ways in one layer"
        if self.softmax not in ("full", "sampled"):
            return f"the engine runs the full softmax, and this network has {self.softmax}"
        return None

    def shapes(self) -> Shapes:
        """The shape of every weight by its name."""
        seen = self.to_softmax or self.layers.output_size
        found = {"embedding.weight": (self.vocabulary, self.embedding)} if self.embedding else Shapes()
        found |= self.layers.shapes()
        found |= {} if self.tied else {"softmax.weight": (self.vocabulary, seen)}
        found |= {"softmax.bias": (self.vocabulary,)} if self.softmax_bias else {}
        found |= {"softmax.inclusion": (self.vocabulary,)} if self.softmax == "sampled" else {}
        found |= {"labels.weight": (self.labels, self.label_size)} if self.labels else {}
        if self.to_softmax:
            found |= {"to_softmax.weight": (seen, self.layers.output_size), "to_softmax.bias": (seen,)}
        return found

    def description(self, weights: Weights) -> dict[str, Any]:
        """The sizes and arrays as the kernels take them."""
        layers, inputs = self.layers, _Inputs(self, weights)
        own = layers.description()
        initial = layers.initial(weights)
        return {
            "cell": own["cell"],
            "vocabulary": self.vocabulary,
            "hidden": own["hidden"],
            "output": layers.output_size,
            "labels": self.labels,
            "residual": own["residual"],
            "dense": own["dense"],
            **inputs.vectors(),
            "layers": [inputs.layer(depth) for depth in range(layers.num_layers)],
            "bridge": weights.matrix("to_softmax.weight") if self.to_softmax else None,
            "bridge_bias": weights.bias("to_softmax.bias", self.to_softmax) if self.to_softmax else None,
            "softmax": weights.matrix("embedding.weight" if self.tied else "softmax.weight"),
            "softmax_bias": weights.bias("softmax.bias", self.vocabulary),
            "initial": np.ascontiguousarray(np.concatenate(initial, axis=1)) if initial else None,
        }


def refusal(network: "LanguageNetwork", tower: int = 0, arrays: Arrays | None = None) -> str | None:
    """Why the engine cannot run a network of PyTorch's, in one sentence; None if it can.

    >>> from torch import nn
    >>> from elman.nn.language import LanguageNetwork
    >>> from elman.nn.softmax import ChunkedSoftmax
    >>> from elman.nn.window import FixedWindow
    >>> window = FixedWindow(embedding_size=4, window=3, hidden_size=5)
    >>> refusal(LanguageNetwork(nn.Embedding(9, 4), [window], ChunkedSoftmax(5, 9)))
    'the engine runs recurrent networks, and this is a FixedWindow'
    """
    try:
        reason = LanguageParts.of(network, tower).refusal()
    except UserError as error:
        return str(error)
    return reason or type_refusal(arrays_of(network) if arrays is None else arrays)


class _Inputs:
    """What the layers see: a token's vector and a label's, or the tables that they are folded into."""

    def __init__(self, parts: LanguageParts, weights: Weights) -> None:
        self.weights, self.parts, self.layers = weights, parts, parts.layers
        self.one_hot = not parts.embedding
        self.token_size = parts.embedding or parts.vocabulary
        self.size = self.token_size + parts.label_size
        readers = self.layers.num_layers if self.layers.connections == "dense" else 1
        # A one-hot vector's table is the matrix itself, transposed.
        self.folded = self.one_hot or 4 * readers * self.layers.gates * parts.vocabulary <= FOLDED_BYTES
        self.added = self.layers.connections == "residual" and self.size == self.layers.output_size

    def vectors(self) -> dict[str, Any]:
        """Token and label as vectors, where a product or a residual connection needs them."""
        if self.folded and not self.added:
            return {"token_size": 0, "label_size": 0, "tokens": None, "label_vectors": None}
        return {
            "token_size": self.token_size,
            "label_size": self.parts.label_size,
            "tokens": np.eye(self.token_size, dtype=np.float32)
            if self.one_hot
            else self.weights.matrix("embedding.weight"),
            "label_vectors": self.weights.numbers("labels.weight") if self.parts.labels else None,
        }

    def layer(self, depth: int) -> dict[str, Any]:
        """A layer as the kernels take it, its part of the tokens and labels folded into tables where that is so."""
        packed = self.layers.packed(self.weights, depth)
        if not (self.folded and (depth == 0 or self.layers.connections == "dense")):
            return packed
        name = self.layers.names(depth)["weight_ih"]
        weight, whole = self.weights.numbers(name), packed["input"]  # G*H x I
        packed["input"] = columns(whole, self.size) if weight.shape[1] > self.size else None
        packed["table"] = self._table(weight[:, : self.token_size], packed["bias"])
        if self.parts.labels:
            vectors = self.weights.numbers("labels.weight")
            packed["labels"] = vectors @ weight[:, self.token_size : self.size].T  # labels x G*H
        return packed

    def _table(self, weight: Float, bias: Float) -> Float:
        """W e + b for every token: V x G*H."""
        if self.one_hot:
            return np.ascontiguousarray(weight.T + bias)
        return self.weights.numbers("embedding.weight") @ weight.T + bias
