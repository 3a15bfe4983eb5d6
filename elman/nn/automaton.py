"""Weighted finite automata, and the linear recurrent networks that compute the same."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from elman.nn.cells import Cell, Shapes, State
from elman.nn.recurrent import CellLayer, Recurrent


class SecondOrderCell(Cell):
    """A linear second-order recurrent network: input and state are multiplied, not added (Giles et al., 1990).

        h'_k = Σ_v Σ_j A_vjk x_v h_j

    A one-hot input picks one of V matrices: h' = A_vᵀ h.

    >>> cell = SecondOrderCell(input_size=3, hidden_size=2)
    >>> x, h = torch.tensor([[0.0, 1.0, 0.0]]), torch.randn(1, 2)
    >>> torch.allclose(cell(x, (h,))[0], h @ cell.A[1])
    True
    """

    blocks = 1

    A: Tensor

    def shapes(self) -> Shapes:
        return {"A": (self.input_size, self.hidden_size, self.hidden_size)}

    def project(self, x: Tensor) -> Tensor:
        """The matrix of each step, its rows one after the other (... x H*H)."""
        return x @ self.A.flatten(1)

    def step(self, projected: Tensor, state: State) -> State:
        (h,) = state
        A = projected.view(len(h), self.hidden_size, self.hidden_size)  # B x H x H
        return ((h.unsqueeze(1) @ A).squeeze(1),)


class WeightedAutomaton:
    """A weighted finite automaton of Q states over V symbols: it gives each string a number.

        W(π) = λ(q_0) τ(q_0, x_1, q_1) ... τ(q_T-1, x_T, q_T) ρ(q_T)        of a path π = q_0 q_1 ... q_T
        score(x) = Σ_π W(π) = λᵀ A_x1 A_x2 ... A_xT ρ                       of a string x

    with λ (`initial`, Q), τ (`transitions`, V x Q x Q: one matrix A_v for each symbol) and ρ (`final`, Q). `network`
    is a recurrent network that gives every string the same number (Rabusseau, Li and Precup 2019).

    How many times "a" stands in a string of "a" (0) and "b" (1):

    >>> stay, count = torch.eye(2), torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    >>> automaton = WeightedAutomaton([1.0, 0.0], torch.stack([count, stay]), [0.0, 1.0])
    >>> automaton.score([0, 1, 0, 0]), automaton.path_score([0, 1, 0, 0], [0, 0, 0, 1, 1])
    (3.0, 1.0)
    >>> automaton.network()(torch.tensor([[0, 1, 0, 0]])).tolist()
    [3.0]
    """

    def __init__(self, initial: Sequence[float] | Tensor, transitions: Tensor, final: Sequence[float] | Tensor) -> None:
        self.transitions = torch.as_tensor(transitions)
        self.initial, self.final = (torch.as_tensor(ends, dtype=self.transitions.dtype) for ends in (initial, final))
        states = len(self.initial)
        if self.transitions.shape[1:] != (states, states) or self.final.shape != (states,):
            raise ValueError(
                f"{states} states need transitions of V x {states} x {states} and {states} final weights, "
                f"got {tuple(self.transitions.shape)} and {tuple(self.final.shape)}"
            )

    def path_score(self, ids: Sequence[int], path: Sequence[int]) -> float:
        """The weight of one path through the states: one before each symbol, and one behind the last."""
        if len(path) != len(ids) + 1:
            raise ValueError(f"a path of {len(ids)} symbols has {len(ids) + 1} states, got {len(path)}")
        steps = zip(ids, path[:-1], path[1:], strict=True)
        taken = [self.transitions[symbol, before, after] for symbol, before, after in steps]
        product = self.initial[path[0]] * self.final[path[-1]]
        for weight in taken:
            product = product * weight
        return float(product)

    def score(self, ids: Sequence[int]) -> float:
        """The weights of all paths of a string, summed up step by step."""
        h = self.initial  # Q: the weight of all paths to each state
        for symbol in ids:
            h = h @ self.transitions[symbol]
        return float(h @ self.final)

    def network(self) -> "AutomatonNetwork":
        """The recurrent network that gives every string the automaton's number; its weights can be trained on."""
        symbols, states = self.transitions.shape[:2]
        network = AutomatonNetwork(symbols, states).to(self.transitions.dtype)
        with torch.no_grad():
            network.cell.A.copy_(self.transitions)
            network.body.initial[0].copy_(self.initial)
            network.output.weight.copy_(self.final)
        return network


class AutomatonNetwork(nn.Module):
    """A linear second-order recurrent network with one output: as a function of strings, a weighted automaton.

        h_0 = λ,  h_t = A_xtᵀ h_t-1,  y = ρ · h_T

    >>> network = AutomatonNetwork(symbols=3, states=4)
    >>> y = network(torch.tensor([[0, 2, 1], [1, 1, 0]]))
    >>> y.shape, abs(y[0].item() - network.automaton().score([0, 2, 1])) < 1e-5
    (torch.Size([2]), True)
    """

    def __init__(self, symbols: int, states: int) -> None:
        super().__init__()
        self.body = Recurrent(SecondOrderCell, symbols, states, learned_state=True, batch_first=True)
        self.output = nn.Linear(states, 1, bias=False)
        nn.init.normal_(self.body.initial[0])

    @property
    def cell(self) -> SecondOrderCell:
        """The one cell of the one layer."""
        return cast(SecondOrderCell, cast(CellLayer, self.body.layers[0]).cells[0])

    def forward(self, ids: Tensor) -> Tensor:
        """The number of each string (B x T symbols to B)."""
        dtype = self.cell.A.dtype
        x = nn.functional.one_hot(ids, self.body.input_size).to(dtype)  # B x T x V
        start = self.body.initial[0][0].expand(len(ids), -1)  # B x Q: all there is of an empty string
        h = self.body(x)[0][:, -1] if ids.shape[1] else start
        y: Tensor = self.output(h).squeeze(1)
        return y

    def automaton(self) -> WeightedAutomaton:
        """The automaton that gives every string this network's number."""
        A, start, end = self.cell.A, self.body.initial[0][0, 0], self.output.weight[0]
        return WeightedAutomaton(start.detach().clone(), A.detach().clone(), end.detach().clone())
