"""Backpropagation through time by hand: the course's derivation in NumPy, in its letters, to be read in one sitting.

python elman/lab/bptt_numpy.py

The network, over the one-hot vectors w_t of a text, with y_t the word that comes next:

    e_t = E w_t                            an embedding
    h_t = σ(W_h h_t-1 + W_e e_t)           h_0 = 0
    q_t = U h_t,  ŷ_t = softmax(q_t)
    L_t = -log ŷ_t[y_t],  L = Σ_t L_t

Four derivatives are all that the chain rule needs:

    ∂L_t/∂q_t   = ŷ_t - y_t                of softmax and cross-entropy together
    ∂q_t/∂h_t   = U
    ∂h_t/∂h_t-1 = diag(h_t * (1 - h_t)) W_h
    ∂h_t/∂W_h   = h_t * (1 - h_t) times h_t-1, and for W_e times e_t, as long as h_t-1 is held fast

It is not: h_t-1 depends on W_h too, and so on back to the first step. So the gradient is a sum over all steps p <= t:

    ∂L_t/∂U   = (ŷ_t - y_t) h_tᵀ
    ∂L_t/∂W_h = Σ_p≤t  δ_tp h_p-1ᵀ
    ∂L_t/∂W_e = Σ_p≤t  δ_tp e_pᵀ
    δ_tt = Uᵀ (ŷ_t - y_t) * h_t * (1 - h_t)
    δ_tp = W_hᵀ δ_t,p+1 * h_p * (1 - h_p)

`by_hand` keeps every term, T² of them, so that each can be looked at. `gradients` is what a program does: from the
last step to the first it adds up what all later losses send back, and needs T steps for all of them.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
EMBEDDING = 6  # numbers of a word's vector


@dataclass(frozen=True)
class Network:
    """Weights and a text: H x H, H x E, V x H; embedded words T x E, next words T."""

    W_h: Floats
    W_e: Floats
    U: Floats
    e: Floats
    y: NDArray[np.int64]

    @classmethod
    def draw(cls, hidden: int, steps: int, seed: int, embedding: int = EMBEDDING, vocabulary: int = 10) -> "Network":
        """Random weights and a random text."""
        chance = np.random.default_rng(seed)
        vectors, text = chance.normal(size=(vocabulary, embedding)), chance.integers(vocabulary, size=steps + 1)
        return cls(
            chance.normal(0, 2 / np.sqrt(hidden), (hidden, hidden)),
            chance.normal(0, 1, (hidden, embedding)),
            chance.normal(0, 1, (vocabulary, hidden)),
            vectors[text[:-1]],
            text[1:],
        )


@dataclass(frozen=True)
class Terms:
    """The gradients of a text, term by term."""

    U: Floats
    """T x V x H: of each L_t."""
    W_h: Floats
    """T x T x H x H: of L_t through the weights as they are used at step p."""
    W_e: Floats
    """T x T x H x E."""


def sigmoid(a: Floats) -> Floats:
    """σ, the logistic function."""
    return np.asarray(1 / (1 + np.exp(-a)))


def softmax(q: Floats) -> Floats:
    """ŷ of q; the largest is taken off first, so that exp cannot overflow."""
    raised = np.exp(q - q.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


def forward(network: Network) -> tuple[Floats, Floats, float]:
    """The states (T+1 x H: row t is h_t, row 0 the zeros before the text), the predictions ŷ (T x V), and L."""
    T = len(network.y)
    h = np.zeros((T + 1, len(network.W_h)))
    for t in range(T):
        h[t + 1] = sigmoid(network.W_h @ h[t] + network.W_e @ network.e[t])
    predicted = softmax(h[1:] @ network.U.T)  # T x V
    return h, predicted, float(-np.log(predicted[np.arange(T), network.y]).sum())


def by_hand(network: Network) -> Terms:
    """The course's derivation, step by step and term by term."""
    W_h, W_e, U, e, y = network.W_h, network.W_e, network.U, network.e, network.y
    T = len(y)
    h, predicted, _ = forward(network)
    terms = Terms(np.zeros((T, *U.shape)), np.zeros((T, T, *W_h.shape)), np.zeros((T, T, *W_e.shape)))
    for t in range(T):
        error = predicted[t].copy()
        error[y[t]] -= 1  # ŷ_t - y_t
        terms.U[t] = np.outer(error, h[t + 1])
        delta = U.T @ error
        for p in reversed(range(t + 1)):
            delta = delta * h[p + 1] * (1 - h[p + 1])  # through σ
            terms.W_h[t, p], terms.W_e[t, p] = np.outer(delta, h[p]), np.outer(delta, e[p])
            delta = W_h.T @ delta  # through W_h, to the step before
    return terms


def gradients(network: Network) -> tuple[Floats, Floats, Floats]:
    """∂L/∂U, ∂L/∂W_h and ∂L/∂W_e of the whole text, in one walk from the last step to the first.

    >>> network = Network.draw(hidden=4, steps=7, seed=0)
    >>> terms = by_hand(network)
    >>> sums = terms.U.sum(axis=0), terms.W_h.sum(axis=(0, 1)), terms.W_e.sum(axis=(0, 1))
    >>> all(np.allclose(one, other) for one, other in zip(gradients(network), sums))
    True
    """
    W_h, U, e, y = network.W_h, network.U, network.e, network.y
    h, error, _ = forward(network)
    error[np.arange(len(y)), y] -= 1  # ŷ - y, T x V
    dU, dW_h, dW_e = np.zeros_like(U), np.zeros_like(W_h), np.zeros_like(network.W_e)
    later = np.zeros(len(W_h))  # what the losses of later steps send back to h_t
    for t in reversed(range(len(y))):
        delta = (U.T @ error[t] + later) * h[t + 1] * (1 - h[t + 1])
        dU += np.outer(error[t], h[t + 1])
        dW_h += np.outer(delta, h[t])
        dW_e += np.outer(delta, e[t])
        later = W_h.T @ delta
    return dU, dW_h, dW_e


def learn(network: Network, updates: int, rate: float = 0.5) -> tuple[Network, list[float]]:
    """Plain gradient descent on the text: the network afterwards, and L/T before each update and at the end.

    >>> network, losses = learn(Network.draw(hidden=8, steps=6, seed=1), updates=200)
    >>> losses[0] > 1 > losses[-1]
    True
    """
    T, losses = len(network.y), [forward(network)[2] / len(network.y)]
    for _ in range(updates):
        dU, dW_h, dW_e = gradients(network)
        network = replace(
            network, U=network.U - rate * dU / T, W_h=network.W_h - rate * dW_h / T, W_e=network.W_e - rate * dW_e / T
        )
        losses.append(forward(network)[2] / T)
    return network, losses


def hello(text: str = "hello", hidden: int = 8, seed: int = 0) -> Network:
    """A network that is to read all letters of a word but the last, and say the next of each; a letter is one-hot."""
    letters = sorted(set(text))
    ids = np.array([letters.index(letter) for letter in text])
    chance = np.random.default_rng(seed)
    V = len(letters)
    return Network(
        chance.normal(0, 0.5, (hidden, hidden)),
        chance.normal(0, 0.5, (hidden, V)),
        chance.normal(0, 0.5, (V, hidden)),
        np.eye(V)[ids[:-1]],
        ids[1:],
    )


def main(text: str = "hello") -> None:
    """Teach a network to spell a word, by gradients derived by hand."""
    network, losses = learn(hello(text), updates=500)
    letters = sorted(set(text))
    said = "".join(letters[k] for k in forward(network)[1].argmax(axis=1))
    print(f"loss {losses[0]:.3f}, after {len(losses) - 1} updates {losses[-1]:.3f}: {text[0]} -> {said}")


if __name__ == "__main__":
    main()
