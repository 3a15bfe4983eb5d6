"""The network of a translator, described in plain words, and its decoder's weights as the kernels take them."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from elman.errors import UserError
from elman.runtime.layers import Layers
from elman.runtime.weights import Float, Packable, Shapes, Weights, columns

if TYPE_CHECKING:
    from elman.nn.translation import TranslationNetwork

ATTENDS = {"plain": "never", "bahdanau": "before", "luong": "after", "luong-feeding": "after"}
"""When each kind of decoder attends: before its step, or after."""
SCORES = {
    "dot": "dot",
    "scaled-dot": "dot",
    "general": "dot",
    "reduced-rank": "dot",
    "additive": "additive",
    "cosine": "cosine",
    "plain-cosine": "cosine",
    "location": "location",
    "fixed-length": "location",
}
"""What the kernels call each attention: `keys` makes the products that depend on the source alone."""
NAME = "decoder.attention"


@dataclass(frozen=True)
class DecoderParts:
    """A decoder that attends to a memory, with its embedding and its softmax, as `elman.nn.writing` has them.

    `kind` is plain, bahdanau, luong or luong-feeding; `attention` a name of `elman.nn.attention.ATTENTIONS`, None for a
    plain one, with `attention_size` (the size of additive attention, the rank of reduced-rank, the places of
    location-based and fixed-length attention). `memory_size` is that of what is attended to at each place of a source,
    0 without attention. `target` is the name of the embedding, which the softmax has too where it is `tied`; an
    `embedding` of 0 is one-hot.

    >>> parts = DecoderParts(Layers("decoder.body", "gru", 6, 8), "luong", "dot", 8, 40, 6, 8)
    >>> parts.refusal(), parts.shapes()["decoder.to_readout.weight"]
    (None, (8, 16))
    """

    decoder: Layers
    kind: str
    attention: str | None
    memory_size: int
    target_vocabulary: int
    embedding: int
    readout: int
    attention_size: int = 0
    target: str = "target.weight"
    tied: bool = False
    softmax_bias: bool = True

    @property
    def attends_before(self) -> bool:
        """Whether a step attends first, with the state before it, and then reads the context beside its token."""
        return self.kind == "bahdanau"

    @property
    def sees_token(self) -> bool:
        """Whether the query of the attention is the token beside the state."""
        return self.attention == "fixed-length" and self.attends_before

    @property
    def key_size(self) -> int:
        """The size of what the attention makes of each place once."""
        if self.attention in ("additive", "reduced-rank"):
            return self.attention_size
        return self.decoder.output_size if self.attention == "general" else self.memory_size

    @property
    def token_size(self) -> int:
        """The size of a target token's vector."""
        return self.embedding or self.target_vocabulary

    def refusal(self) -> str | None:
        """Why this decoder is not run without PyTorch, in one sentence; None if it is."""
        if (reason := self.decoder.refusal()) is not None:
            return reason
        if self.kind not in ATTENDS:
            return f"the compiled decoder runs {', '.join(ATTENDS)}, and this network's decoder is {self.kind}"
        if (self.attention is None) != (self.kind == "plain"):
            return f"the compiled decoder does not know the decoder {self.kind} with the attention {self.attention}"
        if self.attention is not None and self.attention not in SCORES:
            return f"the compiled decoder does not know the attention {self.attention}"
        return None

    # Shapes

    def shapes(self) -> Shapes:
        """The shape of every weight by its name."""
        V, E, R = self.target_vocabulary, self.token_size, self.readout
        seen = self.decoder.output_size + self.memory_size + (E if self.attends_before else 0)
        found: Shapes = {self.target: (V, E)} if self.embedding else {}
        found |= {**self._attention_shapes(), **self.decoder.shapes()}
        found |= {"decoder.to_readout.weight": (R, seen), "decoder.to_readout.bias": (R,)}
        found |= {} if self.tied else {"softmax.weight": (V, R)}
        return found | ({"softmax.bias": (V,)} if self.softmax_bias else {})

    def _attention_shapes(self) -> Shapes:
        Q, M, K = self.decoder.output_size + self.sees_token * self.token_size, self.memory_size, self.key_size
        own: dict[str, Shapes] = {
            "general": {"W.weight": (Q, M)},
            "reduced-rank": {"U.weight": (K, Q), "V.weight": (K, M)},
            "additive": {"W.weight": (K, Q), "U.weight": (K, M), "U.bias": (K,), "v.weight": (1, K)},
            "cosine": {"log_beta": ()},
            "location": {"w.weight": (self.attention_size, Q)},
            "fixed-length": {"w.weight": (self.attention_size, Q), "w.bias": (self.attention_size,)},
        }
        return {f"{NAME}.{name}": shape for name, shape in own.get(self.attention or "", {}).items()}

    # What the kernels take

    def description(self, weights: Weights) -> dict[str, Any]:
        """All sizes and arrays of the decoder."""
        layers, memory, before = self.decoder, self.memory_size, self.attends_before
        feeds = self.kind == "luong-feeding"
        return {
            **layers.description(),
            "vocabulary": self.target_vocabulary,
            "output": layers.output_size,
            "labels": 0,
            "token_size": self.token_size,
            "label_size": 0,
            "label_vectors": None,
            "fed_size": self.readout if feeds else memory if before else 0,
            "tokens": weights.matrix(self.target) if self.embedding else np.eye(self.token_size, dtype=np.float32),
            "layers": [layers.packed(weights, depth) for depth in range(layers.num_layers)],
            "initial": None,
            "bridge": self._readout(weights),
            "bridge_bias": weights.numbers("decoder.to_readout.bias"),
            "bridge_parts": [*([self.token_size] if before else []), layers.output_size, *([memory] if memory else [])],
            "softmax": weights.matrix(self.target if self.tied else "softmax.weight"),
            "softmax_bias": weights.bias("softmax.bias", self.target_vocabulary),
            "attends": ATTENDS[self.kind],
            "feeds_readout": feeds,
            "reads_token": before,
            "memory_size": memory,
            **self._attention(weights),
        }

    def _readout(self, weights: Weights) -> Packable:
        """The matrix over state, what was attended to, and token; the kernels have the token first."""
        whole = weights.matrix("decoder.to_readout.weight")
        if not self.attends_before:
            return whole
        first = self.decoder.output_size + self.memory_size
        before, behind = columns(whole, first), columns(whole, 0, first)
        if isinstance(before, tuple) and isinstance(behind, tuple):
            return np.concatenate((before[0], behind[0]), axis=1), before[1]
        return np.concatenate((cast(Float, before), cast(Float, behind)), axis=1)

    def _attention(self, weights: Weights) -> dict[str, Any]:
        query = {"location": "w", "fixed-length": "w", "additive": "W", "reduced-rank": "U"}.get(self.attention or "")
        scale = 1.0
        if self.attention == "scaled-dot":
            scale = 1 / math.sqrt(self.memory_size)
        elif self.attention == "cosine":
            scale = math.exp(weights.numbers(f"{NAME}.log_beta").item())
        return {
            "score": SCORES.get(self.attention or "", "none"),
            "scale": scale,
            "sees_token": self.sees_token,
            "key_size": self.key_size,
            "query": weights.matrix(f"{NAME}.{query}.weight") if query else None,
            "query_bias": weights.numbers(f"{NAME}.w.bias") if self.attention == "fixed-length" else None,
            "v": weights.numbers(f"{NAME}.v.weight")[0] if self.attention == "additive" else None,
        }


@dataclass(frozen=True)
class TranslationParts:
    """Embeddings, an encoder, a bridge, a decoder and a softmax, as `elman.nn.translation` has them.

    `kind` is that of the decoder: plain, bahdanau, luong, luong-feeding; `attention` a name of
    `elman.nn.attention.ATTENTIONS`, None for a plain one, with `attention_size` (the size of additive attention, the
    rank of reduced-rank, the places of location-based and fixed-length attention); `bridge` copy, linear or zero. With
    `shared` both sides have one embedding; with `tied` the softmax has the target's. An `embedding` of 0 is one-hot.

    >>> encoder = Layers("encoder", "gru", 6, 4, bidirectional=True)
    >>> parts = TranslationParts(encoder, Layers("decoder.body", "gru", 6, 8), "luong", "dot", "copy", 30, 40, 6, 8)
    >>> parts.refusal(), parts.shapes()["decoder.to_readout.weight"]
    (None, (8, 16))
    """

    encoder: Layers
    decoder: Layers
    kind: str
    attention: str | None
    bridge: str
    source_vocabulary: int
    target_vocabulary: int
    embedding: int
    readout: int
    attention_size: int = 0
    shared: bool = False
    tied: bool = False
    softmax_bias: bool = True

    @classmethod
    def of(cls, network: "TranslationNetwork") -> "TranslationParts":
        """The description of a network of PyTorch's; UserError where there is none."""
        from elman.nn.attention import ATTENTIONS
        from elman.nn.embedding import OneHot

        decoder, attention = network.decoder, cast(Any, network.decoder.attention)
        names = {kind: name for name, kind in ATTENTIONS.items()}
        if attention is not None and type(attention) not in names:
            raise UserError(f"the compiled decoder does not know the attention {type(attention).__name__}")
        name = None if attention is None else names[type(attention)]
        sized = {"additive": "W", "reduced-rank": "U", "location": "w", "fixed-length": "w"}.get(name or "")
        return cls(
            Layers.of(network.encoder, "encoder"),
            Layers.of(decoder.body, "decoder.body"),
            decoder.kind,
            name,
            network.bridge.kind,
            network.source.num_embeddings,
            network.target.num_embeddings,
            0 if isinstance(network.target, OneHot) else network.target.embedding_dim,
            decoder.output_size,
            getattr(attention, sized).out_features if sized else 0,
            network.source is network.target,
            network.softmax.weight is getattr(network.target, "weight", None),
            network.softmax.bias is not None,
        )

    @property
    def writer(self) -> DecoderParts:
        """What of it writes."""
        return DecoderParts(
            self.decoder,
            self.kind,
            self.attention,
            self.encoder.output_size if self.attention is not None else 0,
            self.target_vocabulary,
            self.embedding,
            self.readout,
            self.attention_size,
            "source.weight" if self.shared else "target.weight",
            self.tied,
            self.softmax_bias,
        )

    def refusal(self) -> str | None:
        """Why this network is not run without PyTorch, in one sentence; None if it is."""
        return self.encoder.refusal() or self.writer.refusal()

    def shapes(self) -> Shapes:
        """The shape of every weight by its name."""
        writer = self.writer
        found: Shapes = {"source.weight": (self.source_vocabulary, writer.token_size)} if self.embedding else {}
        return found | {**self.encoder.shapes(), **self._bridge_shapes(), **writer.shapes()}

    def _bridge_shapes(self) -> Shapes:
        found = Shapes()
        for depth in range(self.decoder.num_layers if self.bridge == "linear" else 0):
            for part, (size, goal) in enumerate(zip(self.encoder.state_sizes, self.decoder.state_sizes, strict=True)):
                name = f"bridge.maps.{depth}.{part}"
                both = size * (1 if self.encoder.merge == "mean" else self.encoder.directions)
                found |= {f"{name}.weight": (goal, both), f"{name}.bias": (goal,)}
        return found
