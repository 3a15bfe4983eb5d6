"""Layer-wise relevance propagation: a score is handed down from layer to layer to the tokens that made it up."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import linear

from elman.inspect.attribution import Attribution
from elman.inspect.parts import PartsCell, run_parts
from elman.inspect.subject import Cut, Question, Subject
from elman.nn.cells import State


class RelevanceCell(PartsCell):
    """A cell whose gates are constants and whose tanh is the straight line from 0 through its value.

    Two parts: what comes of the inputs, and what comes of the biases.
    """

    def lstm(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        parts = self._biased(x + linear(h, self.U), self.b_x + self.b_h)  # B x 2 x 4H
        i, f, g, o = parts.chunk(4, dim=-1)
        c = _gate(f) * c + _gate(i) * chord(g)
        return _gate(o) * chord(c), c

    def gru(self, x: Tensor, h: Tensor) -> Tensor:
        size = 2 * self.hidden_size
        rz = self._biased(x[..., :size] + linear(h, self.U[:size]), (self.b_x + self.b_h)[:size])
        r, z = (_gate(part) for part in rz.chunk(2, dim=-1))
        n = self._biased(x[..., size:] + self.recurrent(h, r), self.b_x[size:] + self.recurrent_bias(r).squeeze(1))
        return (1 - z) * chord(n) + z * h

    def _biased(self, parts: Tensor, bias: Tensor) -> Tensor:
        return torch.stack((parts[:, 0], parts[:, 1] + bias), dim=1)


def _gate(parts: Tensor) -> Tensor:
    """A gate as a constant (B x 1 x H): in a product the gate has no relevance, what it lets through has all."""
    return torch.sigmoid(parts.detach().sum(1, keepdim=True))


def chord(parts: Tensor) -> Tensor:
    """The parts of a tanh, in proportion: z_p tanh(z) / z, where z = Σ z_p."""
    z = parts.detach().sum(1, keepdim=True)
    return parts * torch.where(z == 0, 1.0, torch.tanh(z) / z)


def relevance(subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question]) -> list[Attribution]:
    """Relevance of each token (Bach et al., 2015; LSTM and GRU: Arras et al., 2017 and 2019).

    A sum hands its relevance to its terms in proportion to them, a product to the signal and none to the gate, a tanh
    to its argument, a maximum to the step that has it. So the network is, for one text, a sum of straight lines: the
    relevance of a token is its vector times the gradient of that, and with the biases' it adds up to the score.
    """
    found: list[Attribution | None] = [None] * len(cuts)
    with subject.evaluating():
        for numbers, tokens in subject.batches([cut.tokens for cut in cuts]):
            with torch.no_grad():
                embedded = subject.embed(tokens)
            x = embedded.data.double().requires_grad_()  # N x E
            weights = torch.from_numpy(subject.stacked([questions[n].weights for n in numbers], tokens))  # R x C
            outputs = run_parts(subject, torch.stack((x, torch.zeros_like(x)), dim=1), embedded, RelevanceCell)
            asked = outputs * weights.unsqueeze(1)  # R x 2 x C
            (gradient,) = torch.autograd.grad(asked[:, 0].sum(), x)
            values = tokens.unpacked((gradient * x.detach()).sum(1).numpy())
            parts = subject.rows(asked.detach().sum(2).numpy(), tokens)  # each R x 2
            for number, row, part in zip(numbers.tolist(), values, parts, strict=True):
                inputs, biases = part.reshape(-1, 2).sum(0).tolist()
                found[number] = Attribution.of(cuts[number], row, inputs + biases, rest=biases)
    return [one for one in found if one is not None]
