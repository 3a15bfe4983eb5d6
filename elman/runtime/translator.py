"""A translator, compiled: encoder, bridge and decoder, with no PyTorch call inside; and a decoder alone.

translator = CompiledTranslator(parts, arrays)
hypotheses = elman.decode.beam_search(translator.steps(Ragged.of(sources)), len(sources), ...)
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from elman import kernels
from elman.errors import UserError
from elman.ragged import Ints, Ragged
from elman.runtime.arguments import Threaded, whole_numbers
from elman.runtime.encoder import Encoder
from elman.runtime.quantise import Arrays
from elman.runtime.stacked import product
from elman.runtime.translation import NAME, DecoderParts, TranslationParts
from elman.runtime.weights import Float, Weights, arrays_of, type_refusal

if TYPE_CHECKING:
    from elman.nn.translation import TranslationNetwork

Int32 = NDArray[np.int32]
MOST_STEPS = 2**30
"""Steps that the decoder counts."""


def translator_refusal(network: "TranslationNetwork") -> str | None:
    """Why a network of PyTorch's is not run without it, in one sentence; None if it is."""
    if next(network.parameters()).device.type != "cpu":
        return "its network is not on the CPU"
    try:
        reason = TranslationParts.of(network).refusal()
    except UserError as error:
        return str(error)
    return reason or type_refusal(arrays_of(network))


class Sources(NamedTuple):
    """What an encoder gives of B sources for the decoder to attend to."""

    keys: Float  # B x S x K
    states: Float  # B x S x M
    lengths: Int32  # B

    def first(self, rows: int) -> "Sources":
        """Those of the first sources."""
        return Sources(self.keys[:rows], self.states[:rows], self.lengths[:rows])


class TranslatorState(NamedTuple):
    """What R rows have written so far."""

    numbers: Float  # R x N: for each layer h, then c; then the readout where that is fed
    owners: Int32  # R: the source of each row
    sources: Sources
    weights: Float  # R x S: the attention of the last step

    def select(self, rows: Ints) -> "TranslatorState":
        """The state of some of the rows."""
        weights = self.weights.take(rows, axis=0) if len(self.weights) else self.weights
        return TranslatorState(self.numbers.take(rows, axis=0), self.owners.take(rows), self.sources, weights)


class CompiledDecoder(Threaded):
    """What writes, its weights packed once: from a memory and a first state that were made elsewhere."""

    def __init__(self, writer: DecoderParts, weights: Weights, *, threads: int | None = None) -> None:
        if (reason := writer.refusal()) is not None:
            raise UserError(reason)
        super().__init__(threads)
        self.writer = writer
        try:
            self._native: Any = kernels.native.make_decoder(writer.description(weights))
        except ValueError as error:
            raise UserError(f"the decoder cannot be packed: {error}") from None

    def begin(self, sources: Sources, hidden: tuple[Float, ...]) -> TranslatorState:
        """The state before the first step, from the decoder's hidden state (each part L x B x H)."""
        layers = [part[depth] for depth in range(len(hidden[0])) for part in hidden]  # h and c of each, B x H
        rows = len(sources.lengths)
        fed = [np.zeros((rows, self.writer.readout), np.float32)] if self.writer.kind == "luong-feeding" else []
        numbers = np.concatenate(layers + fed, axis=1)  # B x N
        return TranslatorState(numbers, np.arange(rows, dtype=np.int32), sources, np.empty((0, 0), np.float32))

    def room(self, rows: int) -> Float:
        """Memory for the logits of so many rows."""
        return np.empty((rows, self._native.padded_vocabulary), np.float32)

    def step(self, ids: Ints, state: TranslatorState, room: Float | None = None) -> tuple[Float, TranslatorState]:
        """The logits of the next id of each row (R x V, in `room` where that is given) after one more (R)."""
        read = whole_numbers(ids, "the ids")
        room = self.room(len(read)) if room is None else room
        after, weights = self._native.step(read, state.owners, state.numbers, *state.sources, room, self.threads)
        logits = room[: len(read), : self.writer.target_vocabulary]
        return logits, TranslatorState(after, state.owners, state.sources, weights)

    def greedy(
        self, state: TranslatorState, start: int, stop: int, limits: Ints, shortest: int, never: Ints
    ) -> tuple[Ragged, NDArray[np.float64], NDArray[np.bool_]]:
        """The likeliest id, and again, from the first state of each source; see `CompiledSteps.greedy`."""
        numbers, _, sources, _ = state
        most = np.minimum(limits, MOST_STEPS)
        written = self._native.greedy(numbers, *sources, start, stop, shortest, never, most, self.threads)
        ids, counts, log_probs, finished = written
        return Ragged(ids, counts), log_probs, finished.astype(bool)

    def steps_from(self, sources: Sources, hidden: tuple[Float, ...]) -> "CompiledSteps":
        """What `elman.decode` searches, row i what follows from the i-th source and first state (each L x B x H)."""
        return CompiledSteps(
            self, lambda rows: self.begin(sources.first(rows), tuple(part[:, :rows] for part in hidden))
        )


class CompiledTranslator(CompiledDecoder):
    """A network whose weights were packed once and never change; several threads of a program may use it at once.

    `threads` is how many it uses at most (None: as many as `kernels.threads()` says).

    >>> from elman.runtime.layers import Layers
    >>> encoder = Layers("encoder", "gru", 3, 3, bidirectional=True)
    >>> parts = TranslationParts(encoder, Layers("decoder.body", "gru", 3, 6), "luong", "dot", "copy", 9, 9, 3, 4)
    >>> arrays = {name: np.ones(shape, np.float32) for name, shape in parts.shapes().items()}
    >>> translator = CompiledTranslator(parts, arrays)
    >>> logits, state = translator.step(np.array([2]), translator.read(Ragged.of([[5, 7, 8]])))
    >>> logits.shape, state.weights.shape
    ((1, 9), (1, 3))
    """

    def __init__(self, parts: TranslationParts, arrays: Arrays, *, threads: int | None = None) -> None:
        if (reason := parts.refusal()) is not None:
            raise UserError(reason)
        weights = Weights(arrays, parts.shapes())
        super().__init__(parts.writer, weights, threads=threads)
        self.parts = parts
        embedding = "source" if parts.embedding else None
        self._encoder = Encoder(parts.encoder, arrays, embedding=embedding, one_hot=embedding is None, threads=threads)
        self._bridge, self._keys = _Bridge(parts, weights), _keys(parts, weights)

    @classmethod
    def of(
        cls, network: "TranslationNetwork", *, arrays: Arrays | None = None, threads: int | None = None
    ) -> "CompiledTranslator":
        """A network of PyTorch's with its weights as they are now, or those of `arrays` in their place."""
        if (reason := translator_refusal(network)) is not None:
            raise UserError(reason)
        return cls(TranslationParts.of(network), arrays_of(network) if arrays is None else arrays, threads=threads)

    # Reading

    def read(self, sources: Ragged) -> TranslatorState:
        """The state before the first step of each source (ids, at least one source and one id in each)."""
        outputs, final = self._encoder.with_final(sources.data, sources.lengths)  # N x M
        return self.remember(sources.with_data(outputs), final)

    def remember(self, outputs: Ragged, final: tuple[Float, ...]) -> TranslatorState:
        """The state before the first step, of what an encoder would have given: outputs (M a step), final states.

        The final states are each L*D x B x H.
        """
        states = outputs.padded()  # B x S x M
        keys = states if self._keys is None else outputs.with_data(self._keys(outputs.data)).padded()  # B x S x K
        return self.begin(Sources(keys, states, outputs.lengths.astype(np.int32)), self._bridge(final))

    def steps(self, sources: Ragged) -> "CompiledSteps":
        """What `elman.decode` searches to translate these sources, row i the i-th of them."""
        return CompiledSteps(self, lambda rows: self.read(_first(sources, rows)))

    def memory_steps(self, outputs: Ragged, final: tuple[Float, ...]) -> "CompiledSteps":
        """Its steps from what an encoder would have given of some sources, as `remember` takes it."""
        return CompiledSteps(
            self, lambda rows: self.remember(_first(outputs, rows), tuple(part[:, :rows] for part in final))
        )


def _first(sources: Ragged, rows: int) -> Ragged:
    return sources if rows == len(sources) else sources.take(np.arange(rows))


class StepsState(NamedTuple):
    """The state of a decoder, and where the logits of its rows stand until the next step."""

    decoder: TranslatorState
    room: Float


class CompiledSteps:
    """What follows from some sources as a step model of `elman.decode`; `begin` gives the state of the first rows."""

    def __init__(self, decoder: CompiledDecoder, begin: Callable[[int], TranslatorState]) -> None:
        self.decoder, self.begin = decoder, begin

    def start(self, batch_size: int) -> StepsState:
        """The sources read, nothing written yet."""
        return StepsState(self.begin(batch_size), self.decoder.room(batch_size))

    def step(self, ids: Ints, state: StepsState) -> tuple[Float, StepsState]:
        """The logits of the next id after one more of each row (R x V), whose memory the next step uses again."""
        # Fresh memory would be mapped page by page at every step.
        room = state.room if len(state.room) >= len(ids) else self.decoder.room(len(ids))
        logits, after = self.decoder.step(ids, state.decoder, room)
        return logits, StepsState(after, room)

    def select(self, state: StepsState, rows: Ints) -> StepsState:
        """The state of some rows."""
        return StepsState(state.decoder.select(rows), state.room)

    @property
    def vocabulary(self) -> int:
        """How many ids the decoder writes."""
        return self.decoder.writer.target_vocabulary

    def greedy(
        self, start: int, stop: int, *, limits: Ints, shortest: int, never: Ints
    ) -> tuple[Ragged, NDArray[np.float64], NDArray[np.bool_]]:
        """What a greedy search finds, in one call: ids, log-probabilities, whether finished (`elman.decode.Greedy`)."""
        return self.decoder.greedy(self.begin(len(limits)), start, stop, limits, shortest, never)

    def attention(self, state: StepsState) -> Float:
        """What the last step of each row attended to (R x S)."""
        if not state.decoder.weights.size:
            raise ValueError("there is no attention: the decoder has no attention, or has made no step yet")
        return state.decoder.weights


class _Bridge:
    """From the encoder's final states, each L*D x B x H, to the decoder's first ones, each L x B x H."""

    def __init__(self, parts: TranslationParts, weights: Weights) -> None:
        self.parts, self.learned = parts, parts.decoder.initial(weights)
        names = [
            [f"bridge.maps.{depth}.{part}" for part in range(len(parts.decoder.state_sizes))]
            for depth in range(parts.decoder.num_layers if parts.bridge == "linear" else 0)
        ]
        self.maps = [
            [(weights.numbers(f"{name}.weight").T, weights.numbers(f"{name}.bias")) for name in layer]
            for layer in names
        ]

    def __call__(self, final: tuple[Float, ...]) -> tuple[Float, ...]:
        encoder, decoder = self.parts.encoder, self.parts.decoder
        batch = final[0].shape[1]
        if self.parts.bridge == "zero":
            learned = self.learned or tuple(np.zeros((decoder.num_layers, n), np.float32) for n in decoder.state_sizes)
            return tuple(np.repeat(part[:, None], batch, axis=1) for part in learned)  # each L x B x H
        found = []
        for number, part in enumerate(final):
            both = part.reshape(-1, encoder.directions, *part.shape[1:]).swapaxes(1, 2)  # L x B x D x H
            if encoder.merge == "mean":
                both = both.mean(axis=2)
            both = both.reshape(encoder.num_layers, batch, -1)  # L x B x D*H
            rows = [both[min(depth, encoder.num_layers - 1)] for depth in range(decoder.num_layers)]
            for depth, layer in enumerate(self.maps):
                weight, bias = layer[number]
                rows[depth] = np.tanh(product(rows[depth], weight) + bias)
            found.append(np.stack(rows))
        return tuple(found)


def _keys(parts: TranslationParts, weights: Weights) -> Callable[[Float], Float] | None:
    """What the attention makes of the source's places (N x M) once, N x K; None where it takes them as they are."""
    if parts.attention in ("cosine", "plain-cosine"):
        return lambda states: states / np.maximum(np.linalg.norm(states, axis=1, keepdims=True), np.float32(1e-12))
    name = {"general": "W", "reduced-rank": "V", "additive": "U"}.get(parts.attention or "")
    if name is None:
        return None
    weight = weights.numbers(f"{NAME}.{name}.weight").T
    if parts.attention != "additive":
        return lambda states: product(states, weight)
    bias = weights.numbers(f"{NAME}.U.bias")
    return lambda states: product(states, weight) + bias
