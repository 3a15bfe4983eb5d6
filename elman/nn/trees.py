"""Networks over trees: a node's state is made of those of its children, height by height for all trees at once.

A cell is one equation. It is asked three things: what a node's word alone gives (`project`, one product for the words
of all trees), what a leaf is (`leaf`), and what a node is that has children (`node`, called once for each height).
"""

from abc import ABC, abstractmethod
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from elman.forest import Forest, Trees
from elman.nn.embedding import Embedding, OneHot
from elman.nn.fast.board import Board
from elman.nn.fast.shared import SharedLinear
from elman.nn.features import WordDropout
from elman.nn.inputs import packed_sequence
from elman.nn.pooling import Pooling
from elman.nn.recurrent import Recurrent


class TreeCell(nn.Module, ABC):
    """How a node's state follows from its word and from the states of its children; `states` goes through a forest."""

    binary = True
    """Whether a node has two children or none, which are told apart; else it may have any number of them."""
    parts = 1
    """How many vectors of H numbers a state is: h first."""

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
        level, levels = forest.levels, len(forest.levels) - 1
        projected = self.project(words)
        has_word = torch.from_numpy(forest.tokens >= 0)
        leaves = int(has_word[: level[1]].sum())
        rest = projected[leaves:]  # of nodes above the leaves: in dependency trees these have words too
        if leaves < level[1]:
            raise ValueError("every leaf needs a word")
        board = Board(self.leaf(projected[:leaves]), len(forest.order))
        steps = self.steps()
        children, parents = torch.from_numpy(forest.children), torch.from_numpy(forest.parents)
        inner = None
        if len(rest):  # a row for every inner node, zeros where it has no word
            rows = torch.from_numpy(np.flatnonzero(forest.tokens[level[1] :] >= 0))
            inner = rest.new_zeros(len(forest.order) - level[1], rest.size(1)).index_add(0, rows, rest)
        for height in range(1, levels):
            first, behind = level[height], level[height + 1]
            edges = slice(forest.edges[height], forest.edges[height + 1])
            below = board.read(children[edges])  # E x S
            x = None if inner is None else inner[first - level[1] : behind - level[1]]
            board.write(self.node(steps, below, parents[edges] - first, behind - first, x))
        return board.states()[:, : self.hidden_size]

    @abstractmethod
    def project(self, words: Tensor) -> Tensor:
        """What depends on words only, for all of them at once."""

    @abstractmethod
    def leaf(self, projected: Tensor) -> Tensor:
        """The states of leaves (S numbers each)."""

    @abstractmethod
    def steps(self) -> Any:
        """The weights as the loop over heights multiplies with them."""

    @abstractmethod
    def node(self, steps: Any, below: Tensor, parents: Tensor, count: int, x: Tensor | None) -> Tensor:
        """The states of `count` nodes of one height (M x S).

        `below` are the states of their children (E x S), `parents` says which of the nodes each belongs to, and `x` is
        what the nodes' own words give, None where none of the forest's inner nodes has one.
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

    def leaf(self, projected: Tensor) -> Tensor:
        return projected

    def steps(self) -> SharedLinear:
        return SharedLinear(self.weight_hh, self.bias)

    def node(self, steps: SharedLinear, below: Tensor, parents: Tensor, count: int, x: Tensor | None) -> Tensor:
        return torch.tanh(steps(below.view(count, -1)))  # M x 2H to M x H


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

    def steps(self) -> Any:
        return super().steps(), SharedLinear(self.tensor)

    def node(self, steps: Any, below: Tensor, parents: Tensor, count: int, x: Tensor | None) -> Tensor:
        layer, tensor = steps
        both = below.view(count, -1)  # M x 2H
        products = tensor(both).view(count, self.hidden_size, -1)  # M x H x 2H: V_k [h_l; h_r] for every k
        return torch.tanh(torch.bmm(products, both.unsqueeze(2)).squeeze(2) + layer(both))


class TreeLSTMCell(TreeCell):
    """The binary Tree-LSTM (Tai et al. 2015): a forget gate for each child.

    i = σ(W_i x + U_i [h_l; h_r] + b_i)        f_l = σ(U_l [h_l; h_r] + b_l)
    o = σ(W_o x + U_o [h_l; h_r] + b_o)        f_r = σ(U_r [h_l; h_r] + b_r)
    u = tanh(W_u x + U_u [h_l; h_r] + b_u)

    c = i * u + f_l * c_l + f_r * c_r          h = o * tanh(c)

    Leaves have a word and no children, all other nodes children and no word: what is missing is zero. The blocks of U
    and b are i, o, f_l, f_r, u, those of W are i, o, u.
    """

    parts = 2

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

    def leaf(self, projected: Tensor) -> Tensor:
        i, o, u = projected.chunk(3, dim=1)
        c = torch.sigmoid(i) * self.dropout(torch.tanh(u))
        return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], dim=1)

    def steps(self) -> SharedLinear:
        return SharedLinear(self.weight_hh, self.bias)

    def node(self, steps: SharedLinear, below: Tensor, parents: Tensor, count: int, x: Tensor | None) -> Tensor:
        H = self.hidden_size
        pairs = below.view(count, 2, 2 * H)  # children x (h, c)
        gates = steps(pairs[:, :, :H].reshape(count, 2 * H))  # M x 5H
        i, o, f_l, f_r = torch.sigmoid(gates[:, : 4 * H]).chunk(4, dim=1)
        u = self.dropout(torch.tanh(gates[:, 4 * H :]))
        c = i * u + f_l * pairs[:, 0, H:] + f_r * pairs[:, 1, H:]
        return torch.cat([o * torch.tanh(c), c], dim=1)


class ChildSumCell(TreeCell):
    """The child-sum Tree-LSTM (Tai et al. 2015): any number of children in any order, each with a forget gate.

    h~ = sum_k h_k                             f_k = σ(W_f x + U_f h_k + b_f)
    i = σ(W_i x + U_i h~ + b_i)
    o = σ(W_o x + U_o h~ + b_o)                c = i * u + sum_k f_k * c_k
    u = tanh(W_u x + U_u h~ + b_u)             h = o * tanh(c)

    A node may have a word (every one of a dependency tree has) or not: then W x is zero. The blocks of W and b are i,
    o, u, f, those of `weight_hh` i, o, u; U_f is `weight_fh`.
    """

    binary, parts = False, 2

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

    def leaf(self, projected: Tensor) -> Tensor:
        H = self.hidden_size
        i, o, u = (projected[:, : 3 * H] + self.bias[: 3 * H]).chunk(3, dim=1)
        c = torch.sigmoid(i) * self.dropout(torch.tanh(u))
        return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], dim=1)

    def steps(self) -> Any:
        H = self.hidden_size
        return SharedLinear(self.weight_hh, self.bias[: 3 * H]), SharedLinear(self.weight_fh, self.bias[3 * H :])

    def node(self, steps: Any, below: Tensor, parents: Tensor, count: int, x: Tensor | None) -> Tensor:
        H, (gates, forget) = self.hidden_size, steps
        h, c = below[:, :H], below[:, H:]  # E x H
        total = below.new_zeros(count, H).index_add(0, parents, h)  # M x H
        i, o, u = gates(total, None if x is None else x[:, : 3 * H]).chunk(3, dim=1)
        f = torch.sigmoid(forget(h, None if x is None else x[:, 3 * H :].index_select(0, parents)))  # E x H
        kept = below.new_zeros(count, H).index_add(0, parents, f * c)  # M x H
        c = torch.sigmoid(i) * self.dropout(torch.tanh(u)) + kept
        return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], dim=1)


TREE_CELLS: dict[str, type[TreeCell]] = {
    "recursive": RecursiveCell,
    "rntn": TensorCell,
    "tree-lstm": TreeLSTMCell,
    "child-sum": ChildSumCell,
}
"""Every cell by its name."""


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
