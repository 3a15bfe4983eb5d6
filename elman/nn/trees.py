"""Networks over trees: a node's state is made of those of its children, height by height for all trees at once.

A cell is one equation. It is asked three things: what a node's word alone gives (`project`, one product for the words
of all trees), what a leaf is (`leaf`), and what a node is that has children (`node`, called once for each height). For
those here `nn/fast/trees.py` computes the same, all heights as one function.
"""

from abc import ABC, abstractmethod
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.forest import Forest, Trees
from elman.nn.cells import State
from elman.nn.embedding import Embedding, OneHot
from elman.nn.fast.autograd import only_autograd
from elman.nn.fast.trees import Climb, climb_child_sum, climb_recursive, climb_tree_lstm
from elman.nn.features import WordDropout
from elman.nn.inputs import packed_sequence
from elman.nn.pooling import Pooling
from elman.nn.recurrent import Recurrent


class TreeCell(nn.Module, ABC):
    """How a node's state follows from its word and from the states of its children; `states` goes through a forest."""

    binary = True
    """Whether a node has two children or none, which are told apart; else it may have any number of them."""

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.dropout = nn.Dropout(0.0)

    def draw(self) -> None:
        """Weights as PyTorch draws those of its recurrent layers: uniform, within 1 / sqrt(H)."""
        reach = self.hidden_size**-0.5
        for weight in self.parameters():
            nn.init.uniform_(weight, -reach, reach)

    def states(self, forest: Forest, words: Tensor) -> Tensor:
        """h of every node by its place in the forest (N x H), from the vectors of the nodes that have a word."""
        if self.binary and not forest.is_binary:
            raise ValueError(f"{type(self).__name__} reads binary trees: every node has two children or none")
        has_word = forest.tokens >= 0
        if not has_word[: forest.leaves].all():
            raise ValueError("every leaf needs a word")
        projected = self.project(words)
        leaves, rest = self.leaf(projected[: forest.leaves]), projected[forest.leaves :]
        x = None
        if len(rest):  # nodes above the leaves have words in dependency trees: a row for each, zeros where it has none
            rows = torch.from_numpy(np.flatnonzero(has_word[forest.leaves :]))
            x = rest.new_zeros(len(forest.order) - forest.leaves, rest.size(1)).index_add(0, rows, rest)
        climb = FAST.get(type(self), type(self).climb) if only_autograd(words) else type(self).climb
        return climb(self, forest, leaves, x)

    def climb(self, forest: Forest, leaves: State, x: Tensor | None) -> Tensor:
        """h of every node (N x H), height by height."""
        state = leaves
        for level in forest.above:
            children, parents = torch.from_numpy(level.children), torch.from_numpy(level.parents)
            count = level.nodes.stop - level.nodes.start
            below = tuple(part.index_select(0, children) for part in state)
            above = self.node(below, parents, count, None if x is None else x[level.inner])
            state = tuple(torch.cat(parts) for parts in zip(state, above, strict=True))
        return state[0]

    @abstractmethod
    def project(self, words: Tensor) -> Tensor:
        """What depends on words only, for all of them at once."""

    @abstractmethod
    def leaf(self, projected: Tensor) -> State:
        """The states of leaves."""

    @abstractmethod
    def node(self, below: State, parents: Tensor, count: int, x: Tensor | None) -> State:
        """The states of `count` nodes of one height (each M x H).

        `below` are the states of their children (each E x H), `parents` says which of the nodes each belongs to, and
        `x` is what the nodes' own words give, None where none of the forest's inner nodes has one.
        """


class RecursiveCell(TreeCell):
    """The recursive network (Socher et al. 2011): one layer, applied at every node.

    h = tanh(W [h_l; h_r] + b)

    A leaf is its word's vector, or W_x x where that has another size.

    >>> cell = RecursiveCell(3, 3)
    >>> trees = Trees.of([[2, 2, 4, 4, -1], [-1]], [[7, 8, -1, 9, -1], [5]])
    >>> cell.states(trees.forest, torch.zeros(4, 3)).shape
    torch.Size([6, 3])
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        H = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(H, input_size)) if input_size != H else None
        self.weight_hh = nn.Parameter(torch.empty(H, 2 * H))
        self.bias = nn.Parameter(torch.empty(H))
        self.draw()

    def project(self, words: Tensor) -> Tensor:
        return words if self.weight_ih is None else linear(words, self.weight_ih)

    def leaf(self, projected: Tensor) -> State:
        return (projected,)

    def node(self, below: State, parents: Tensor, count: int, x: Tensor | None) -> State:
        both = below[0].view(count, -1)  # M x 2H
        return (torch.tanh(linear(both, self.weight_hh, self.bias)),)


class TensorCell(RecursiveCell):
    """The recursive neural tensor network, RNTN (Socher et al. 2013): every pair of a child's numbers has a weight too.

    h_k = tanh([h_l; h_r]' V_k [h_l; h_r] + W_k [h_l; h_r] + b_k)

    `tensor` has the H slices V_k one above the other.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        H = hidden_size
        self.tensor = nn.Parameter(torch.empty(H * 2 * H, 2 * H))  # V
        nn.init.uniform_(self.tensor, -1 / (4 * H), 1 / (4 * H))  # as Socher et al. draw it

    def node(self, below: State, parents: Tensor, count: int, x: Tensor | None) -> State:
        both = below[0].view(count, -1)  # M x 2H
        products = linear(both, self.tensor).view(count, self.hidden_size, -1)  # M x H x 2H: V_k [h_l; h_r] for every k
        return (torch.tanh((products @ both.unsqueeze(2)).squeeze(2) + linear(both, self.weight_hh, self.bias)),)


class TreeLSTMCell(TreeCell):
    """The binary Tree-LSTM (Tai et al. 2015): a forget gate for each child.

    i = σ(W_i x + U_i [h_l; h_r] + b_i)        f_l = σ(U_l [h_l; h_r] + b_l)
    o = σ(W_o x + U_o [h_l; h_r] + b_o)        f_r = σ(U_r [h_l; h_r] + b_r)
    u = tanh(W_u x + U_u [h_l; h_r] + b_u)

    c = i * u + f_l * c_l + f_r * c_r          h = o * tanh(c)

    Leaves have a word and no children, all other nodes children and no word: what is missing is zero. The blocks of U
    and b are i, o, f_l, f_r, u, those of W are i, o, u.
    """

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        H = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(3 * H, input_size))  # W
        self.weight_hh = nn.Parameter(torch.empty(5 * H, 2 * H))  # U
        self.bias = nn.Parameter(torch.empty(5 * H))
        self.draw()

    def project(self, words: Tensor) -> Tensor:
        H = self.hidden_size
        return linear(words, self.weight_ih, torch.cat([self.bias[: 2 * H], self.bias[4 * H :]]))  # N x 3H

    def leaf(self, projected: Tensor) -> State:
        i, o, u = projected.chunk(3, dim=1)
        c = torch.sigmoid(i) * self.dropout(torch.tanh(u))
        return torch.sigmoid(o) * torch.tanh(c), c

    def node(self, below: State, parents: Tensor, count: int, x: Tensor | None) -> State:
        both, c_both = (part.view(count, -1) for part in below)  # M x 2H
        c_l, c_r = c_both.chunk(2, dim=1)
        i, o, f_l, f_r, u = linear(both, self.weight_hh, self.bias).chunk(5, dim=1)
        c = torch.sigmoid(i) * self.dropout(torch.tanh(u)) + torch.sigmoid(f_l) * c_l + torch.sigmoid(f_r) * c_r
        return torch.sigmoid(o) * torch.tanh(c), c


class ChildSumCell(TreeCell):
    """The child-sum Tree-LSTM (Tai et al. 2015): any number of children in any order, each with a forget gate.

    h~ = sum_k h_k                             f_k = σ(W_f x + U_f h_k + b_f)
    i = σ(W_i x + U_i h~ + b_i)
    o = σ(W_o x + U_o h~ + b_o)                c = i * u + sum_k f_k * c_k
    u = tanh(W_u x + U_u h~ + b_u)             h = o * tanh(c)

    A node may have a word (every one of a dependency tree has) or not: then W x is zero. The blocks of W and b are i,
    o, u, f, those of `weight_hh` i, o, u; U_f is `weight_fh`.
    """

    binary = False

    def __init__(self, input_size: int, hidden_size: int) -> None:
        super().__init__(input_size, hidden_size)
        H = hidden_size
        self.weight_ih = nn.Parameter(torch.empty(4 * H, input_size))  # W
        self.weight_hh = nn.Parameter(torch.empty(3 * H, H))
        self.weight_fh = nn.Parameter(torch.empty(H, H))
        self.bias = nn.Parameter(torch.empty(4 * H))
        self.draw()

    def project(self, words: Tensor) -> Tensor:
        return linear(words, self.weight_ih)  # N x 4H

    def leaf(self, projected: Tensor) -> State:
        H = self.hidden_size
        i, o, u = (projected[:, : 3 * H] + self.bias[: 3 * H]).chunk(3, dim=1)
        c = torch.sigmoid(i) * self.dropout(torch.tanh(u))
        return torch.sigmoid(o) * torch.tanh(c), c

    def node(self, below: State, parents: Tensor, count: int, x: Tensor | None) -> State:
        H, (h, c) = self.hidden_size, below  # E x H
        zeros = h.new_zeros(count, H)
        own = self.bias.expand(count, -1) if x is None else x + self.bias  # M x 4H
        i, o, u = (linear(zeros.index_add(0, parents, h), self.weight_hh) + own[:, : 3 * H]).chunk(3, dim=1)
        f = torch.sigmoid(linear(h, self.weight_fh) + own[:, 3 * H :].index_select(0, parents))  # E x H
        c = torch.sigmoid(i) * self.dropout(torch.tanh(u)) + zeros.index_add(0, parents, f * c)
        return torch.sigmoid(o) * torch.tanh(c), c


TREE_CELLS: dict[str, type[TreeCell]] = {
    "recursive": RecursiveCell,
    "rntn": TensorCell,
    "tree-lstm": TreeLSTMCell,
    "child-sum": ChildSumCell,
}
"""Every cell by its name."""


FAST: dict[type[TreeCell], Climb] = {
    RecursiveCell: climb_recursive,
    TensorCell: climb_recursive,
    TreeLSTMCell: climb_tree_lstm,
    ChildSumCell: climb_child_sum,
}
"""What is computed in place of `climb`; a class that derives from one of these is computed as it is written."""


class TreeNetwork(nn.Module):
    """Trees to a score for each class at each node.

    >>> network = TreeNetwork(Embedding(10, 4), TreeLSTMCell(4, 5), nn.Linear(5, 3))
    >>> trees = Trees.of([[2, 2, 4, 4, -1], [-1]], [[7, 8, -1, 9, -1], [5]])
    >>> network(trees, trees.roots).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        embedding: Embedding | OneHot,
        cell: TreeCell,
        output: nn.Linear,
        *,
        token_dropout: float = 0.0,
        input_dropout: float = 0.0,
        dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.cell, self.output = embedding, cell, output
        self.unknown = WordDropout(0, token_dropout)
        self.input_dropout, self.output_dropout = nn.Dropout(input_dropout), nn.Dropout(output_dropout)
        self.cell.dropout = nn.Dropout(dropout)

    def forward(self, trees: Trees, nodes: np.ndarray) -> Tensor:
        """The scores of some nodes, by their numbers among all (K x C)."""
        forest = trees.forest
        ids = torch.from_numpy(forest.tokens[forest.tokens >= 0])
        h = self.cell.states(forest, self.input_dropout(self.embedding(self.unknown(ids))))  # N x H
        chosen = h.index_select(0, torch.from_numpy(forest.places[nodes]))  # K x H
        return cast(Tensor, self.output(self.output_dropout(chosen)))


class SpanNetwork(nn.Module):
    """The sequence model beside the networks over trees: a node is the words below it, read from left to right.

    Nothing but the words is shared between a phrase and the phrases in it, and the tree says only where they end.

    >>> from elman.nn.pooling import LastPooling
    >>> body = Recurrent("lstm", 4, 5)
    >>> network = SpanNetwork(Embedding(10, 4), body, LastPooling(body), nn.Linear(5, 3))
    >>> trees = Trees.of([[2, 2, 4, 4, -1], [-1]], [[7, 8, -1, 9, -1], [5]])
    >>> network(trees, np.array([2, 4, 5])).shape
    torch.Size([3, 3])
    """

    def __init__(
        self,
        embedding: Embedding | OneHot,
        body: Recurrent,
        pooling: Pooling,
        output: nn.Linear,
        *,
        token_dropout: float = 0.0,
        input_dropout: float = 0.0,
        output_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding, self.body, self.pooling, self.output = embedding, body, pooling, output
        self.unknown = WordDropout(0, token_dropout)
        self.input_dropout, self.output_dropout = nn.Dropout(input_dropout), nn.Dropout(output_dropout)

    def forward(self, trees: Trees, nodes: np.ndarray) -> Tensor:
        """The scores of some nodes, by their numbers among all (K x C)."""
        packed = packed_sequence(trees.phrases(nodes))
        vectors = self.input_dropout(self.embedding(self.unknown(packed.data)))  # words of all phrases x E
        return cast(Tensor, self.output(self.output_dropout(self.pooling(*self.body(packed._replace(data=vectors))))))
