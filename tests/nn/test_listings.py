"""What the course notes' programs compute, written out from their equations, and the parts that rebuild it."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from elman.nn import (
    CombinedCell,
    Decoder,
    ElmanCell,
    FixedLengthAttention,
    LastPooling,
    LSTMCell,
    Memory,
    Recurrent,
    from_one_matrix,
    to_one_matrix,
)
from elman.nn.classifier import ClassifierNetwork
from elman.nn.inputs import Inputs
from elman.ragged import Ragged

D = 4


def logistic(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(3)


def arrays(*tensors: Tensor) -> list[np.ndarray]:
    return [tensor.detach().numpy() for tensor in tensors]


# One matrix over [h; x]


def one_matrix_lstm(W: np.ndarray, b: np.ndarray, xs: np.ndarray) -> np.ndarray:
    """The four rows of gates of one product W [h; x] + b, from zeros: i, f, o and the candidate (T x D)."""
    h, c, states = np.zeros(D), np.zeros(D), []
    for x in xs:
        gates = W @ np.concatenate((h, x)) + b
        i, f, o = (logistic(gates[k * D : (k + 1) * D]) for k in range(3))
        c = f * c + i * np.tanh(gates[3 * D :])
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states)


def test_an_lstm_of_one_matrix_of_4d_by_2d() -> None:
    W, b = torch.randn(4 * D, 2 * D, dtype=torch.double), torch.randn(4 * D, dtype=torch.double)
    cell, xs = from_one_matrix(W, b), torch.randn(6, D, dtype=torch.double)
    h, c = cell.initial_state(1, xs)
    found = []
    for x in xs:
        h, c = cell(x.unsqueeze(0), (h, c))
        found.append(h[0])
    np.testing.assert_allclose(torch.stack(found).detach(), one_matrix_lstm(*arrays(W, b, xs)), atol=1e-12)


def test_weights_go_to_one_matrix_and_back() -> None:
    for cell, options in ((LSTMCell(3, D), {}), (ElmanCell(3, D, nonlinearity="relu"), {"nonlinearity": "relu"})):
        W, b = to_one_matrix(cell)
        assert W.shape == (cell.blocks * D, D + 3)
        again = from_one_matrix(W, b, **options)
        assert type(again) is type(cell)
        x, state = torch.randn(2, 3), tuple(torch.randn(2, size) for size in cell.state_sizes)
        for one, other in zip(again(x, state), cell(x, state), strict=True):
            torch.testing.assert_close(one, other)
        assert torch.equal(to_one_matrix(again)[0], W) and torch.equal(to_one_matrix(again)[1], b)
    assert not to_one_matrix(LSTMCell(3, D, bias=False))[1].any()


def test_a_simple_network_of_one_matrix() -> None:
    W, b, h, x = (torch.randn(*shape, dtype=torch.double) for shape in ((D, 2 * D), (D,), (D,), (D,)))
    cell = from_one_matrix(W, b, nonlinearity="logistic")
    right = logistic(W.numpy() @ np.concatenate(arrays(h, x)) + b.numpy())
    np.testing.assert_allclose(cell(x.unsqueeze(0), (h.unsqueeze(0),))[0][0].detach(), right, atol=1e-12)


def test_what_is_no_one_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match="without projection"):
        to_one_matrix(LSTMCell(3, D, proj_size=2))
    for W, b in ((torch.ones(7, 9), None), (torch.ones(8, 2), None), (torch.ones(8, 5), torch.ones(7))):
        with pytest.raises(ValueError, match=r"W should be 4H x \(H \+ I\) and b 4H"):
            from_one_matrix(W, b)


# The classifier of names, letter by letter


def combined_listing(x: np.ndarray, to_h: list[np.ndarray], to_o: list[np.ndarray], late: bool) -> np.ndarray:
    """log p(class) after the last letter: both linear layers read [x; h], or (`late`) the output reads the new h."""
    h = np.zeros(len(to_h[1]))
    for letter in x:
        both = np.concatenate((letter, h))
        h = to_h[0] @ both + to_h[1]
        o = to_o[0] @ (h if late else both) + to_o[1]
    return o - np.log(np.exp(o).sum())


@pytest.mark.parametrize("late", [True, False])
def test_the_two_listings_of_a_linear_network_for_names(late: bool) -> None:
    V, H, C = 5, 3, 2
    body = Recurrent(ElmanCell if late else CombinedCell, V, H, nonlinearity="identity").double()
    embedding = nn.Embedding.from_pretrained(torch.eye(V, dtype=torch.double))  # letters are one-hot
    output = nn.Linear(body.output_size, C).double()
    assert body.output_size == (H if late else V + H)
    network = ClassifierNetwork(embedding, None, body, LastPooling(body), output).eval()
    names = [[3, 1, 4, 1], [0, 2]]
    found = network(Inputs.of(Ragged.of(names))).log_softmax(dim=1)
    layer, suffix = (body.layers[0], "_l0") if late else (body.layers[0].cells[0], "")
    weights = {name: getattr(layer, name + suffix) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}
    to_h = torch.cat((weights["weight_ih"], weights["weight_hh"]), dim=1), weights["bias_ih"] + weights["bias_hh"]
    for row, name in enumerate(names):
        right = combined_listing(np.eye(V)[name], arrays(*to_h), arrays(output.weight, output.bias), late)
        np.testing.assert_allclose(found[row].detach(), right, atol=1e-12)


def test_the_combined_cell_has_one_layer_and_reads_both_ways() -> None:
    with pytest.raises(ValueError, match="one layer only"):
        Recurrent(CombinedCell, 3, 5, num_layers=2)
    both = Recurrent(CombinedCell, 3, 5, bidirectional=True)
    output, (u, h) = both(torch.randn(7, 2, 3))
    assert output.shape == (7, 2, 16) and u.shape == (2, 2, 8) and h.shape == (2, 2, 5)
    assert torch.equal(u[0], output[-1, :, :8]) and torch.equal(u[1], output[0, :, 8:])


# The decoders of the tutorial


def gru(layer: nn.GRU, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    """One step of PyTorch's unit."""
    W, U, b, d = arrays(*layer.parameters())
    of_x, of_h, size = W @ x + b, U @ h + d, len(h)
    r, z = (logistic(of_x[k * size : (k + 1) * size] + of_h[k * size : (k + 1) * size]) for k in (0, 1))
    n = np.tanh(of_x[2 * size :] + r * of_h[2 * size :])
    return (1 - z) * n + z * h


def test_the_decoder_without_attention() -> None:
    decoder = Decoder("tutorial", "gru", D, D, D, D).double()
    xs, h = torch.randn(5, D, dtype=torch.double), torch.randn(1, 1, D, dtype=torch.double)
    memory = Memory(*[torch.zeros(1, 1, D, dtype=torch.double)] * 2, torch.zeros(1, 1, dtype=torch.bool))
    state, right = decoder.begin((h,)), h[0, 0].numpy()
    for x in xs:
        readout, state = decoder.step(x.unsqueeze(0), state, memory)
        right = gru(decoder.body.layers[0], np.maximum(x.numpy(), 0), right)
        np.testing.assert_allclose(readout[0].detach(), right, atol=1e-12)


def test_the_decoder_that_attends_over_a_fixed_length() -> None:
    longest = 6  # of which the source has every place, as the listing's does
    attention = FixedLengthAttention(2 * D, D, longest)
    decoder = Decoder("tutorial-attention", "gru", D, D, D, D, attention=attention).double()
    states = torch.randn(1, longest, D, dtype=torch.double)
    memory = Memory(states, states, torch.zeros(1, longest, dtype=torch.bool))
    h = torch.randn(1, 1, D, dtype=torch.double)
    state, right, m = decoder.begin((h,)), h[0, 0].numpy(), states[0].numpy()
    w, w_b, W, W_b = arrays(attention.w.weight, attention.w.bias, decoder.combine.weight, decoder.combine.bias)
    for x in torch.randn(5, D, dtype=torch.double):
        readout, state = decoder.step(x.unsqueeze(0), state, memory)
        e = np.exp(w @ np.concatenate((x.numpy(), right)) + w_b)
        a = e / e.sum()
        combined = np.maximum(W @ np.concatenate((x.numpy(), a @ m)) + W_b, 0)
        right = gru(decoder.body.layers[0], combined, right)
        np.testing.assert_allclose(state.weights[0].detach(), a, atol=1e-12)
        np.testing.assert_allclose(readout[0].detach(), right, atol=1e-12)
