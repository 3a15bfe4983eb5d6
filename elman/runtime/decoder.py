"""The decoder of a translator, compiled: one step for some rows, with no PyTorch call inside.

decoder = Decoder.of(network)
logits, state = decoder.step(ids, decoder.begin(memory, hidden))
"""

import math
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elman import kernels
from elman.errors import UserError
from elman.nn import attention as scores
from elman.nn.decoder import Memory
from elman.nn.translation import TranslationNetwork
from elman.runtime.body import biases, cell_refusal, type_refusal
from elman.runtime.given import checked_threads, whole_numbers
from elman.runtime.quantise import Arrays, numbers
from elman.runtime.weights import Float, Packable, Weights, columns, tensors_of

Ints = NDArray[np.int32]
LOOKS = {"plain": "never", "bahdanau": "before", "luong": "after", "luong-feeding": "after"}


def decoder_refusal(network: TranslationNetwork) -> str | None:
    """Why the compiled decoder cannot run this network, in one sentence; None if it can."""
    if next(network.parameters()).device.type != "cpu":
        return "its network is not on the CPU"
    if (reason := cell_refusal(network.decoder.body)) is not None:
        return reason
    if type(network.decoder.attention) not in (*scores.ATTENTIONS.values(), type(None)):
        return f"the compiled decoder does not know the attention {type(network.decoder.attention).__name__}"
    return type_refusal(network)


class Sources(NamedTuple):
    """What an encoder left of B sources for the decoder to look at."""

    keys: Float
    """B x S x K."""
    states: Float
    """B x S x M."""
    lengths: Ints
    """B."""


class DecoderState(NamedTuple):
    """What R rows have written so far."""

    numbers: Float
    """R x N: for each layer h, then c; then the readout where that is fed."""
    owners: Ints
    """R: the source of each row."""
    sources: Sources
    weights: Float
    """R x S: where the last step looked."""

    def select(self, rows: NDArray[np.int64]) -> "DecoderState":
        """The state of some of the rows."""
        weights = self.weights.take(rows, axis=0) if len(self.weights) else self.weights
        return DecoderState(self.numbers.take(rows, axis=0), self.owners.take(rows), self.sources, weights)


class Decoder:
    """A decoder whose weights were packed once and never change; several threads of a program may use it at once.

    >>> from elman.nn.decoder import Decoder as Readable
    >>> from elman.nn.recurrent import Recurrent
    >>> from elman.nn.softmax import ChunkedSoftmax
    >>> from elman.nn.translation import Bridge
    >>> readable = Readable("luong", "gru", 3, 6, 6, 4, attention=scores.DotAttention(6, 6))
    >>> bridge = Bridge("copy", layers=1, directions=2, state_sizes=(3,), decoder_layers=1, decoder_sizes=(6,))
    >>> encoder = Recurrent("gru", 3, 3, bidirectional=True)
    >>> network = TranslationNetwork(
    ...     nn.Embedding(9, 3), nn.Embedding(9, 3), encoder, bridge, readable, ChunkedSoftmax(4, 9)
    ... )
    >>> decoder = Decoder.of(network)
    >>> with torch.no_grad():
    ...     state = decoder.begin(*network.encode(torch.tensor([[5, 7, 8]]), torch.tensor([3])))
    >>> logits, state = decoder.step(torch.tensor([2]), state)
    >>> logits.shape, state.weights.shape
    (torch.Size([1, 9]), (1, 3))
    """

    def __init__(self, native: Any, vocabulary: int, fed: int, threads: int | None) -> None:
        self._native, self._vocabulary, self._fed, self._threads = native, vocabulary, fed, threads

    @classmethod
    def of(cls, network: TranslationNetwork, *, arrays: Arrays | None = None, threads: int | None = None) -> "Decoder":
        """The decoder of `network` with its weights as they are now, or those of `arrays` in their place.

        `threads` is how many it uses at most (None: as many as PyTorch).
        """
        if (reason := decoder_refusal(network)) is not None:
            raise UserError(reason)
        threads = checked_threads(threads)
        given = arrays or {name: numbers(tensor) for name, tensor in tensors_of(network).items()}
        description = _Parts(network, Weights(network, given)).description()
        try:
            native = kernels.native.make_decoder(description)
        except ValueError as error:
            raise UserError(f"the decoder cannot be packed: {error}") from None
        fed = network.decoder.output_size if description["feeds_readout"] else 0
        return cls(native, network.softmax.vocab_size, fed, threads)

    def begin(self, memory: Memory, hidden: tuple[Tensor, ...]) -> DecoderState:
        """The state before the first step, a row for each source, from what `network.encode` gives."""
        layers = [part[depth] for depth in range(len(hidden[0])) for part in hidden]  # h and c of each, B x H
        fed = [hidden[0].new_zeros(len(memory), self._fed)] if self._fed else []
        rows = torch.cat(layers + fed, dim=1).detach().numpy()  # B x N
        lengths = (~memory.padding).sum(dim=1, dtype=torch.int32).numpy()  # B
        keys, states = (part.detach().contiguous().numpy() for part in (memory.keys, memory.states))
        sources = Sources(keys, states, lengths)
        return DecoderState(rows, np.arange(len(rows), dtype=np.int32), sources, np.empty((0, 0), np.float32))

    def room(self, rows: int) -> Tensor:
        """Memory for the logits of so many rows."""
        return torch.empty(rows, self._native.padded_vocabulary)

    def step(self, ids: Tensor, state: DecoderState, room: Tensor | None = None) -> tuple[Tensor, DecoderState]:
        """The logits of the next id of each row (R x V, in `room` where that is given) after one more (R)."""
        read = whole_numbers(ids.numpy(), "the ids")
        room = self.room(len(read)) if room is None else room
        after, weights = self._native.step(
            read, state.owners, state.numbers, *state.sources, room.numpy(), self.threads
        )
        return room[: len(ids), : self._vocabulary], DecoderState(after, state.owners, state.sources, weights)

    @property
    def threads(self) -> int:
        """How many threads it uses at most."""
        return self._threads or kernels.threads()


class _Parts:
    """The parts of a network as the kernels take them."""

    def __init__(self, network: TranslationNetwork, weights: Weights) -> None:
        self.network, self.weights = network, weights
        self.decoder, self.body = network.decoder, network.decoder.body
        self.token, self.hidden = network.target.embedding_dim, self.body.output_size
        self.before = self.decoder.kind == "bahdanau"
        self.memory = 0
        if self.decoder.attention is not None:
            self.memory = self.decoder.attention.memory_size

    def description(self) -> dict[str, Any]:
        """All sizes and arrays."""
        body = self.body
        seen = [self.memory] if self.memory else []
        feeds = self.decoder.kind == "luong-feeding"
        return {
            "cell": cast(nn.RNNBase, body.layers[0]).mode,
            "vocabulary": self.network.softmax.vocab_size,
            "hidden": body.hidden_size,
            "output": self.hidden,
            "labels": 0,
            "residual": body.connections == "residual",
            "dense": body.connections == "dense",
            "token_size": self.token,
            "label_size": 0,
            "label_vectors": None,
            "fed_size": self.decoder.output_size if feeds else self.memory if self.before else 0,
            "tokens": self.weights.matrix(self._target),
            "layers": [self._layer(f"decoder.body.layers.{depth}") for depth in range(body.num_layers)],
            "initial": None,
            "bridge": self._readout(),
            "bridge_bias": self.weights.numbers("decoder.to_readout.bias"),
            "bridge_parts": [*([self.token] if self.before else []), self.hidden, *seen],
            "softmax": self.weights.matrix("softmax.weight" if "softmax.weight" in self.weights else self._target),
            "softmax_bias": self.weights.bias("softmax.bias", self.network.softmax.vocab_size),
            "looks": LOOKS[self.decoder.kind],
            "feeds_readout": feeds,
            "reads_token": self.before,
            "memory_size": self.memory,
            **self._attention(),
        }

    @property
    def _target(self) -> str:
        """The embedding of the target, which may be the source's."""
        return "target.weight" if "target.weight" in self.weights else "source.weight"

    def _layer(self, prefix: str) -> dict[str, Any]:
        bias, hidden_bias = biases(prefix, self.body, self.weights)
        projection = f"{prefix}.weight_hr_l0"
        return {
            "input": self.weights.matrix(f"{prefix}.weight_ih_l0"),
            "hidden": self.weights.matrix(f"{prefix}.weight_hh_l0"),
            "projection": self.weights.matrix(projection) if projection in self.weights else None,
            "bias": bias,
            "table": None,
            "labels": None,
            "hidden_bias": hidden_bias,
        }

    def _readout(self) -> Packable:
        """The matrix over state, what was seen, and token; the kernels have the token first."""
        whole = self.weights.matrix("decoder.to_readout.weight")
        return _turned(whole, self.hidden + self.memory) if self.before else whole

    def _attention(self) -> dict[str, Any]:
        attention = self.decoder.attention
        found: dict[str, Any] = {"score": "none", "scale": 1.0, "sees_token": False, "key_size": 0}
        found |= {"query": None, "query_bias": None, "v": None}
        if attention is None:
            return found
        found["key_size"] = self.memory
        prefix = "decoder.attention"
        if isinstance(attention, scores.LocationAttention):
            bias = f"{prefix}.w.bias"
            return found | {
                "score": "location",
                "query": self.weights.matrix(f"{prefix}.w.weight"),
                "query_bias": self.weights.numbers(bias) if bias in self.weights else None,
                "sees_token": attention.sees_input and self.before,
            }
        if isinstance(attention, scores.AdditiveAttention):
            v = self.weights.numbers(f"{prefix}.v.weight")[0]
            query = self.weights.matrix(f"{prefix}.W.weight")
            return found | {"score": "additive", "query": query, "v": v, "key_size": len(v)}
        if isinstance(attention, scores.CosineAttention):
            log_beta = self.weights.numbers(f"{prefix}.log_beta").item()
            return found | {"score": "cosine", "scale": math.exp(log_beta)}
        if isinstance(attention, scores.ScaledDotAttention):
            found["scale"] = 1 / math.sqrt(self.memory)
        elif isinstance(attention, scores.GeneralAttention):
            found["key_size"] = self.hidden
        elif isinstance(attention, scores.ReducedRankAttention):
            found |= {"query": self.weights.matrix(f"{prefix}.U.weight"), "key_size": attention.U.out_features}
        return found | {"score": "dot"}


def _turned(matrix: Packable, first: int) -> Packable:
    """A matrix with the columns from `first` on before the others."""
    before, behind = columns(matrix, first), columns(matrix, 0, first)
    if isinstance(before, tuple) and isinstance(behind, tuple):
        return np.concatenate((before[0], behind[0]), axis=1), before[1]
    return np.concatenate((cast(Float, before), cast(Float, behind)), axis=1)
