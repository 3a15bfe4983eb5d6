"""The network of a translator: an encoder that reads, a bridge, a decoder that writes."""

from typing import Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from elman.nn.decoder import Decoder, DecoderState, Memory
from elman.nn.embedding import OneHot
from elman.nn.fast.unrolled import UnrolledDecoder
from elman.nn.forcing import Forcing, SelfFeeding
from elman.nn.recurrent import Merge, Recurrent
from elman.nn.softmax import ChunkedSoftmax
from elman.nn.steps import as_state, padded
from elman.nn.towers import Towers

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


class TranslationNetwork(nn.Module):
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
        super().__init__()
        self.source, self.target = source, target
        self.encoder, self.bridge, self.decoder, self.softmax = encoder, bridge, decoder, softmax
        self.unk_id, self.token_dropout = unk_id, token_dropout
        self.input_dropout, self.output_dropout = input_dropout, output_dropout

    # Reading

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

    # Learning

    def readouts(
        self,
        source: Tensor,
        lengths: Tensor,
        inputs: Tensor,
        batch_sizes: Tensor,
        forcing: float = 1.0,
        feeding: SelfFeeding | None = None,
    ) -> Tensor:
        """What the softmax sees at each step of known targets (N x O).

        `inputs` are the tokens before those to be said (N, packed by `batch_sizes`, the longest target first, in the
        order of the sources). With `forcing` below 1, each is in that share of cases what stands there, else what the
        network itself would have said (scheduled sampling: Bengio et al. 2015); `feeding` says otherwise how that is
        decided, and afterwards which of the steps count.
        """
        memory, hidden = self.encode(source, lengths)
        if self.decoder.at_once and forcing == 1 and feeding is None:
            embedded = PackedSequence(self._embed(self.target, inputs), batch_sizes)
            readouts = self.decoder.all_steps(embedded, hidden, memory)
        else:
            readouts = self._step_by_step(memory, hidden, inputs, batch_sizes, forcing, feeding)
        return dropout(readouts, self.output_dropout, self.training)

    def _step_by_step(
        self,
        memory: Memory,
        hidden: tuple[Tensor, ...],
        inputs: Tensor,
        batch_sizes: Tensor,
        forcing: float,
        feeding: SelfFeeding | None = None,
    ) -> Tensor:
        """The readouts of all steps (N x O), computed one step after the other."""
        decoder = UnrolledDecoder(self.decoder, hidden, memory)
        if forcing == 1 and feeding is None:
            return decoder.all_steps(PackedSequence(self._embed(self.target, inputs), batch_sizes))
        feeding = feeding or SelfFeeding(Forcing(forcing), len(memory))
        readouts: list[Tensor] = []
        for ids in torch.split(inputs, batch_sizes.tolist()):
            own = self._said(readouts[-1][: len(ids)]) if readouts else None
            readouts.append(decoder.step(self._embed(self.target, feeding(ids, own))))
        return torch.cat(readouts)

    @torch.no_grad()
    def _said(self, readouts: Tensor) -> Tensor:
        """The token that the network would say after each readout (R)."""
        return self.softmax.logits(readouts).argmax(dim=1)

    def attended(self, source: Tensor, lengths: Tensor, inputs: Tensor, batch_sizes: Tensor) -> Tensor:
        """The attention weights of each step of known targets (B x T x S); the arguments are those of `readouts`."""
        memory, hidden = self.encode(source, lengths)
        state, weights = self.decoder.begin(hidden), []
        for ids in torch.split(inputs, batch_sizes.tolist()):
            memory, state = _first(memory, state, len(ids))
            _, state = self.decoder.step(self._embed(self.target, ids), state, memory)
            assert state.weights is not None, "a decoder without attention has no weights"
            weights.append(nn.functional.pad(state.weights, (0, 0, 0, len(source) - len(ids))))  # B x S
        return torch.stack(weights, dim=1)

    # Writing

    def step(
        self, ids: Tensor, state: DecoderState, memory: Memory, weights: Tensor | None = None
    ) -> tuple[Tensor, DecoderState]:
        """The logits of the next token of each source (B x V) after one more of them (B).

        `weights` (B x S) take the place of what the attention would compute.
        """
        readout, state = self.decoder.step(self._embed(self.target, ids), state, memory, weights)
        return self.softmax.logits(readout), state

    def _embed(self, embedding: nn.Module, ids: Tensor) -> Tensor:
        if self.training and self.token_dropout:
            ids = ids.masked_fill(torch.rand_like(ids, dtype=torch.float) < self.token_dropout, self.unk_id)
        return dropout(embedding(ids), self.input_dropout, self.training)


def _first(memory: Memory, state: DecoderState, rows: int) -> tuple[Memory, DecoderState]:
    """The first rows, those whose target goes on."""
    if rows == len(memory):
        return memory, state
    fed, weights = (None if part is None else part[:rows] for part in (state.fed, state.weights))
    return memory.select(slice(rows)), DecoderState(tuple(part[:, :rows] for part in state.hidden), fed, weights)
