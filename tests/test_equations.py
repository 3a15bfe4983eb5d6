"""docs/equations.md names what is there, and the notes' letters stand for what it says they stand for."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import elman.nn
from elman.decode import rerank
from elman.lab import minimal_numpy
from elman.lab.gradients import singular_bound
from elman.metrics import perplexity
from elman.nn import (
    GRU,
    LSTM,
    AdditiveAttention,
    ChoGRUCell,
    ChunkedSoftmax,
    ElmanCell,
    FixedLengthAttention,
    GeneralAttention,
    GRUCell,
    LanguageNetwork,
    LSTMCell,
    OneHot,
    Recurrent,
    ReducedRankAttention,
    WordDropout,
)
from elman.nn.tagger import TagNetwork
from elman.train.optimizer import make_optimizer
from elman.train.recipe import TrainSettings

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "equations.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+\.\d+(?:, \d+\.\d+)*) \| (`elman[^|]*) \| (`tests[^|]*) \|$", PAGE, flags=re.MULTILINE)
EXACT: dict[str, Any] = {"rtol": 0, "atol": 1e-7}


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.fixture(autouse=True)
def _same_numbers() -> None:
    torch.manual_seed(0)


def found(name: str) -> Any:
    """What stands behind a dotted name: a module's class or function, or a method of a class."""
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(name)


# The page


def test_every_equation_has_a_class_and_a_test() -> None:
    blocks = "\n".join(re.findall(r"^```\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL))
    numbers = re.findall(r"^(\d+\.\d+) ", blocks, flags=re.MULTILINE)
    assert len(numbers) == len(set(numbers)) > 80
    told = [number for row in ROWS for number in row[0].split(", ")]
    assert told == sorted(set(told), key=told.index), "a number stands in one row"
    assert set(told) == set(numbers)


def test_every_class_and_function_that_is_named_is_there() -> None:
    named = re.findall(r"`(elman(?:\.\w+)+)`", PAGE)
    assert len(set(named)) > 40
    for name in named:
        assert callable(found(name)), name


def test_every_test_that_is_named_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)
    assert len(set(named)) > 50
    for file, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE), name
    for one in re.findall(r"`(tests/[^`]*)`", PAGE):
        assert "::" in one or (ROOT / one).is_file(), one


def test_classes_have_their_equation_in_their_help() -> None:
    read = ("layers", "cells", "mutants", "attention", "crf", "pooling", "softmax", "decoder", "translation")
    classes = {one for one in map(found, re.findall(r"`(elman\.nn\.\w+)`", PAGE)) if inspect.isclass(one)}
    classes |= {elman.nn.RNN, LSTM, GRU, elman.nn.AdaptiveSoftmax, elman.nn.SampledSoftmax}
    shown = [one for one in classes if one.__module__ in {f"elman.nn.{name}" for name in read}]
    assert len(shown) > 25
    for one in shown:
        assert re.search(r"\S = \S", one.__doc__ or ""), one.__name__


# 1 to 4: embedding, Elman network, softmax, perplexity


def test_a_one_hot_vector_picks_a_row_of_the_embedding() -> None:
    table = torch.tensor([[17, 24, 1], [23, 5, 7], [4, 6, 13], [10, 12, 19], [11, 18, 25.0]])  # W, slide 10
    network = LanguageNetwork(nn.Embedding(5, 3, _weight=table), [Recurrent("rnn", 3, 2)], ChunkedSoftmax(2, 5))
    ids = torch.tensor([[3, 0, 3]])
    assert network.embed(ids).tolist() == (OneHot(5)(ids) @ table).tolist()
    assert network.embed(ids)[0, 0].tolist() == [10, 12, 19]
    assert torch.equal(table.T @ OneHot(5)(ids)[0, 1], table[0])  # B's E is the transpose


@pytest.mark.parametrize(("name", "phi"), [("logistic", torch.sigmoid), ("tanh", torch.tanh), ("relu", torch.relu)])
def test_the_logistic_network_with_the_letters_of_the_notes(name: str, phi: Any) -> None:
    cell = ElmanCell(3, 4, nonlinearity=name, dtype=torch.float64)
    x, h = double(3), double(4)
    W_e, W_h, b = cell.weight_ih, cell.weight_hh, cell.get_parameter("bias_ih") + cell.get_parameter("bias_hh")
    W, U = W_h, W_e  # C
    (new,) = cell(x[None], (h[None],))
    for form in (
        phi(W_h @ h + W_e @ x + b),  # B, M2
        phi(W @ h + U @ x + b),  # C
        phi(torch.cat((W_h, W_e), 1) @ torch.cat((h, x)) + b),  # M1, and M2's implementation detail
    ):
        torch.testing.assert_close(new[0], form, **EXACT)


def test_the_derivative_of_the_softmax() -> None:
    softmax, hidden, y = ChunkedSoftmax(4, 6).double(), double(1, 4), torch.tensor([2])
    q = softmax.logits(hidden)[0].detach()
    p = q.softmax(0)
    jacobian = torch.func.jacrev(lambda q: torch.softmax(q, 0))(q)
    torch.testing.assert_close(jacobian, torch.diag(p) - torch.outer(p, p), **EXACT)  # B eq. 36
    error = p - torch.eye(6, dtype=torch.float64)[2]  # B eq. 40
    gradients = torch.autograd.grad(softmax.loss(hidden, y), [softmax.get_parameter("bias"), softmax.weight])
    torch.testing.assert_close(gradients, (error, torch.outer(error, hidden[0])), **EXACT)
    torch.testing.assert_close(jacobian.T @ (-torch.eye(6, dtype=torch.float64)[2] / p), error, **EXACT)  # eq. 24, 36


def test_perplexity_is_one_over_the_geometric_mean() -> None:
    p = np.array([0.2, 0.12, 0.2, 0.19, 0.3, 0.2, 0.2, 0.3])  # C's table
    assert perplexity(-np.log(p).mean()) == pytest.approx(p.prod() ** (-1 / len(p)))


# 5 to 8: cells and layers


def test_an_lstm_is_one_matrix_of_four_by_two() -> None:
    """M1: (i, f, o, c~) of W [h; x] + b with W of 4D x 2D, in its own order of gates and inputs."""
    D = 5
    cell = LSTMCell(D, D, dtype=torch.float64)
    x, h, c = double(D), double(D), double(D)
    own = torch.cat((cell.weight_hh, cell.weight_ih), 1).chunk(4)  # i, f, g, o
    biases = (cell.get_parameter("bias_ih") + cell.get_parameter("bias_hh")).chunk(4)
    order = (0, 1, 3, 2)  # i, f, o, c~
    W, b = torch.cat([own[k] for k in order]), torch.cat([biases[k] for k in order])
    assert W.shape == (4 * D, 2 * D) and b.shape == (4 * D,)
    sums = (W @ torch.cat((h, x)) + b).chunk(4)
    i, f, o = map(torch.sigmoid, sums[:3])
    c_tilde = torch.tanh(sums[3])
    new_c = f * c + i * c_tilde
    found_h, found_c = cell(x[None], (h[None], c[None]))
    torch.testing.assert_close(found_c[0], new_c, **EXACT)
    torch.testing.assert_close(found_h[0], o * torch.tanh(new_c), **EXACT)


def test_the_letters_of_the_lstms() -> None:
    """B's input gate is g and its candidate C~; M1's listing multiplies rows by the transposed matrices."""
    E, H = 3, 4
    cell = LSTMCell(E, H, dtype=torch.float64)
    x, h, c = double(2, E), double(2, H), double(2, H)
    W_i, W_h = cell.weight_ih.chunk(4), cell.weight_hh.chunk(4)
    bias = (cell.get_parameter("bias_ih") + cell.get_parameter("bias_hh")).chunk(4)
    expected = cell(x, (h, c))

    names = {"g": 0, "f": 1, "C": 2, "o": 3}  # B's letters by PyTorch's block
    U, W, b = ({one: part[place] for one, place in names.items()} for part in (W_i, W_h, bias))

    def sums(one: str) -> Tensor:
        return torch.einsum("ij,bj->bi", U[one], x) + torch.einsum("ij,bj->bi", W[one], h) + b[one]

    f, g, o = torch.sigmoid(sums("f")), torch.sigmoid(sums("g")), torch.sigmoid(sums("o"))
    C = f * c + g * torch.tanh(sums("C"))  # eq. 73
    torch.testing.assert_close((o * torch.tanh(C), C), expected, **EXACT)

    names = {"i": 0, "f": 1, "c": 2, "o": 3}  # M1, from scratch: W_xi is E x H
    W_x, W_hh = ({one: part[place].T for one, place in names.items()} for part in (W_i, W_h))
    b = {one: bias[place] for one, place in names.items()}
    gate = {one: x @ W_x[one] + h @ W_hh[one] + b[one] for one in names}
    new = gate["f"].sigmoid() * c + gate["i"].sigmoid() * gate["c"].tanh()
    torch.testing.assert_close((gate["o"].sigmoid() * new.tanh(), new), expected, **EXACT)


def test_z_and_one_minus_z() -> None:
    """B's update gate is one minus M1's and the libraries': the same with the sign of its weights turned."""
    x, h = double(2, 3), double(2, 4)
    cho, library = ChoGRUCell(3, 4, dtype=torch.float64), GRUCell(3, 4, dtype=torch.float64)

    def parts(cell: Any) -> tuple[tuple[Tensor, ...], ...]:
        return tuple(weight.detach().chunk(3) for weight in (cell.weight_ih, cell.weight_hh))

    (W_r, W_z, W), (U_r, U_z, U) = parts(cho)
    b_r, b_z, b = cho.get_parameter("bias_ih").detach().chunk(3)
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    new = torch.tanh(x @ W.T + (r * h) @ U.T + b)
    z = torch.sigmoid(-(x @ W_z.T + h @ U_z.T + b_z))  # B's z
    torch.testing.assert_close(cho(x, (h,))[0], (1 - z) * h + z * new, **EXACT)

    library.get_parameter("bias_hh").data.zero_()  # B eq. 79 has none inside
    (W_r, W_z, W), (U_r, U_z, U) = parts(library)
    b_r, b_z, b = library.get_parameter("bias_ih").detach().chunk(3)
    r = torch.sigmoid(x @ W_r.T + h @ U_r.T + b_r)
    new = torch.tanh(b + r * (h @ U.T) + x @ W.T)  # eq. 79
    z = torch.sigmoid(-(x @ W_z.T + h @ U_z.T + b_z))
    torch.testing.assert_close(library(x, (h,))[0], (1 - z) * h + z * new, **EXACT)  # eq. 80


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_stacked_layers_read_the_layer_below(kind: Any) -> None:
    two, x = kind(3, 4, num_layers=2).double(), double(6, 2, 3)
    first, second = kind(3, 4).double(), kind(4, 4).double()
    for place, one in enumerate((first, second)):
        weights = {name: two.get_parameter(name.replace("_l0", f"_l{place}")) for name, _ in one.named_parameters()}
        one.load_state_dict(weights)
    torch.testing.assert_close(two(x)[0], second(first(x)[0])[0], **EXACT)


@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_two_directions_are_two_layers_side_by_side(kind: Any) -> None:
    both, x = kind(3, 4, bidirectional=True).double(), double(6, 2, 3)
    forward, backward = kind(3, 4).double(), kind(3, 4).double()
    for end, one in (("", forward), ("_reverse", backward)):
        one.load_state_dict({name: both.get_parameter(name + end) for name, _ in one.named_parameters()})
    side_by_side = torch.cat((forward(x)[0], backward(x.flip(0))[0].flip(0)), dim=-1)
    torch.testing.assert_close(both(x)[0], side_by_side, **EXACT)


# 10, 11: gradients and training


@pytest.mark.parametrize("seed", range(3))
def test_the_bound_of_the_logistic_network(seed: int) -> None:
    """The slope of the logistic function is 1/4 at most: its bound is that of tanh over 4 for each step."""
    torch.manual_seed(seed)
    layer, T = Recurrent("rnn", 3, 6), 8
    bound = singular_bound(layer, T)  # s^(T-t)
    cell = ElmanCell(3, 6, nonlinearity="logistic")
    cell.weight_hh.data.copy_(layer.get_parameter("layers.0.weight_hh_l0").data)
    states, h = [], torch.zeros(1, 6)
    for step in torch.randn(T, 1, 3):
        (h,) = cell(step, (h,))
        states.append(h)
    norms = [float(g.norm()) for g in torch.autograd.grad((h * torch.randn(6)).sum(), states)]
    back = [T - 1 - t for t in range(T)]
    assert all(
        norm <= most / 4**distance * norms[-1] * (1 + 1e-5)
        for norm, most, distance in zip(norms, bound, back, strict=True)
    )
    assert singular_bound(Recurrent("rnn", 3, 6, nonlinearity="logistic"), T) == []


def test_gradient_descent_and_adagrad() -> None:
    rho = 0.1
    for name in ("sgd", "adagrad"):
        weights = {"W": np.array([[1.0, -2.0], [0.5, 3.0]])}
        memory = {"W": np.zeros((2, 2))}
        network = nn.Linear(2, 2, bias=False).double()
        network.weight.data = torch.tensor(weights["W"])
        settings = TrainSettings(optimizer=name, lr=rho, momentum=0.0, weight_decay=0.0)
        optimizer = make_optimizer(settings, network)
        for step in range(1, 4):
            gradient = np.array([[0.3, -7.0], [0.0, 1e-3]]) * step
            network.weight.grad = torch.tensor(gradient)
            optimizer.step()
            if name == "sgd":
                weights["W"] -= rho * gradient
            else:
                minimal_numpy.adagrad(weights, {"W": gradient}, memory, rho)
        np.testing.assert_allclose(network.weight.detach().numpy(), weights["W"], rtol=0, atol=1e-7)


# 15: attention


def test_additive_attention_is_one_matrix_of_both() -> None:
    """B eq. 87: v · tanh(W_a [s; h])."""
    attention = AdditiveAttention(4, 6, size=3).double()
    attention.U.bias.data.zero_()
    s, h = double(4), double(5, 6)
    W_a = torch.cat((attention.W.weight, attention.U.weight), 1)
    expected = [attention.v.weight[0] @ torch.tanh(W_a @ torch.cat((s, one))) for one in h]
    scores = attention.scores(s.view(1, 1, -1), attention.keys(h[None]))[0, 0]
    torch.testing.assert_close(scores, torch.stack(expected), **EXACT)


def test_reduced_rank_is_bilinear() -> None:
    """M1: sᵀ (Uᵀ V) h, of rank k."""
    D1, D2, k = 6, 4, 2
    reduced, general = ReducedRankAttention(D2, D1, rank=k).double(), GeneralAttention(D2, D1).double()
    assert reduced.U.weight.shape == (k, D2) and reduced.V.weight.shape == (k, D1)
    general.W.weight.data = reduced.U.weight.data.T @ reduced.V.weight.data
    assert torch.linalg.matrix_rank(general.W.weight) == k
    s, h = double(1, 3, D2), double(1, 5, D1)
    scores = [one.scores(s, one.keys(h)) for one in (reduced, general)]
    torch.testing.assert_close(*scores, **EXACT)


def test_attention_over_a_fixed_length_is_a_linear_layer_of_both() -> None:
    """W: a softmax of a linear layer of [embedded; hidden] with an output for each place."""
    attention = FixedLengthAttention(3 + 4, 6, longest=5).double()
    embedded, hidden, memory = double(1, 3), double(1, 4), double(1, 5, 6)
    weights = attention(torch.cat((embedded, hidden), 1)[None], memory, torch.zeros(1, 5, dtype=torch.bool))
    expected = (torch.cat((embedded, hidden), 1) @ attention.w.weight.T + attention.w.bias).softmax(dim=1)
    torch.testing.assert_close(weights[0], expected, **EXACT)


# 17, 20: tagging and the noisy channel


def test_the_best_tag_is_that_of_the_scores() -> None:
    """M1: argmax of the log-softmax, which is that of the scores themselves."""
    network = TagNetwork(
        nn.Embedding(7, 3), WordDropout(0, 0.0), None, None, Recurrent("lstm", 3, 4), nn.Linear(4, 3), None
    )
    scores = torch.randn(20, 3)
    best = network.best_tags(scores, torch.tensor([4] * 5))
    assert torch.equal(best, scores.log_softmax(1).argmax(1))


@pytest.mark.parametrize("seed", range(5))
def test_bayes_rule_chooses_the_same_translation(seed: int) -> None:
    """M1: argmax p(y | x) = argmax p(x | y) p(y), where the three are of one joint distribution."""
    joint = np.random.default_rng(seed).dirichlet(np.ones(12)).reshape(3, 4)  # x by y
    by_x, by_y = joint / joint.sum(1, keepdims=True), joint / joint.sum(0)
    prior = joint.sum(0)
    features = [
        [{"forward": np.log(by_x[x, y]), "channel": np.log(by_y[x, y]), "language": np.log(prior[y])} for y in range(4)]
        for x in range(3)
    ]
    best = by_x.argmax(1).tolist()
    assert rerank(features, {"forward": 1.0}) == best
    assert rerank(features, {"channel": 1.0, "language": 1.0}) == best
