"""Networks that write: a decoder that attends to a memory, whatever that was made of."""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence

from elman.nn.decoder import AttentionSums, Decoder, DecoderState, Memory
from elman.nn.embedding import OneHot
from elman.nn.fast.unrolled import UnrolledDecoder
from elman.nn.forcing import Forcing, SelfFeeding
from elman.nn.softmax import ChunkedSoftmax


class WritingNetwork(nn.Module):
    """p(target | source), a token at a time, of sources of any kind.

        log p(y | x) = Σ_t log p(y_t | y_1 .. y_t-1, x),   p(y_t | y_1 .. y_t-1, x) = softmax(W r_t + b)

    with r_t the readout of the decoder after y_t-1. A subclass makes of a source, in `encode`, the memory that the
    decoder attends to and the state that it begins with, and has `target`, `decoder` and `softmax`.
    """

    target: nn.Embedding | OneHot
    decoder: Decoder
    softmax: ChunkedSoftmax

    def __init__(
        self, unk_id: int = 0, token_dropout: float = 0.0, input_dropout: float = 0.0, output_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.unk_id, self.token_dropout = unk_id, token_dropout
        self.input_dropout, self.output_dropout = input_dropout, output_dropout

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Memory, tuple[Tensor, ...]]:
        """The memory of sources (B x ..., of so many places each) to attend to, and the decoder's first state."""
        raise NotImplementedError

    # Learning

    def readouts(
        self,
        source: Tensor,
        lengths: Tensor,
        inputs: Tensor,
        batch_sizes: Tensor,
        forcing: float = 1.0,
        feeding: SelfFeeding | None = None,
        sums: AttentionSums | None = None,
        owners: Tensor | None = None,
    ) -> Tensor:
        """What the softmax sees at each step of known targets (N x O).

        `inputs` are the tokens before those to be said (N, packed by `batch_sizes`, the longest target first, in the
        order of the sources). With `forcing` below 1, each is in that share of cases what stands there, else what the
        network itself would have said (scheduled sampling: Bengio et al. 2015); `feeding` says otherwise how that is
        decided, and afterwards which of the steps count. `sums` is told how much each place of a source is attended to.
        With `owners`, the number of the source of each target, a source may have several targets.
        """
        memory, hidden = self.encode(source, lengths)
        if owners is not None:
            memory, hidden = memory.select(owners), tuple(part.index_select(1, owners) for part in hidden)
        if self.decoder.at_once and forcing == 1 and feeding is None:
            embedded = PackedSequence(self._embed(self.target, inputs), batch_sizes)
            readouts = self.decoder.all_steps(embedded, hidden, memory, sums)
        else:
            readouts = self._step_by_step(memory, hidden, inputs, batch_sizes, forcing, feeding, sums)
        return dropout(readouts, self.output_dropout, self.training)

    def _step_by_step(
        self,
        memory: Memory,
        hidden: tuple[Tensor, ...],
        inputs: Tensor,
        batch_sizes: Tensor,
        forcing: float,
        feeding: SelfFeeding | None = None,
        sums: AttentionSums | None = None,
    ) -> Tensor:
        """The readouts of all steps (N x O), computed one step after the other."""
        decoder = UnrolledDecoder(self.decoder, hidden, memory, sums)
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
