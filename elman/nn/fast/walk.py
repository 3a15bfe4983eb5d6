"""A recurrent network taken from step to step, where the input of a step waits for the step before."""

from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from elman.nn.backends import cell_of
from elman.nn.cells import Cell, State
from elman.nn.dropout import drop_weight
from elman.nn.fast import rows
from elman.nn.fast.gates import gru
from elman.nn.fast.shared import SharedLinear, can_share
from elman.nn.layers import GRU, LSTM, RNN
from elman.nn.recurrent import CellLayer, Recurrent


class Walk:
    """The steps of one batch through a `Recurrent`, one by one; the outcome is that of one call with all of them.

    Masks that hold for a whole sequence are drawn once, and so the gradient of a weight is made. The first `known`
    entries of the input may be there for all steps at once; the others, which are fed, are not.

    >>> body = Recurrent("gru", 5, 4, num_layers=2)
    >>> walk, x, fed = Walk(body, known=3), torch.ones(2, 3), torch.ones(2, 2)
    >>> state = walk.begin((torch.zeros(2, 2, 4),))
    >>> for _ in range(7):
    ...     output, state = walk.step(x, walk.project(x), fed, state)
    >>> torch.allclose(output, body(torch.ones(7, 2, 5))[0][-1], atol=1e-6)
    True
    """

    def __init__(self, body: Recurrent, known: int) -> None:
        if body.directions == 2:
            raise ValueError("a network that reads in two directions cannot be taken from step to step")
        self.body = body
        first, *others = body.layers
        self.layers = [_walked(first, known), *(_walked(layer) for layer in others)]
        self._masks: dict[int, Tensor] = {}

    def begin(self, hidden: State) -> list[State]:
        """The state of each layer (its parts R x H) from that of all (its parts L x R x H)."""
        return list(zip(*(part.unbind(0) for part in hidden), strict=True))

    def project(self, x: Tensor) -> Tensor:
        """What the first layer makes of what it knows of its input (N x known): of one step, or of all at once."""
        return self.layers[0].project(x)

    def step(self, x: Tensor, projected: Tensor, fed: Tensor | None, state: list[State]) -> tuple[Tensor, list[State]]:
        """The output (R x H) and the state after one more step; `projected` is what `project` made of x."""
        seen_above = self.body.connections != "plain"
        below = torch.cat((x, fed), dim=1) if seen_above and fed is not None else x  # R x I
        output, finals = below, []
        for depth, (layer, before) in enumerate(zip(self.layers, state, strict=True)):
            if depth == 0:
                final = layer.step(projected, fed, before)
            else:
                dropped = self._drop(output, depth)
                below = torch.cat((below, dropped), dim=1) if self.body.connections == "dense" else dropped
                final = layer.step(layer.project(below), None, before)
            output = final[0]
            if self.body.connections == "residual" and output.shape == below.shape:
                output = output + below
            finals.append(final)
        return output, finals

    def _drop(self, data: Tensor, depth: int) -> Tensor:
        body = self.body
        if not body.locked_dropout or not body.training or body.dropout == 0:
            return dropout(data, body.dropout, body.training)
        if depth not in self._masks:
            self._masks[depth] = dropout(torch.ones_like(data), body.dropout)  # B x H
        return data * self._masks[depth][: len(data)]


class _Walked(Protocol):
    """One layer on its way."""

    def project(self, x: Tensor) -> Tensor: ...

    def step(self, projected: Tensor, fed: Tensor | None, state: State) -> State: ...


class _Products:
    """A layer of `torch.nn`: products with shared weights, then its gates."""

    def __init__(self, layer: RNN | LSTM | GRU, known: int | None) -> None:
        weight_ih, weight_hh, bias_ih, bias_hh = rows.all_weights(layer)
        parts = [weight_ih] if known is None else torch.split(weight_ih, [known, weight_ih.shape[1] - known], dim=1)
        self.mode = layer.mode
        self.one_function = layer.mode == "GRU" and can_share(weight_hh)
        self.project = SharedLinear(parts[0], bias_ih)
        self.fed = SharedLinear(parts[1]) if len(parts) > 1 and parts[1].shape[1] else None
        self.keep = SharedLinear(drop_weight(weight_hh, layer.weight_dropout, layer.training), bias_hh)

    def step(self, projected: Tensor, fed: Tensor | None, state: State) -> State:
        seen = projected if fed is None or self.fed is None else self.fed(fed, projected)  # R x G*H
        kept = self.keep(state[0])
        return (gru(seen, kept, state[0]),) if self.one_function else rows.after(self.mode, seen, kept, state)


class _Equation:
    """Any other cell, by its equation."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell

    def project(self, x: Tensor) -> Tensor:
        """Left as it is: a cell of one's own may do anything with the whole of its input."""
        return x

    def step(self, projected: Tensor, fed: Tensor | None, state: State) -> State:
        x = projected if fed is None else torch.cat((projected, fed), dim=1)  # R x I
        return self.cell.step(self.cell.project(x), state)


def _walked(layer: nn.Module, known: int | None = None) -> _Walked:
    if isinstance(layer, CellLayer):
        return _Equation(layer.dropped(cast(Cell, layer.cells[0])))
    layer = cast(GRU, layer)
    return _Products(layer, known) if rows.can_step(layer) and layer.backend != "cells" else _Equation(cell_of(layer))
