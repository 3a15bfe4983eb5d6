"""The network of a language model: embedding, body, softmax; hidden states in, log-probabilities out."""

from typing import Any, Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from elman.nn.dropout import EmbeddingDropout, LockedDropout
from elman.nn.embedding import OneHot
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import AdaptiveSoftmax, ChunkedSoftmax, SampledSoftmax
from elman.nn.window import FixedWindow

State = Any  # what a body carries from one window to the next: a tensor, a pair of them, or None for the start


class Body(Protocol):
    """What stands between embedding and softmax: recurrent layers, or a fixed window."""

    def __call__(self, x: Any, state: State) -> tuple[Any, State]: ...


class LanguageNetwork(nn.Module):
    """p(next token | tokens so far), and the label where there are labels.

    `bodies` holds one body, or two: a forward and a backward one that share embedding and softmax
    (Peters et al. 2018), trained on the sum of their log-likelihoods.
    """

    def __init__(
        self,
        embedding: nn.Embedding | OneHot,
        bodies: list[Recurrent] | list[FixedWindow],
        softmax: ChunkedSoftmax | SampledSoftmax | AdaptiveSoftmax,
        *,
        labels: nn.Embedding | None = None,
        to_softmax: nn.Linear | None = None,
        embedding_dropout: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
        locked: bool = True,
    ) -> None:
        super().__init__()
        self.embedding, self.bodies, self.softmax = embedding, nn.ModuleList(bodies), softmax
        self.labels, self.to_softmax = labels, to_softmax
        self.embedding_dropout = EmbeddingDropout(embedding_dropout)
        self.input_dropout = LockedDropout(input_dropout, time_dim=1) if locked else nn.Dropout(input_dropout)
        self.output_dropout = LockedDropout(output_dropout, time_dim=1) if locked else nn.Dropout(output_dropout)
        self.batch_dim = 1 if isinstance(bodies[0], Recurrent) else 0  # of the state

    def hidden(
        self, ids: Tensor, state: State = None, *, labels: Tensor | None = None, tower: int = 0
    ) -> tuple[Tensor, State]:
        """What the softmax sees at every step of a window (B x T ids), and the state after it."""
        output, state = cast(Body, self.bodies[tower])(self.embed(ids, labels), state)  # B x T x H
        return self.finish(self.output_dropout(output)), state

    def hidden_of_lines(
        self, ids: Tensor, lengths: Tensor, *, labels: Tensor | None = None, tower: int = 0
    ) -> tuple[Tensor, PackedSequence]:
        """What the softmax sees of whole lines: N x H without padding, and the packing that it follows."""
        body, embedded = cast(Body, self.bodies[tower]), self.embed(ids, labels)
        if isinstance(body, Recurrent):
            packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
            output, _ = body(packed)
        else:  # a window has nothing to carry, so it may run over the padding
            output = pack_padded_sequence(body(embedded, None)[0], lengths, batch_first=True, enforce_sorted=False)
        rows = nn.functional.dropout(output.data, self.output_dropout.p, self.training)  # N x H
        return self.finish(rows), output

    def select(self, state: State, rows: Tensor) -> State:
        """The state of some rows of the batch."""
        return _each(state, lambda tensor: tensor.index_select(self.batch_dim, rows))

    def forget(self, state: State, rows: Tensor, tower: int = 0) -> State:
        """The state with some rows put back to the beginning."""
        if state is None:
            return None
        parts = state if isinstance(state, tuple) else (state,)
        learned = list(getattr(self.bodies[tower], "initial", ())) or [torch.zeros_like(part) for part in parts]
        begun = [
            part.index_copy(self.batch_dim, rows, start.expand_as(part).index_select(self.batch_dim, rows))
            for part, start in zip(parts, learned, strict=True)
        ]
        return tuple(begun) if isinstance(state, tuple) else begun[0]

    def embed(self, ids: Tensor, labels: Tensor | None = None) -> Tensor:
        """What a body reads of B x T ids: their vectors (B x T x E), with the label's beside each if there is one."""
        if isinstance(self.embedding, nn.Embedding):
            vectors = self.embedding_dropout(ids, self.embedding)  # B x T x E
        else:
            vectors = self.embedding(ids)  # B x T x V
        if self.labels is not None:
            assert labels is not None, "a model with labels needs one for every text"
            label = self.labels(labels).unsqueeze(1).expand(-1, ids.shape[1], -1)  # B x T x E'
            vectors = torch.cat([vectors, label], dim=-1)
        return cast(Tensor, self.input_dropout(vectors))

    def finish(self, output: Tensor) -> Tensor:
        """What the softmax sees of a body's output."""
        return cast(Tensor, self.to_softmax(output)) if self.to_softmax is not None else output


def detach(state: State) -> State:
    """The state cut off from the graph that made it: where truncated backpropagation stops."""
    return _each(state, lambda tensor: tensor.detach())


def _each(state: State, change: Any) -> State:
    if state is None:
        return None
    return tuple(change(part) for part in state) if isinstance(state, tuple) else change(state)
