"""A network run on parts of its input: whatever they become at a layer, they add up to what the network has there.

A tensor of P parts is ... x P x H; its sum over P is the network's own. What a part becomes at a sigmoid, a tanh or a
product is a method's to say: it does so as a cell, which runs in place of each cell of the network.
"""

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from torch.nn.utils.rnn import PackedSequence

from elman.inspect.subject import Subject
from elman.nn.cells import Cell, ChoGRUCell, LSTMCell, State
from elman.nn.pooling import AttentionPooling, LastMaxMeanPooling, LastPooling, MaxPooling, Pooling
from elman.nn.recurrent import Recurrent, cells_of
from elman.nn.steps import run_stack, sequence_of_rows, unroll, unroll_directions
from elman.nn.towers import BACKWARD, Towers


class PartsCell(Cell):
    """A cell on parts, made of the one whose weights it has; in 64 bits, so that sums hold.

    A subclass says what becomes of the parts in `lstm` and in `gru`.
    """

    def __init__(self, cell: Cell) -> None:
        nn.Module.__init__(self)  # it has no weights of its own
        self.kind, self.hidden_size = type(cell), cell.hidden_size
        self.W, self.U = cell.weight_ih.detach().double(), cell.weight_hh.detach().double()  # G*H x I, G*H x H
        none = self.W.new_zeros(len(self.W))
        self.b_x = none if cell.bias_ih is None else cell.bias_ih.detach().double()
        self.b_h = none if cell.bias_hh is None else cell.bias_hh.detach().double()
        projection = getattr(cell, "weight_hr", None)  # P x H
        self.R = None if projection is None else projection.detach().double()

    def project(self, x: Tensor) -> Tensor:
        """The parts of W x (... x P x G*H); the biases are left to `step`."""
        return linear(x, self.W)

    def step(self, projected: Tensor, state: State) -> State:
        if self.kind is not LSTMCell:
            return (self.gru(projected, *state),)
        h, c = self.lstm(projected, *state)
        return (h if self.R is None else linear(h, self.R)), c

    def lstm(self, x: Tensor, h: Tensor, c: Tensor) -> State:
        """The parts of h', before a projection, and of c' (each B x P x H), from those of W x, h and c."""
        raise NotImplementedError

    def gru(self, x: Tensor, h: Tensor) -> Tensor:
        """The parts of h' (B x P x H), from those of W x and h."""
        raise NotImplementedError

    def recurrent(self, h: Tensor, r: Tensor) -> Tensor:
        """The parts of what a GRU's candidate takes from the state (B x P x H): r * (U h); as published, U (r * h)."""
        U = self.U[2 * self.hidden_size :]
        return linear(r * h, U) if self.kind is ChoGRUCell else r * linear(h, U)

    def recurrent_bias(self, r: Tensor) -> Tensor:
        """The bias that goes with it (B x 1 x H)."""
        return r * self.b_h[2 * self.hidden_size :]


def run_parts(subject: Subject, vectors: Tensor, embedded: PackedSequence, make: Callable[[Cell], PartsCell]) -> Tensor:
    """The parts of the outputs (R x P x C), from those of the vectors (N x P x E); the last bias is the last part's.

    `embedded` says how they are packed, `make` turns a cell of the network into one for parts.
    """
    body, head, pooling = subject.body, subject.head, subject.pooling
    sizes = embedded.batch_sizes
    size = vectors.size(-1) - subject.scored
    vectors, scores = vectors[..., :size], vectors[..., size:]

    def run(stack: Recurrent, backward: bool, depth: int, below: Tensor) -> tuple[Tensor, State]:
        cells = [make(cell) for cell in cells_of(stack.layers[depth])]
        begin = _first_state(stack, depth, int(sizes[0]), vectors)
        if backward:
            output, final = unroll(cells[0], below, sizes, tuple(part[0] for part in begin), reverse=True)
            return output, tuple(part.unsqueeze(0) for part in final)
        output, final = unroll_directions(cells, below, sizes, begin)
        if stack.merge == "mean" and len(cells) == 2:
            output = output.reshape(*output.shape[:-1], 2, -1).mean(dim=-2)
        return output, final

    towers: Any = [(body, False)]
    if isinstance(body, Towers):
        towers = zip(body.towers, BACKWARD[body.direction], strict=True)
    stacks = [
        run_stack(stack.layers, vectors, _reading(run, stack, backward), lambda _, data: data, body.connections)
        for stack, backward in towers
    ]
    steps = torch.cat([output for output, _ in stacks], dim=-1)  # N x P x D*H
    final = torch.cat([finals[-1][0] for _, finals in stacks])  # D x B x P x H
    pooled = steps if pooling is None else _pooled(pooling, steps, final, embedded)
    outputs = linear(pooled, head.weight.detach().double())
    bias = torch.zeros_like(outputs[0])
    bias[-1] = head.bias.detach()
    outputs = outputs + bias
    return outputs.index_add(0, sequence_of_rows(embedded), scores) if subject.scored else outputs


def _reading(run: Callable[[Recurrent, bool, int, Tensor], tuple[Tensor, State]], stack: Any, backward: bool) -> Any:
    return lambda depth, layer, below: run(stack, backward, depth, below)


def _first_state(stack: Recurrent, depth: int, batch: int, vectors: Tensor) -> State:
    """The parts of the state before the first step (each D x B x P x H): zeros; a learned one is the last part's."""
    count = stack.directions
    state = tuple(vectors.new_zeros(count, batch, vectors.size(1), size) for size in stack.state_sizes)
    for part, learned in zip(state, stack.initial, strict=False):
        part[:, :, -1] = learned.detach()[depth * count : (depth + 1) * count]  # D x 1 x H
    return state


def _pooled(pooling: Pooling, steps: Tensor, final: Tensor, embedded: PackedSequence) -> Tensor:
    """One vector for a sequence (B x P x H): each pooling is a sum of the steps, by weights that are no parts."""
    if isinstance(pooling, LastMaxMeanPooling):
        return torch.cat([_pooled(cast(Pooling, part), steps, final, embedded) for part in pooling.parts], dim=-1)
    if isinstance(pooling, LastPooling):
        last = final.mean(dim=0) if pooling.merge == "mean" else final.permute(1, 2, 0, 3).flatten(2)  # B x P x D*H
        return last if embedded.unsorted_indices is None else last[embedded.unsorted_indices]
    sequence = sequence_of_rows(embedded)  # N
    whole = steps.detach().sum(1)  # N x H
    empty = whole.new_zeros(int(embedded.batch_sizes[0]), whole.size(1))
    if isinstance(pooling, AttentionPooling):
        weights = pooling.weights(embedded._replace(data=whole.float())).data.detach().double().unsqueeze(1)  # N x 1
    elif isinstance(pooling, MaxPooling):  # the step that has the maximum takes it all
        places = sequence.unsqueeze(1).expand_as(whole)
        highest = empty.scatter_reduce(0, places, whole, "amax", include_self=False)[sequence]
        weights = (whole == highest).double()
        weights = weights / empty.index_add(0, sequence, weights)[sequence]
    else:
        weights = 1 / torch.bincount(sequence).double()[sequence].unsqueeze(1)
    parts = steps * weights.unsqueeze(1)
    return parts.new_zeros(len(empty), *parts.shape[1:]).index_add(0, sequence, parts)
