"""Networks over trees: gradients, trees side by side and one by one, node by node in PyTorch, in NumPy."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from elman.bench.trees import PLAIN, PlainTrees, TreeCase, learners_of, random_tree
from elman.forest import Trees
from elman.nn.cells import State
from elman.nn.embedding import Embedding
from elman.nn.pooling import LastPooling
from elman.nn.recurrent import Recurrent
from elman.nn.trees import TREE_CELLS, ChildSumCell, RecursiveCell, SpanNetwork, TreeLSTMCell, TreeNetwork
from elman.records.treebank import flattened, trees_of
from elman.runtime.quantise import dequantise, quantise
from elman.runtime.trees import CompiledTrees
from elman.runtime.weights import arrays_of

VOCABULARY = 12


def some_trees(count: int = 4, seed: int = 0) -> Trees:
    generator = random.Random(seed)
    records = [flattened(random_tree(generator.randint(1, 6), generator)) for _ in range(count)]
    return trees_of(records, [np.array([int(word) % VOCABULARY for word in record.tokens]) for record in records])


def network_of(name: str, embedding: int = 4, hidden: int = 5) -> TreeNetwork:
    torch.manual_seed(1)
    return TreeNetwork(Embedding(VOCABULARY, embedding), TREE_CELLS[name](embedding, hidden), nn.Linear(hidden, 3))


DEPENDENCIES = Trees.of([[2, 2, 4, 4, -1], [-1], [1, 2, -1]], [[7, 8, 1, 9, 3], [5], [2, 0, 4]])


@pytest.mark.parametrize("name", TREE_CELLS)
def test_gradients_are_those_of_finite_differences(name: str) -> None:
    network = network_of(name, embedding=4, hidden=3).double()
    for trees in [some_trees(3), *([DEPENDENCIES] if name == "child-sum" else [])]:
        nodes = np.arange(len(trees.heights))
        assert torch.autograd.gradcheck(
            lambda *_, t=trees, n=nodes: network(t, n).sin().sum(), list(network.parameters())
        )


@pytest.mark.parametrize("name", TREE_CELLS)
def test_side_by_side_they_are_what_they_are_alone(name: str) -> None:
    network, trees = network_of(name), some_trees(6)
    whole = network(trees, np.arange(len(trees.heights)))
    each = [trees.take(np.array([place])) for place in range(len(trees))]
    alone = torch.cat([network(tree, np.arange(len(tree.heights))) for tree in each])
    torch.testing.assert_close(whole, alone)


@pytest.mark.parametrize("name", TREE_CELLS)
def test_node_by_node_gives_the_same_loss_and_gradients(name: str) -> None:
    generator, network = random.Random(3), network_of(name, 5, 5)
    nested = [random_tree(generator.randint(1, 7), generator) for _ in range(3)]
    nested = [type(tree)("1", "3") if tree.word else tree for tree in nested]
    records = [flattened(tree) for tree in nested]
    network.embedding = Embedding(10_000, 5)
    network.output = nn.Linear(5, 5)
    trees = trees_of(records, [np.array([int(word) for word in record.tokens]) for record in records])
    labels = torch.tensor([int(label or 0) for record in records for label in record.labels])
    cross_entropy(network(trees, np.arange(len(labels))), labels).backward()  # type: ignore[no-untyped-call]
    found = {
        name: parameter.grad.clone() for name, parameter in network.named_parameters() if parameter.grad is not None
    }
    network.zero_grad()
    losses: list[torch.Tensor] = []
    for tree in nested:
        PlainTrees(network)(tree, losses)
    torch.stack(losses).mean().backward()  # type: ignore[no-untyped-call]
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(found[name], parameter.grad, msg=name)


@pytest.mark.parametrize("name", TREE_CELLS)
@pytest.mark.parametrize("embedding", [4, 5, 0])
def test_numpy_says_what_pytorch_says(name: str, embedding: int) -> None:
    torch.manual_seed(1)
    network = network_of(name, embedding or 4)
    if not embedding:
        from elman.nn.embedding import make_embedding

        network = TreeNetwork(make_embedding(VOCABULARY, 0), TREE_CELLS[name](VOCABULARY, 5), nn.Linear(5, 3))
    for trees in [some_trees(5), *([DEPENDENCIES] if name == "child-sum" else [])]:
        nodes = np.arange(len(trees.heights))
        weights = arrays_of(network)
        shapes = CompiledTrees.shapes(name, embedding or VOCABULARY, 5)
        assert {key: weights[key].shape for key in weights if key.startswith("cell.")} == shapes
        expected = network(trees, nodes).detach().numpy()
        np.testing.assert_allclose(CompiledTrees(name, weights).scores(trees, nodes), expected, atol=1e-5)
        rounded = quantise(weights)
        near = CompiledTrees(name, rounded).scores(trees, nodes)
        np.testing.assert_allclose(near, CompiledTrees(name, dequantise(rounded)).scores(trees, nodes), atol=1e-6)


def climbed(network: TreeNetwork, trees: Trees, *, by_class: bool) -> list[torch.Tensor]:
    """The scores, all gradients twice of one graph, and gradients of these: as the class has the equation, or as it is
    computed faster."""
    torch.manual_seed(5)
    with pytest.MonkeyPatch.context() as patch:
        if by_class:
            patch.setattr("elman.nn.trees.FAST", {})
        scores = network(trees, np.arange(len(trees.heights)))
    weights = [weight for weight in network.parameters() if weight.requires_grad]
    loss = (scores * torch.linspace(-1, 1, scores.numel()).view_as(scores)).sum()
    gradients = [torch.autograd.grad(loss, weights, retain_graph=True, materialize_grads=True) for _ in range(2)]
    options: dict[str, bool] = {"materialize_grads": True, "allow_unused": True}
    followed = torch.autograd.grad(loss, weights, create_graph=True, **options)
    again = torch.autograd.grad(sum(part.square().sum() for part in followed), weights, **options)
    return [scores, *gradients[0], *gradients[1], *followed, *again]


@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize("name", TREE_CELLS)
def test_what_is_fast_is_what_the_class_says(name: str, dropout: float) -> None:
    network = network_of(name).double()
    network.cell.dropout.p = dropout
    single = Trees.of([[-1], [-1]], [[3], [4]])
    for trees in [some_trees(80), single, *([DEPENDENCIES] if name == "child-sum" else [])]:
        for frozen in ([], [network.embedding], [network.cell]):
            for module in [network, *frozen]:
                module.requires_grad_(module is network)
            for found, right in zip(
                climbed(network, trees, by_class=False), climbed(network, trees, by_class=True), strict=True
            ):
                torch.testing.assert_close(found, right)


@pytest.mark.parametrize("name", TREE_CELLS)
def test_torch_func_differentiates_them(name: str) -> None:
    network, trees = network_of(name), some_trees()
    weights = dict(network.named_parameters())

    def loss(weights: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.func.functional_call(network, weights, (trees, trees.roots)).sum()

    found = torch.func.grad(loss)(weights)
    right = torch.autograd.grad(network(trees, trees.roots).sum(), list(weights.values()))
    for name, gradient in zip(weights, right, strict=True):
        torch.testing.assert_close(found[name], gradient)


def test_a_cell_of_ones_own_is_computed_as_it_is_written() -> None:
    class Doubled(RecursiveCell):
        def node(self, below: State, parents: torch.Tensor, count: int, x: torch.Tensor | None) -> State:
            return (2 * super().node(below, parents, count, x)[0],)

    torch.manual_seed(1)
    cell, words = Doubled(3, 3), torch.randn(2, 3)
    plain = RecursiveCell(3, 3)
    plain.load_state_dict(cell.state_dict())
    pair = Trees.of([[2, 2, -1]], [[0, 1, -1]]).forest
    torch.testing.assert_close(cell.states(pair, words)[2], 2 * plain.states(pair, words)[2])


def test_a_chain_of_single_children_is_an_lstm() -> None:
    """Tai et al.: with one child each, the child-sum Tree-LSTM is the LSTM."""
    torch.manual_seed(2)
    cell, lstm = ChildSumCell(3, 4), nn.LSTM(3, 4)
    i, o, u, f = cell.weight_ih.chunk(4)
    hi, ho, hu = cell.weight_hh.chunk(3)
    bi, bo, bu, bf = cell.bias.chunk(4)
    weights = {"weight_ih_l0": torch.cat([i, f, u, o]), "weight_hh_l0": torch.cat([hi, cell.weight_fh, hu, ho])}
    lstm.load_state_dict(weights | {"bias_ih_l0": torch.cat([bi, bf, bu, bo]), "bias_hh_l0": torch.zeros(16)})
    words = torch.randn(6, 3)
    chain = Trees.of([[1, 2, 3, 4, 5, -1]], [range(6)])
    torch.testing.assert_close(cell.states(chain.forest, words), lstm(words.unsqueeze(1))[0].squeeze(1))


def test_the_order_of_children_matters_to_the_one_and_not_to_the_other() -> None:
    one, other = Trees.of([[2, 2, -1]], [[7, 8, -1]]), Trees.of([[2, 2, -1]], [[8, 7, -1]])
    root = np.array([2])
    for name, same in (("child-sum", True), ("tree-lstm", False), ("recursive", False), ("rntn", False)):
        network = network_of(name)
        assert torch.allclose(network(one, root), network(other, root)) == same


def test_binary_networks_refuse_other_trees() -> None:
    with pytest.raises(ValueError, match="two children or none"):
        network_of("tree-lstm")(Trees.of([[3, 3, 3, -1]], [[1, 2, 3, -1]]), np.array([3]))


def test_the_sequence_model_reads_the_words_below_a_node() -> None:
    torch.manual_seed(0)
    body = Recurrent("lstm", 4, 5, bidirectional=True)
    network = SpanNetwork(Embedding(VOCABULARY, 4), body, LastPooling(body), nn.Linear(10, 3))
    trees = Trees.of([[2, 2, 4, 4, -1]], [[7, 8, -1, 9, -1]])
    other = Trees.of([[4, 3, 3, 4, -1]], [[7, 8, 9, -1, -1]])
    torch.testing.assert_close(network(trees, np.array([4])), network(other, np.array([4])))
    assert not torch.allclose(network(trees, np.array([2])), network(trees, np.array([4])))


def test_dropout_of_cells_is_only_for_training() -> None:
    network, trees = network_of("tree-lstm"), some_trees(2)
    assert isinstance(network.cell, TreeLSTMCell)
    network.cell.dropout.p = 0.5
    assert not torch.equal(network(trees, trees.roots), network(trees, trees.roots))
    network.eval()
    assert torch.equal(network(trees, trees.roots), network(trees, trees.roots))


def test_the_benchmark_compares_what_is_the_same() -> None:
    nodes, ways = learners_of(TreeCase("child-sum", 6, 3))
    assert nodes > 3 and PLAIN in ways
    losses = [way() for way in ways.values()]
    assert losses[0] == pytest.approx(losses[1], abs=1e-5)
