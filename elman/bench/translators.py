"""One translator of Elman's, and the pairs that it and its peers read and write."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from elman.decode import Beam, beam_search
from elman.nn.attention import AdditiveAttention
from elman.nn.decoder import Decoder, Kind
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.nn.translation import Bridge, TranslationNetwork
from elman.ragged import Ragged
from elman.runtime import CompiledTranslator
from elman.tasks.writer import make_batch
from elman.train.optimizer import Optimizer, clip, make_optimizer
from elman.train.recipe import TrainSettings

PAD, BOS, EOS = 1, 2, 3
"""The ids that JoeyNMT gives to padding, beginning and end; 0 is the unknown word."""
SPECIALS = 4
LEARNING_RATE, CLIP_NORM = 1e-3, 1.0

Ints = NDArray[np.int64]
Step = Callable[[], float]
"""Trains on one batch; the mean loss of a target token before that."""


@dataclass(frozen=True)
class Sizes:
    """How large the networks are; JoeyNMT's small recurrent model unless said otherwise."""

    vocabulary: int = 8000
    embedding: int = 256
    hidden: int = 256
    """Of the decoder, and of the encoder in each direction."""

    def network(self, kind: Kind) -> TranslationNetwork:
        """GRUs with additive attention and random weights, the same ones in every run.

        >>> Sizes(vocabulary=11, embedding=3, hidden=4).network("luong").decoder.kind
        'luong'
        """
        torch.manual_seed(0)
        H = self.hidden
        attention = AdditiveAttention(H, 2 * H)
        network = TranslationNetwork(
            nn.Embedding(self.vocabulary, self.embedding),
            nn.Embedding(self.vocabulary, self.embedding),
            Recurrent("gru", self.embedding, H, bidirectional=True),
            Bridge("linear", layers=1, directions=2, state_sizes=(H,), decoder_layers=1, decoder_sizes=(H,)),
            Decoder(kind, "gru", self.embedding, H, 2 * H, H, attention=attention),
            ChunkedSoftmax(H, self.vocabulary, bias=False),
        )
        nn.init.zeros_(attention.U.bias)  # which JoeyNMT does not have
        return network

    def flops(self, kind: Kind, pairs: "IdPairs") -> int:
        """Operations of the products of one training step: the backward pass has twice as many as the forward pass."""
        E, H, S = self.embedding, self.hidden, pairs.lengths.astype(int)  # B
        T = np.array([len(target) + 1 for target in pairs.targets])  # B
        fed = {"bahdanau": 2 * H, "luong-feeding": H}.get(kind, 0)
        seen = 3 * H + (E if kind == "bahdanau" else 0)
        reading = 2 * 3 * H * (E + H) + 2 * H * H  # both directions, and the keys
        writing = 3 * H * (E + fed + H) + H * H + seen * H + H * self.vocabulary
        looking = H + 2 * H  # at one place: its score, and its share of what is seen
        return int(3 * 2 * (S.sum() * reading + T.sum() * writing + (S * T).sum() * looking))


@dataclass(frozen=True)
class IdPairs:
    """Sources and targets in ids, the longest source first."""

    sources: list[Ints]
    targets: list[Ints]

    @classmethod
    def of(cls, count: int, vocabulary: int) -> "IdPairs":
        """Random ids in lengths like those of Multi30k in 8,000 sub-words, the same ones in every run.

        >>> pairs = IdPairs.of(1000, vocabulary=50)
        >>> round(pairs.lengths.mean()), round(pairs.tokens / 1000)
        (15, 16)
        """
        random = np.random.default_rng(1)
        spread = random.multivariate_normal([0, 0], [[1, 0.88], [0.88, 1]], count)  # B x 2
        lengths = (14 * np.exp(spread * [0.36, 0.31])).round().astype(int)  # B x 2
        lengths = lengths[np.argsort(-lengths[:, 0], kind="stable")]
        sides = [[random.integers(SPECIALS, vocabulary, length) for length in side] for side in lengths.T]
        return cls(sides[0], sides[1])

    @property
    def lengths(self) -> Ints:
        """How long each source is (B)."""
        return np.array([len(source) for source in self.sources])

    @property
    def tokens(self) -> int:
        """Of the targets, the end tokens counted."""
        return sum(len(target) + 1 for target in self.targets)

    def batches(self, size: int) -> "list[IdPairs]":
        """So many pairs at a time."""
        starts = range(0, len(self.sources), size)
        return [IdPairs(self.sources[i : i + size], self.targets[i : i + size]) for i in starts]


class Peer(Protocol):
    """Anyone who translates and learns."""

    def translate(self, pairs: IdPairs, beam: int, length: int) -> list[list[int]]:
        """The best `length` ids for each source, not ended before; all sources are one batch."""
        ...

    def learning(self, pairs: IdPairs) -> Step:
        """A step of training on these pairs."""
        ...


class Elman:
    """Elman's own, with one of its decoders."""

    def __init__(self, network: TranslationNetwork) -> None:
        self.network = network
        self.translator: CompiledTranslator | None = None  # of the weights as they were after the last training

    def translate(self, pairs: IdPairs, beam: int, length: int) -> list[list[int]]:
        """By the beam search of `elman.decode`; a beam of 1 is greedy."""
        if self.translator is None:
            self.translator = CompiledTranslator.of(self.network)
        steps = self.translator.steps(Ragged.of(pairs.sources))
        search = Beam(size=beam, length=length, min_length=length)
        found = beam_search(steps, len(pairs.sources), start_id=BOS, stop_id=EOS, beam=search)
        return [best.ids for (best,) in found]

    def learning(self, pairs: IdPairs) -> Step:
        """As the trainer does it: fused Adam, clipped gradients."""
        self.network.train()
        self.translator = None
        batch = make_batch(list(zip(pairs.sources, pairs.targets, strict=True)), EOS)
        batch.inputs[: len(pairs.sources)] = BOS  # which peers begin with
        settings = TrainSettings(optimizer="adam", lr=LEARNING_RATE, clip_norm=CLIP_NORM)
        parameters = list(self.network.parameters())
        optimizer = make_optimizer(settings, self.network)

        def loss() -> Tensor:
            hidden = self.network.readouts(batch.source, batch.lengths, batch.inputs, batch.batch_sizes)
            return self.network.softmax.loss(hidden, batch.targets)

        return partial(learn, loss, optimizer, lambda: clip(settings, parameters))


def learn(loss: Callable[[], Tensor], optimizer: Optimizer, clipped: Callable[[], object]) -> float:
    """One step: forward, back, clip, update; the loss."""
    optimizer.zero_grad()
    found = loss()
    found.backward()  # type: ignore[no-untyped-call]
    clipped()
    optimizer.step()
    return found.item()


def padded(rows: list[Ints], fill: int = PAD) -> Tensor:
    """Rows of ids side by side: B x T."""
    tensors = [torch.from_numpy(row) for row in rows]
    return nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=fill)


def weights_of(network: TranslationNetwork) -> dict[str, Tensor]:
    """The network's weights by what they are for, those of a layer by its name and PyTorch's."""
    attention = cast(AdditiveAttention, network.decoder.attention)
    layers = cast(Recurrent, network.encoder).layers
    encoder, decoder = layers[0].state_dict(), network.decoder.body.layers[0].state_dict()
    bridge = cast(nn.ModuleList, network.bridge.maps[0])[0].state_dict()
    readout = cast(nn.Linear, network.decoder.to_readout).state_dict()
    return {
        "source": network.source.weight,
        "target": network.target.weight,
        **{f"encoder.{name}": weight for name, weight in encoder.items()},
        **{f"decoder.{name}": weight for name, weight in decoder.items()},
        **{f"bridge.{name}": weight for name, weight in bridge.items()},
        "query": attention.W.weight,
        "keys": attention.U.weight,
        "energy": attention.v.weight,
        **{f"readout.{name}": weight for name, weight in readout.items()},
        "softmax": network.softmax.weight,
    }
