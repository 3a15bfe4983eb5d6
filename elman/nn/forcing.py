"""Networks that are fed their own words while they learn, in place of the right ones.

To be told the right token before each step is teacher forcing (Williams and Zipser, 1989); to be told it at some steps
only is scheduled sampling (Bengio et al., 2015).
"""

from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from elman.nn.cells import State
from elman.nn.fast.unrolled import UnrolledRecurrent
from elman.nn.language import LanguageNetwork
from elman.nn.recurrent import Recurrent
from elman.nn.steps import as_hidden, as_state


@dataclass(frozen=True)
class Forcing:
    """How often a network is told the right token: always (a `share` of 1), never (0), or with that chance.

    That is decided for each token, or once for a whole sequence. `end` is the id after which a text is over: a network
    that says it itself, and is fed it, has nothing left to learn in that sequence.
    """

    share: float = 1.0
    by: Literal["token", "sequence"] = "token"
    end: int | None = None


class SelfFeeding:
    """What the rows of a batch are fed, step after step: the right tokens, or those that the network itself said.

    >>> feeding = SelfFeeding(Forcing(share=0.0, end=1), rows=2)
    >>> feeding(torch.tensor([5, 6]), None), feeding(torch.tensor([7, 8]), torch.tensor([1, 9]))
    (tensor([5, 6]), tensor([1, 9]))
    >>> feeding.trained
    tensor([ True,  True, False,  True])
    """

    def __init__(self, forcing: Forcing, rows: int) -> None:
        self.forcing = forcing
        self._chance = torch.rand(rows) if forcing.by == "sequence" else None  # B
        self._going_on = torch.ones(rows, dtype=torch.bool)  # B
        self._trained: list[Tensor] = []

    def __call__(self, right: Tensor, own: Tensor | None, begins: Tensor | None = None) -> Tensor:
        """The ids that the first R rows are fed, from the right ones and what the network said at the step before.

        Before the first step it has said nothing; a row that `begins` (R) a text anew is told what stands there.
        """
        rows, fed = len(right), right
        if own is not None:
            chance = torch.rand_like(right, dtype=torch.float) if self._chance is None else self._chance[:rows]
            told = chance < self.forcing.share
            told = told if begins is None else told | begins
            fed = torch.where(told, right, own)
            if self.forcing.end is not None:
                self._going_on[:rows] &= told | (own != self.forcing.end)
        self._trained.append(self._going_on[:rows].clone())
        return fed

    @property
    def trained(self) -> Tensor:
        """Which of the steps so far count in the loss (N, step after step): those before the network's own end."""
        return torch.cat(self._trained)


class LanguageSteps:
    """A language network taken through one batch step by step, its masks drawn once where they hold for a sequence.

    >>> from elman.nn.softmax import ChunkedSoftmax
    >>> network = LanguageNetwork(nn.Embedding(9, 4), [Recurrent("gru", 4, 5, batch_first=True)], ChunkedSoftmax(5, 9))
    >>> steps = LanguageSteps(network, None, rows=2)
    >>> output = steps(torch.tensor([3, 1]))
    >>> output.shape, steps.best(output).shape
    (torch.Size([2, 5]), torch.Size([2]))
    """

    def __init__(
        self, network: LanguageNetwork, state: Any, rows: int, *, labels: Tensor | None = None, tower: int = 0
    ) -> None:
        self.network, self.labels, self.tower, self.body = network, labels, tower, network.bodies[tower]
        self._unrolled: UnrolledRecurrent | None = None
        self._state: Any = state
        if isinstance(self.body, Recurrent):
            self._unrolled = UnrolledRecurrent(self.body, self.body.input_size)
            self._state = self._unrolled.begin(self._first(rows) if state is None else as_state(state))
        self._words: Tensor | None = None
        if network.training and network.embedding_dropout.p and isinstance(network.embedding, nn.Embedding):
            weight = network.embedding.weight
            self._words = dropout(weight.new_ones(len(weight)), network.embedding_dropout.p)  # V
        self._mask: Tensor | None = None

    def _first(self, rows: int) -> State:
        """The state before any step, each part L x B x H."""
        body = cast(Recurrent, self.body)
        if len(body.initial):
            return tuple(part.expand(-1, rows, -1) for part in body.initial)
        like = next(body.parameters())
        return tuple(like.new_zeros(body.num_layers, rows, size) for size in body.state_sizes)

    @property
    def state(self) -> Any:
        """What is carried on, as the body has it."""
        if self._unrolled is None:
            return self._state
        return as_hidden(tuple(torch.stack(parts) for parts in zip(*self._state, strict=True)))  # each L x B x H

    def forget(self, rows: Tensor) -> None:
        """Put the state of some rows back to the beginning."""
        state = self.network.forget(self.state, rows, self.tower)
        self._state = state if self._unrolled is None else self._unrolled.begin(as_state(state))

    def __call__(self, ids: Tensor) -> Tensor:
        """The body's output (R x H) after one more id of each of the first R rows."""
        x = self._embed(ids)  # R x E
        if self._unrolled is None:
            state = None if self._state is None else self._state[: len(ids)]
            output, self._state = self.body(x.unsqueeze(1), state)
            return cast(Tensor, output.squeeze(1))
        state = [tuple(part[: len(ids)] for part in layer) for layer in self._state]
        output, self._state = self._unrolled.step(x, self._unrolled.project(x), None, state)
        return output

    def _embed(self, ids: Tensor) -> Tensor:
        network = self.network
        vectors: Tensor = network.embedding(ids)
        if self._words is not None:
            vectors = vectors * self._words[ids].unsqueeze(1)
        if network.labels is not None:
            assert self.labels is not None, "a model with labels needs one for every text"
            vectors = torch.cat([vectors, network.labels(self.labels[: len(ids)])], dim=1)
        p, training = network.input_dropout.p, network.training
        if isinstance(network.input_dropout, nn.Dropout) or not training or p == 0:
            return dropout(vectors, p, training)
        if self._mask is None:
            self._mask = dropout(torch.ones_like(vectors), p)  # B x E
        return vectors * self._mask[: len(ids)]

    @torch.no_grad()
    def best(self, output: Tensor) -> Tensor:
        """The most probable next id of each row (R), from the body's output."""
        return self.network.softmax.log_probs(self.network.finish(output)).argmax(dim=1)
