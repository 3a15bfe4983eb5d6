"""Derivations by hand: the exercises solved."""

import numpy as np
import torch

from elman.lab import bptt_numpy
from elman.lab.bptt_numpy import Network, softmax


def forward(network, b, activation):
    h = [np.zeros(len(network.W_h))]
    for e in network.e:
        h.append(activation(network.W_h @ h[-1] + network.W_e @ e + b))
    return np.array(h)


def backward(network, h, slope):
    """∂L/∂b: as W_h's, but with 1 in the place of h_p-1. `slope` is the activation's derivative, of its value."""
    db, later = np.zeros(len(network.W_h)), np.zeros(len(network.W_h))
    for t in reversed(range(len(network.y))):
        error = softmax(network.U @ h[t + 1])
        error[network.y[t]] -= 1
        delta = (network.U.T @ error + later) * slope(h[t + 1])
        db += delta
        later = network.W_h.T @ delta
    return db


def by_autograd(network, activation):
    b = torch.zeros(len(network.W_h), dtype=torch.float64, requires_grad=True)
    W_h, W_e, U, e = (torch.tensor(one) for one in (network.W_h, network.W_e, network.U, network.e))
    h, loss = torch.zeros(len(W_h), dtype=torch.float64), 0
    for t in range(len(network.y)):
        h = activation(W_h @ h + W_e @ e[t] + b)
        loss = loss - torch.log_softmax(U @ h, dim=0)[network.y[t]]
    return torch.autograd.grad(loss, b)[0].numpy()


def test_1_the_gradient_of_the_bias() -> None:
    network = Network.draw(hidden=5, steps=8, seed=0)
    h = forward(network, np.zeros(5), bptt_numpy.sigmoid)
    found = backward(network, h, lambda value: value * (1 - value))
    assert np.allclose(found, by_autograd(network, torch.sigmoid), atol=1e-12)


def test_2_tanh_in_the_place_of_the_logistic_function() -> None:
    """One line changes: h * (1 - h) becomes 1 - h²."""
    network = Network.draw(hidden=5, steps=8, seed=1)
    h = forward(network, np.zeros(5), np.tanh)
    assert np.allclose(backward(network, h, lambda value: 1 - value**2), by_autograd(network, torch.tanh), atol=1e-12)


def test_3_the_gradient_of_the_embedding() -> None:
    """e_t = E w_t, so ∂L/∂e_t = W_eᵀ δ_t falls on the column of word t alone: columns of unread words get zeros."""
    network, text = Network.draw(hidden=5, steps=6, seed=2), [3, 1, 3, 0, 1, 1]
    E = np.random.default_rng(0).normal(size=(6, 4))  # E x V
    W_e = network.W_e

    embedded = Network(network.W_h, W_e, network.U, E[:, text].T.copy(), network.y)
    h, predicted, _ = bptt_numpy.forward(embedded)
    dE, later = np.zeros_like(E), np.zeros(5)
    for t in reversed(range(6)):
        error = predicted[t].copy()
        error[network.y[t]] -= 1
        delta = (network.U.T @ error + later) * h[t + 1] * (1 - h[t + 1])
        dE[:, text[t]] += W_e.T @ delta
        later = network.W_h.T @ delta

    small, moved = 1e-6, np.zeros_like(E)
    for place in np.ndindex(*E.shape):
        for sign in (1, -1):
            changed = E.copy()
            changed[place] += sign * small
            again = Network(network.W_h, W_e, network.U, changed[:, text].T.copy(), network.y)
            moved[place] += sign * bptt_numpy.forward(again)[2] / (2 * small)
    assert np.allclose(dE, moved, atol=1e-7) and not dE[:, 2].any()


def balanced(text):
    """A stack automaton: an opening bracket is pushed, a closing one has to fit the last that is open."""
    held = []
    for symbol in text:
        if symbol in "([":
            held.append(symbol)
        elif not held or held.pop() + symbol not in ("()", "[]"):
            return False
    return not held


def counted(text):
    """Two counters and no stack."""
    counts = {"()": 0, "[]": 0}
    for symbol in text:
        for pair in counts:
            counts[pair] += (symbol == pair[0]) - (symbol == pair[1])
        if min(counts.values()) < 0:
            return False
    return not any(counts.values())


def test_4_two_kinds_of_brackets() -> None:
    assert balanced("([])[]") and not balanced("([)]") and not balanced("((")
    assert counted("([])[]") and counted("([)]")  # it counts right, and is wrong


def test_5_a_mean_forgets_who_said_what() -> None:
    one, other = (np.array([1.0, 0.0]), np.array([0.0, 1.0])), (np.array([0.0, 1.0]), np.array([1.0, 0.0]))
    assert np.array_equal(np.mean(one, axis=0), np.mean(other, axis=0))
    assert not np.array_equal(np.concatenate(one), np.concatenate(other))
