"""The network of a translator: an encoder that reads, a bridge, a decoder that writes."""

from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from elman.nn.decoder import Decoder, Memory
from elman.nn.embedding import OneHot
from elman.nn.recurrent import Merge, Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.nn.steps import as_state, padded
from elman.nn.towers import Towers
from elman.nn.writing import WritingNetwork

BridgeKind = Literal["copy", "linear", "zero"]


class Bridge(nn.Module):
    """From the encoder's last states to the decoder's first ones, layer by layer.

        copy      s_0 = [→h_S; ←h_1]
        linear    s_0 = tanh(W [→h_S; ←h_1] + b)
        zero      s_0 = 0

    with →h_S and ←h_1 the last states of the two directions, of which there may be one only; an LSTM's c alike. With
    `merge` "mean" their mean takes the place of both. A decoder with more layers than the encoder gets the topmost
    state for the others.

    >>> bridge = Bridge("linear", layers=2, directions=2, state_sizes=(3,), decoder_layers=1, decoder_sizes=(5,))
    >>> bridge((torch.zeros(4, 7, 3),))[0].shape
    torch.Size([1, 7, 5])
    """

    def __init__(
        self,
        kind: BridgeKind,
        *,
        layers: int,
        directions: int,
        state_sizes: tuple[int, ...],
        decoder_layers: int,
        decoder_sizes: tuple[int, ...],
        merge: Merge = "concat",
    ) -> None:
        super().__init__()
        self.kind, self.directions, self.decoder_sizes, self.merge = kind, directions, decoder_sizes, merge
        self.sources = [min(layer, layers - 1) for layer in range(decoder_layers)]
        sizes = tuple(size * (directions if merge == "concat" else 1) for size in state_sizes)
        if kind == "copy" and sizes != decoder_sizes:
            raise ValueError(f"states of {sizes} cannot be copied to a decoder with states of {decoder_sizes}")
        self.maps = nn.ModuleList(
            nn.ModuleList(nn.Linear(size, goal) for size, goal in zip(sizes, decoder_sizes, strict=True))
            for _ in range(decoder_layers if kind == "linear" else 0)
        )

    def forward(self, final: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The decoder's first state, each part L x B x H, from the encoder's last one, each L*D x B x H."""
        if self.kind == "zero":
            batch = final[0].shape[1]
            return tuple(final[0].new_zeros(len(self.sources), batch, size) for size in self.decoder_sizes)
        parts = []
        for number, part in enumerate(final):
            both = part.view(-1, self.directions, *part.shape[1:])  # L x D x B x H
            both = both.mean(dim=1) if self.merge == "mean" else both.transpose(1, 2).flatten(2)  # L x B x D*H
            rows = [both[layer] for layer in self.sources]
            if self.kind == "linear":
                pairs = zip(self.maps, rows, strict=True)
                rows = [torch.tanh(cast(nn.ModuleList, maps)[number](row)) for maps, row in pairs]
            parts.append(torch.stack(rows))
        return tuple(parts)


class TranslationNetwork(WritingNetwork):
    """p(target | source), a token at a time (Sutskever et al., 2014; Bahdanau et al., 2015).

        log p(y | x) = Σ_t log p(y_t | y_1 .. y_t-1, x),   p(y_t | y_1 .. y_t-1, x) = softmax(W r_t + b)

    with r_t the readout of the decoder after y_t-1, which attends to the states of the encoder.

    `target` may be the same embedding as `source`, and the softmax may be tied to it.
    """

    def __init__(
        self,
        source: nn.Embedding | OneHot,
        target: nn.Embedding | OneHot,
        encoder: Recurrent | Towers,
        bridge: Bridge,
        decoder: Decoder,
        softmax: ChunkedSoftmax,
        *,
        unk_id: int = 0,
        token_dropout: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__(unk_id, token_dropout, input_dropout, output_dropout)
        self.source, self.target = source, target
        self.encoder, self.bridge, self.decoder, self.softmax = encoder, bridge, decoder, softmax

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Memory, tuple[Tensor, ...]]:
        """The memory of sources (B x S ids) to attend to, and the state that the decoder begins with."""
        packed = pack_padded_sequence(source, lengths.cpu(), batch_first=True, enforce_sorted=False)
        embedded = packed._replace(data=self._embed(self.source, packed.data))  # N x E
        output, final = self.encoder(embedded)
        keys = states = padded(output, source.shape[1])  # B x S x M
        if self.decoder.attention is not None:
            own = self.decoder.attention.keys(output.data)  # N x K: not of the padding
            keys = states if own is output.data else padded(output._replace(data=own), source.shape[1])  # B x S x K
        padding = torch.arange(source.shape[1], device=source.device) >= lengths.to(source.device).unsqueeze(1)
        return Memory(states, keys, padding), self.begin(as_state(final))

    def begin(self, final: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """The decoder's first state: what the bridge makes of the encoder's last, or one of its own that is learned."""
        own, batch = self.decoder.body.initial, final[0].shape[1]
        return tuple(part.expand(-1, batch, -1).contiguous() for part in own) if len(own) else self.bridge(final)
