"""Networks over trees: all heights of a forest as one function, with the backward pass by hand.

Autograd would follow a dozen small operations at each height, and lay the gradient of every slice among zeros. Here a
height is a slice of memory that all of them share: the states of N nodes by their places, what is kept of the I nodes
that have children, and of their E edges. The gradient of a weight is one product over all of these.

The equations are those of `elman.nn.trees`, in the same letters; d_x is the gradient of x. M x ... is one height's.
What differentiates the gradients again follows the equations themselves.
"""

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from elman.forest import Forest, Level
from elman.nn.cells import State
from elman.nn.fast.autograd import Parts, by_autograd, is_last_pass

_sigmoid_backward, _tanh_backward = torch.ops.aten.sigmoid_backward.grad_input, torch.ops.aten.tanh_backward.grad_input

ROWS = 128
"""Of so many nodes at a time the products of two numbers are laid out for the gradient of V."""


Climb = Callable[[Any, Forest, State, Tensor | None], Tensor]
"""From a cell, the states of the leaves and W x of the other nodes to h of all nodes (N x H): `TreeCell.climb`."""


def climb_recursive(cell: Any, forest: Forest, leaves: State, _: Tensor | None) -> Tensor:
    """Of a `RecursiveCell`, or a `TensorCell`, which has slices V_k too."""
    weights = (cell.weight_hh, cell.bias, getattr(cell, "tensor", None))
    return cast(Tensor, _Recursive.apply(cell, forest, *leaves, *weights))  # type: ignore[no-untyped-call]


def climb_tree_lstm(cell: Any, forest: Forest, leaves: State, _: Tensor | None) -> Tensor:
    """Of a `TreeLSTMCell`."""
    return cast(Tensor, _TreeLSTM.apply(cell, forest, *leaves, cell.weight_hh, cell.bias))  # type: ignore[no-untyped-call]


def climb_child_sum(cell: Any, forest: Forest, leaves: State, x: Tensor | None) -> Tensor:
    """Of a `ChildSumCell`."""
    weights = (cell.weight_hh, cell.weight_fh, cell.bias)
    return cast(Tensor, _ChildSum.apply(cell, forest, *leaves, x, *weights))  # type: ignore[no-untyped-call]


def _by_equation(
    ctx: Any, state: State, x: Tensor | None, names: Sequence[str], weights: Parts, d_states: Tensor
) -> Parts:
    """The gradients of the leaves' states, of x and of weights, as autograd makes them of the cell's own equation."""
    mask = ctx.gates.mask if hasattr(ctx, "gates") else None

    def equation(*given: Tensor | None) -> Tensor:
        cell = copy(ctx.cell)
        cell._parameters = ctx.cell._parameters | dict(zip(names, given[len(state) + 1 :], strict=True))
        cell._modules = {"dropout": _Drawn(mask, ctx.forest)}
        return cast(Tensor, cell.climb(ctx.forest, given[: len(state)], given[len(state)]))

    needed = [part is not None and part.requires_grad for part in (*state, x, *weights)]
    return by_autograd(equation, (*state, x, *weights), needed, d_states)


class _Drawn(nn.Module):
    """The dropout that was drawn for each height, lowest first."""

    def __init__(self, mask: Tensor | None, forest: Forest) -> None:
        super().__init__()
        self.parts = None if mask is None else iter([mask[level.inner] for level in forest.above])

    def forward(self, u: Tensor) -> Tensor:
        return u if self.parts is None else u * next(self.parts)


class _Recursive(torch.autograd.Function):
    """h of all nodes from those of the leaves; V is None where there are no slices."""

    @staticmethod
    def forward(ctx: Any, cell: Any, forest: Forest, leaves: Tensor, W: Tensor, b: Tensor, V: Tensor | None) -> Tensor:
        h, h_below = _with_leaves(forest, leaves), _of_edges(forest, leaves)
        both = h_below.view(-1, 2 * h.size(1))  # I x 2H: [h_l; h_r]
        for level in forest.above:
            _read(h, level, h_below)
            x = both[level.inner]
            y = torch.addmm(b, x, W.t(), out=h[level.nodes])
            if V is not None:
                products = (x @ V.t()).view(*y.shape, -1)  # M x H x 2H: V_k x for every k
                y += torch.linalg.vecdot(products, x.unsqueeze(1))
            y.tanh_()
        ctx.cell, ctx.forest, ctx.both = cell, forest, both
        ctx.save_for_backward(h, leaves, W, b, V)
        return h

    @staticmethod
    def backward(ctx: Any, d_states: Tensor) -> Parts:
        h, leaves, W, b, V = ctx.saved_tensors
        if not is_last_pass(d_states):
            names = ("weight_hh", "bias", "tensor")
            d_leaves, _, *d_weights = _by_equation(ctx, (leaves,), None, names, (W, b, V), d_states)
            return None, None, d_leaves, *d_weights
        both, forest, H, d_h = ctx.both, ctx.forest, h.size(1), d_states.clone()
        d_y = h.new_empty(len(both), H)
        if V is not None:
            slices = V.view(H, 2 * H, 2 * H)
            twice = (slices + slices.transpose(1, 2)).view_as(V)  # the gradient of x' V_k x is (V_k + V_k') x
        for level in reversed(forest.above):
            d = d_y[level.inner]
            _tanh_backward(d_h[level.nodes], h[level.nodes], grad_input=d)
            d_x = d @ W
            if V is not None:
                d_x.addmm_(_pairs(d, both[level.inner]), twice)
            d_h.index_add_(0, torch.from_numpy(level.children), d_x.view(-1, H))
        *_, of_W, of_b, of_V = ctx.needs_input_grad
        return (
            None,
            None,
            d_h[: forest.leaves],
            d_y.t() @ both if of_W else None,
            d_y.sum(dim=0) if of_b else None,
            _tensor_gradient(d_y, both) if of_V else None,
        )


def _tensor_gradient(d_y: Tensor, x: Tensor) -> Tensor:
    """That of V (H * 2H x 2H)."""
    gradient = x.new_zeros(d_y.size(1) * x.size(1), x.size(1))
    for d, part in zip(torch.split(d_y, ROWS), torch.split(x, ROWS), strict=True):
        gradient.addmm_(_pairs(d, part).t(), part)
    return gradient


def _pairs(d: Tensor, x: Tensor) -> Tensor:
    """Every number of d with every one of x (M x H and M x 2H to M x H * 2H)."""
    return (d.unsqueeze(2) * x.unsqueeze(1)).flatten(1)


class _TreeLSTM(torch.autograd.Function):
    """h of all nodes from h and c of the leaves."""

    @staticmethod
    def forward(
        ctx: Any, cell: Any, forest: Forest, h_leaves: Tensor, c_leaves: Tensor, U: Tensor, b: Tensor
    ) -> Tensor:
        h, h_below = _with_leaves(forest, h_leaves), _of_edges(forest, h_leaves)
        c, c_below = _with_leaves(forest, c_leaves), _of_edges(forest, c_leaves)
        H = h.size(1)
        both, c_both = h_below.view(-1, 2 * H), c_below.view(-1, 2 * H)  # I x 2H: [h_l; h_r], [c_l; c_r]
        gates = _Gates(h.new_empty(len(both), 5 * H), h.new_empty(len(both), H), cell.dropout)
        for level in forest.above:
            _read(h, level, h_below)
            _read(c, level, c_below)
            torch.addmm(b, both[level.inner], U.t(), out=gates.all[level.inner])
            gates.activate(level)
            _, _, f_l, f_r, _ = gates.of(gates.all, level)
            c_l, c_r = c_both[level.inner].chunk(2, dim=1)
            torch.mul(f_l, c_l, out=c[level.nodes]).addcmul_(f_r, c_r)
            gates.forward(level, h, c)
        ctx.cell, ctx.forest, ctx.gates, ctx.below = cell, forest, gates, (both, c_both)
        ctx.save_for_backward(h_leaves, c_leaves, U, b)
        return h

    @staticmethod
    def backward(ctx: Any, d_states: Tensor) -> Parts:
        h_leaves, c_leaves, U, b = ctx.saved_tensors
        if not is_last_pass(d_states):
            names = ("weight_hh", "bias")
            d_h, d_c, _, *d_weights = _by_equation(ctx, (h_leaves, c_leaves), None, names, (U, b), d_states)
            return None, None, d_h, d_c, *d_weights
        (both, c_both), forest, gates, H = ctx.below, ctx.forest, ctx.gates, U.size(1) // 2
        d_h, d_c, d_gates = d_states.clone(), torch.zeros_like(d_states), torch.empty_like(gates.all)
        for level in reversed(forest.above):
            gates.backward(level, d_h, d_c, d_gates)
            d = d_c[level.nodes].unsqueeze(1)  # M x 1 x H
            f, d_f = (part[level.inner].view(-1, 5, H)[:, 2:4] for part in (gates.all, d_gates))  # M x 2 x H
            torch.mul(d, c_both[level.inner].view(-1, 2, H), out=d_f)
            children = torch.from_numpy(level.children)
            d_c.index_copy_(0, children, (d * f).view(-1, H))
            d_h.index_add_(0, children, (gates.deactivate(level, d_gates) @ U).view(-1, H))
        *_, of_U, of_b = ctx.needs_input_grad
        return (
            None,
            None,
            d_h[: forest.leaves],
            d_c[: forest.leaves],
            d_gates.t() @ both if of_U else None,
            d_gates.sum(dim=0) if of_b else None,
        )


class _ChildSum(torch.autograd.Function):
    """h of all nodes from h and c of the leaves; x is W x of the others (I x 4H), None where none has a word."""

    @staticmethod
    def forward(
        ctx: Any,
        cell: Any,
        forest: Forest,
        h_leaves: Tensor,
        c_leaves: Tensor,
        x: Tensor | None,
        U: Tensor,
        U_f: Tensor,
        b: Tensor,
    ) -> Tensor:
        h, h_below = _with_leaves(forest, h_leaves), _of_edges(forest, h_leaves)
        c, c_below = _with_leaves(forest, c_leaves), _of_edges(forest, c_leaves)
        H, inner = h.size(1), len(h) - forest.leaves
        total, f = h.new_zeros(inner, H), torch.empty_like(h_below)
        gates = _Gates(h.new_empty(inner, 3 * H), h.new_empty(inner, H), cell.dropout)
        c[forest.leaves :] = 0
        for level in forest.above:
            parents = torch.from_numpy(level.parents)
            below, own, forget = _read(h, level, h_below), gates.all[level.inner], f[level.edges]
            torch.addmm(b[: 3 * H], total[level.inner].index_add_(0, parents, below), U.t(), out=own)
            torch.addmm(b[3 * H :], below, U_f.t(), out=forget)
            if x is not None:
                own += x[level.inner, : 3 * H]
                forget += x[level.inner, 3 * H :].index_select(0, parents)
            gates.activate(level)
            c[level.nodes].index_add_(0, parents, forget.sigmoid_() * _read(c, level, c_below))
            gates.forward(level, h, c)
        ctx.cell, ctx.forest, ctx.gates, ctx.below = cell, forest, gates, (h_below, c_below, total, f)
        ctx.save_for_backward(h_leaves, c_leaves, x, U, U_f, b)
        return h

    @staticmethod
    def backward(ctx: Any, d_states: Tensor) -> Parts:
        h_leaves, c_leaves, x, U, U_f, b = ctx.saved_tensors
        if not is_last_pass(d_states):
            names = ("weight_hh", "weight_fh", "bias")
            return None, None, *_by_equation(ctx, (h_leaves, c_leaves), x, names, (U, U_f, b), d_states)
        (h_below, c_below, total, f), forest, gates = ctx.below, ctx.forest, ctx.gates
        d_h, d_c = d_states.clone(), torch.zeros_like(d_states)
        d_gates, d_f = torch.empty_like(gates.all), torch.empty_like(f)
        for level in reversed(forest.above):
            children, parents = torch.from_numpy(level.children), torch.from_numpy(level.parents)
            gates.backward(level, d_h, d_c, d_gates)
            d, forget, d_forget = d_c[level.nodes].index_select(0, parents), f[level.edges], d_f[level.edges]  # E x H
            torch.mul(d, c_below[level.edges], out=d_forget)
            _sigmoid_backward(d_forget, forget, grad_input=d_forget)
            d_c.index_copy_(0, children, d * forget)
            d_total = gates.deactivate(level, d_gates) @ U
            d_h.index_add_(0, children, d_total.index_select(0, parents).addmm_(d_forget, U_f))
        *_, of_x, of_U, of_U_f, of_b = ctx.needs_input_grad
        d_x = None
        if of_x:
            places = torch.from_numpy(forest.parents - forest.leaves)
            d_x = torch.cat([d_gates, torch.zeros_like(total).index_add_(0, places, d_f)], dim=1)
        return (
            None,
            None,
            d_h[: forest.leaves],
            d_c[: forest.leaves],
            d_x,
            d_gates.t() @ total if of_U else None,
            d_f.t() @ h_below if of_U_f else None,
            torch.cat([d_gates.sum(dim=0), d_f.sum(dim=0)]) if of_b else None,
        )


class _Gates:
    """The gates of an LSTM's nodes, i and o first and u last (I x G*H): c = i * u + ..., h = o * tanh(c)."""

    def __init__(self, memory: Tensor, tanh_c: Tensor, drop: Any) -> None:
        self.all, self.tanh_c, self.dropped = memory, tanh_c, drop.p if drop.training else 0.0
        self.mask = torch.ones_like(tanh_c) if self.dropped else None  # of u
        self.H = tanh_c.size(1)

    def activate(self, level: Level) -> None:
        """From sums to gates, in the same memory."""
        gates = self.all[level.inner]
        gates[:, : -self.H].sigmoid_()
        gates[:, -self.H :].tanh_()

    def forward(self, level: Level, h: Tensor, c: Tensor) -> None:
        """Write one height's h, and add i * u to what c has there: that of the children which is kept."""
        i, o, *_, u = self.of(self.all, level)
        if self.mask is not None:
            self.mask[level.inner] = dropout(self.mask[level.inner], self.dropped)
            u = u * self.mask[level.inner]
        torch.tanh(c[level.nodes].addcmul_(i, u), out=self.tanh_c[level.inner])
        torch.mul(o, self.tanh_c[level.inner], out=h[level.nodes])

    def backward(self, level: Level, d_h: Tensor, d_c: Tensor, d_gates: Tensor) -> None:
        """Write the gradients of i, o and u, and add what c gets through h."""
        i, o, *_, u = self.of(self.all, level)
        d_i, d_o, *_, d_u = self.of(d_gates, level)
        d, tanh_c = d_h[level.nodes], self.tanh_c[level.inner]
        torch.mul(d, tanh_c, out=d_o)
        d_added = d_c[level.nodes].add_(torch.ops.aten.tanh_backward(d * o, tanh_c))
        if self.mask is not None:
            d_added = d_added * self.mask[level.inner]
        torch.mul(d_added, u, out=d_i)
        torch.mul(d_added, i, out=d_u)

    def deactivate(self, level: Level, d_gates: Tensor) -> Tensor:
        """From the gradients of gates to those of sums, in the same memory (M x G*H)."""
        gates, d = self.all[level.inner], d_gates[level.inner]
        _sigmoid_backward(d[:, : -self.H], gates[:, : -self.H], grad_input=d[:, : -self.H])
        _tanh_backward(d[:, -self.H :], gates[:, -self.H :], grad_input=d[:, -self.H :])
        return d

    def of(self, gates: Tensor, level: Level) -> State:
        """Each gate of one height (M x H)."""
        return torch.split(gates[level.inner], self.H, dim=1)


def _with_leaves(forest: Forest, leaves: Tensor) -> Tensor:
    """Room for all nodes (N x H), of which the leaves are known."""
    states = leaves.new_empty(len(forest.order), leaves.size(1))
    states[: forest.leaves] = leaves
    return states


def _of_edges(forest: Forest, leaves: Tensor) -> Tensor:
    """Room for the states of all children (E x H)."""
    return leaves.new_empty(len(forest.children), leaves.size(1))


def _read(states: Tensor, level: Level, below: Tensor) -> Tensor:
    """The states of one height's children, kept in `below`."""
    return torch.index_select(states, 0, torch.from_numpy(level.children), out=below[level.edges])
