"""Contextual decomposition: what of a network's outputs comes of a phrase, and what of all else."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.inspect.attribution import Attribution
from elman.inspect.parts import PartsCell, run_parts
from elman.inspect.subject import Cut, Floats, Question, Subject
from elman.nn.cells import Cell, State


@dataclass(frozen=True)
class Decomposition:
    """The outputs of a text as a sum of two (each R x C)."""

    beta: Floats
    """What comes of the phrase."""
    gamma: Floats
    """What comes of all else, and of both together; the bias of the last layer is here."""


class DecompositionCell(PartsCell):
    """A cell on two parts, β of a phrase and γ of all else (Murdoch et al., 2018).

    `inside` (N) has the steps of the phrase: there the product of biases alone counts to β.
    """

    def __init__(self, cell: Cell, inside: Tensor) -> None:
        super().__init__(cell)
        self.inside = inside

    def project(self, x: Tensor) -> Tensor:
        """The parts of W x, and behind them whether the step is of the phrase (N x 2 x G*H+1)."""
        return torch.cat((linear(x, self.W), self.inside[:, None, None].expand(-1, 2, 1)), dim=-1)

    def lstm(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        x, inside = x[..., :-1], x[:, 0, -1:]
        i, f, g, o = (x + linear(h, self.U)).chunk(4, dim=-1)  # each B x 2 x H
        b_i, b_f, b_g, b_o = (self.b_x + self.b_h).chunk(4)
        written = product(shares(torch.sigmoid, i, b_i), shares(torch.tanh, g, b_g), inside)
        c = written + kept(shares(torch.sigmoid, f, b_f), c)
        return torch.sigmoid(o.sum(1, keepdim=True) + b_o) * torch.stack(_halves(torch.tanh, c), dim=1), c

    def gru(self, x: Tensor, h: Tensor) -> Tensor:
        x, inside, size = x[..., :-1], x[:, 0, -1:], self.hidden_size
        r_z = x[..., : 2 * size] + linear(h, self.U[: 2 * size])
        (r, z), (b_r, b_z) = r_z.chunk(2, dim=-1), (self.b_x + self.b_h)[: 2 * size].chunk(2)
        r = torch.sigmoid(r.sum(1, keepdim=True) + b_r)  # as the LSTM's o, a constant
        n = x[..., 2 * size :] + self.recurrent(h, r)
        b_n = self.b_x[2 * size :] + self.recurrent_bias(r).squeeze(1)
        z_beta, z_gamma, z_bias = shares(torch.sigmoid, z, b_z)
        update = -z_beta, -z_gamma, 1 - z_bias  # 1 - z
        return product(update, shares(torch.tanh, n, b_n), inside) + kept((z_beta, z_gamma, z_bias), h)


Shares = tuple[Tensor, Tensor, Tensor]
"""What of a nonlinearity is β's, γ's and the bias' (each B x H)."""


def shares(f: Callable[[Tensor], Tensor], parts: Tensor, bias: Tensor) -> Shares:
    """f(β + γ + b) as a sum of three: the mean of what β adds before and after γ, the same of γ, and f(b)."""
    beta, gamma = parts[:, 0], parts[:, 1]
    alone, whole = f(bias.expand_as(beta)), f(beta + gamma + bias)
    with_beta, with_gamma = f(beta + bias), f(gamma + bias)
    return (with_beta - alone + whole - with_gamma) / 2, (with_gamma - alone + whole - with_beta) / 2, alone


def _sum(three: Shares) -> Tensor:
    return three[0] + three[1] + three[2]


def _halves(f: Callable[[Tensor], Tensor], parts: Tensor) -> tuple[Tensor, Tensor]:
    beta, gamma, _ = shares(f, parts, parts.new_zeros(()))  # f(0) = 0
    return beta, gamma


def product(gate: Shares, signal: Shares, inside: Tensor) -> Tensor:
    """Gate times signal (B x 2 x H): β has what is of β alone or of β and a bias; `inside`, of the biases too."""
    whole = _sum(gate) * _sum(signal)
    beta = gate[0] * (signal[0] + signal[2]) + gate[2] * signal[0] + inside * gate[2] * signal[2]
    return torch.stack((beta, whole - beta), dim=1)


def kept(gate: Shares, parts: Tensor) -> Tensor:
    """Gate times a state (B x 2 x H): what γ lets through of β is γ's."""
    beta = (gate[0] + gate[2]) * parts[:, 0]
    return torch.stack((beta, _sum(gate) * parts.sum(1) - beta), dim=1)


def decompose(subject: Subject, cuts: Sequence[Cut], phrases: Sequence[tuple[int, int]]) -> list[Decomposition]:
    """The outputs of each text as a sum: what comes of its phrase (tokens from start to before stop), and the rest."""
    found: list[Decomposition | None] = [None] * len(cuts)
    with torch.inference_mode(), subject.evaluating():
        for numbers, tokens in subject.batches([cut.tokens for cut in cuts]):
            embedded = subject.embed(tokens)
            flags = [np.zeros(length) for length in tokens.lengths]
            for flag, number in zip(flags, numbers.tolist(), strict=True):
                start, stop = phrases[number]
                flag[cuts[number].first + start : cuts[number].first + stop] = 1
            inside = torch.from_numpy(tokens.packed(np.concatenate(flags)))  # N
            x = embedded.data.double()
            vectors = torch.stack((x * inside[:, None], x * (1 - inside[:, None])), dim=1)  # N x 2 x E
            outputs = run_parts(subject, vectors, embedded, partial(DecompositionCell, inside=inside))
            for number, rows in zip(numbers.tolist(), subject.rows(outputs.numpy(), tokens), strict=True):
                found[number] = Decomposition(rows[:, 0], rows[:, 1])
    return [one for one in found if one is not None]


def decomposition(subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question]) -> list[Attribution]:
    """For each token, what of the score comes of it alone: its β, each token a phrase of its own."""
    pairs = [(number, place) for number, cut in enumerate(cuts) for place in range(len(cut.pieces))]
    each = decompose(subject, [cuts[number] for number, _ in pairs], [(place, place + 1) for _, place in pairs])
    values: list[list[float]] = [[] for _ in cuts]
    scores = [0.0] * len(cuts)
    for (number, _), found in zip(pairs, each, strict=True):
        values[number].append(questions[number].score(found.beta))
        scores[number] = questions[number].score(found.beta + found.gamma)
    return [Attribution(row, score) for row, score in zip(values, scores, strict=True)]
