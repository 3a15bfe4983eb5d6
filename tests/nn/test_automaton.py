"""A weighted automaton is a linear recurrent network: the scores of paths, of strings and of the network agree."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.nn import AutomatonNetwork, Recurrent, SecondOrderCell, WeightedAutomaton


def random_automaton(symbols: int, states: int, seed: int) -> WeightedAutomaton:
    drawn = torch.Generator().manual_seed(seed)
    shapes = (states,), (symbols, states, states), (states,)
    return WeightedAutomaton(*(torch.randn(*shape, generator=drawn, dtype=torch.double) for shape in shapes))


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), states=st.integers(1, 3), ids=st.lists(st.integers(0, 2), max_size=4))
def test_a_string_has_the_sum_of_its_paths_and_the_network_says_so(seed: int, states: int, ids: list[int]) -> None:
    automaton = random_automaton(3, states, seed)
    paths = sum(automaton.path_score(ids, path) for path in product(range(states), repeat=len(ids) + 1))
    assert automaton.score(ids) == pytest.approx(paths, rel=1e-9, abs=1e-9)
    network = automaton.network()
    y = network(torch.tensor([ids, ids], dtype=torch.long).view(2, len(ids)))
    assert y.tolist() == pytest.approx([paths] * 2, rel=1e-9, abs=1e-9)
    assert network.automaton().score(ids) == pytest.approx(paths, rel=1e-9, abs=1e-9)


def test_a_path_is_the_product_of_its_weights() -> None:
    transitions = torch.tensor([[[2.0, 3.0], [5.0, 7.0]]])
    automaton = WeightedAutomaton([11.0, 13.0], transitions, [17.0, 19.0])
    assert automaton.path_score([0, 0], [0, 1, 0]) == 11 * 3 * 5 * 17
    assert automaton.path_score([], [1]) == 13 * 19
    assert automaton.score([0]) == 11 * (2 * 17 + 3 * 19) + 13 * (5 * 17 + 7 * 19)


def test_the_network_goes_on_learning_from_the_automaton() -> None:
    """Gradients reach initial weights, matrices and final weights; the cell is one of `Recurrent` as any other."""
    network = random_automaton(2, 3, seed=1).network()
    network(torch.tensor([[0, 1, 1]])).sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in network.parameters())
    assert torch.autograd.gradcheck(lambda A: network.cell.with_weights(A=A)(torch.eye(2).double())[0], network.cell.A)
    stacked = Recurrent(SecondOrderCell, 2, 3, num_layers=2, bidirectional=True)
    assert stacked(torch.randn(5, 4, 2))[0].shape == (5, 4, 6)
    assert len(list(AutomatonNetwork(2, 3).parameters())) == 3


def test_sizes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="2 states need transitions of V x 2 x 2"):
        WeightedAutomaton([1.0, 0.0], torch.ones(1, 3, 3), [0.0, 1.0])
    with pytest.raises(ValueError, match="a path of 1 symbols has 2 states, got 1"):
        WeightedAutomaton([1.0], torch.ones(1, 1, 1), [1.0]).path_score([0], [0])
