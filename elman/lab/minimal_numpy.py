"""The minimal character model: a plain recurrent network in NumPy, forward and backward pass by hand.

python -m elman.lab.minimal_numpy input.txt

h_t = tanh(W_xh x_t + W_hh h_t-1 + b_h),  p_t = softmax(W_hy h_t + b_y); gradients are clipped at 5, Adagrad learns.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, Any]


def draw_weights(vocabulary: int, hidden: int, chance: np.random.Generator) -> Arrays:
    """Small random matrices and zero biases."""
    return {
        "W_xh": chance.normal(size=(hidden, vocabulary)) * 0.01,
        "W_hh": chance.normal(size=(hidden, hidden)) * 0.01,
        "W_hy": chance.normal(size=(vocabulary, hidden)) * 0.01,
        "b_h": np.zeros(hidden),
        "b_y": np.zeros(vocabulary),
    }


def loss_and_gradients(w: Arrays, inputs: list[int], targets: list[int], h: Any) -> tuple[float, Arrays, Any]:
    """The loss of a window, its gradients, and the hidden state after it."""
    states, chances, loss = [h], [], 0.0
    for x, y in zip(inputs, targets, strict=True):  # forward pass
        h = np.tanh(w["W_xh"][:, x] + w["W_hh"] @ h + w["b_h"])  # a one-hot input takes a column
        logits = w["W_hy"] @ h + w["b_y"]
        p = np.exp(logits - logits.max())
        p /= p.sum()
        loss -= np.log(p[y])
        states.append(h)
        chances.append(p)
    gradients = {name: np.zeros_like(value) for name, value in w.items()}
    dh_next = np.zeros_like(h)
    for t in reversed(range(len(inputs))):  # backward pass
        dy = chances[t].copy()
        dy[targets[t]] -= 1
        gradients["W_hy"] += np.outer(dy, states[t + 1])
        gradients["b_y"] += dy
        dh = w["W_hy"].T @ dy + dh_next
        d = (1 - states[t + 1] ** 2) * dh  # through tanh
        gradients["b_h"] += d
        gradients["W_xh"][:, inputs[t]] += d
        gradients["W_hh"] += np.outer(d, states[t])
        dh_next = w["W_hh"].T @ d
    for gradient in gradients.values():
        np.clip(gradient, -5, 5, out=gradient)
    return loss, gradients, h


def adagrad(w: Arrays, gradients: Arrays, memory: Arrays, rate: float) -> None:
    """Each weight moves by its gradient over the root of the squares of all its gradients so far."""
    for name, gradient in gradients.items():
        memory[name] += gradient**2
        w[name] -= rate * gradient / (np.sqrt(memory[name]) + 1e-10)


def sample(w: Arrays, h: Any, first: int, count: int, chance: np.random.Generator) -> list[int]:
    """Write some characters: each is drawn, then read."""
    ids = [first]
    for _ in range(count):
        h = np.tanh(w["W_xh"][:, ids[-1]] + w["W_hh"] @ h + w["b_h"])
        logits = w["W_hy"] @ h + w["b_y"]
        p = np.exp(logits - logits.max())
        ids.append(int(np.searchsorted(np.cumsum(p / p.sum()), chance.random())))  # inverse transform
    return ids[1:]


def windows(ids: list[int], steps: int) -> Iterator[tuple[bool, list[int], list[int]]]:
    """A text in windows, endlessly: whether one begins the text, its characters, and the next of each."""
    while True:
        for start in range(0, len(ids) - steps - 1, steps):
            yield start == 0, ids[start : start + steps], ids[start + 1 : start + steps + 1]


def train(w: Arrays, ids: list[int], updates: int, steps: int = 25, rate: float = 0.1) -> Iterator[float]:
    """Learn window after window, the hidden state carried along; the loss of each."""
    memory, h = {name: np.zeros_like(value) for name, value in w.items()}, np.zeros_like(w["b_h"])
    for _, (begins, inputs, targets) in zip(range(updates), windows(ids, steps), strict=False):
        loss, gradients, h = loss_and_gradients(w, inputs, targets, h * (not begins))
        adagrad(w, gradients, memory, rate)
        yield loss


def main(text: str, updates: int = 10_000) -> None:
    """Train on a text, and write some now and then."""
    characters, chance = sorted(set(text)), np.random.default_rng(0)
    ids = [characters.index(one) for one in text]
    w, smooth = draw_weights(len(characters), 100, chance), -np.log(1 / len(characters)) * 25
    for step, loss in enumerate(train(w, ids, updates), start=1):
        smooth = 0.999 * smooth + 0.001 * loss
        if step % 1000 == 0:
            written = sample(w, np.zeros(100), ids[0], 200, chance)
            print(f"--- {step}: loss {smooth:.3f}\n{''.join(characters[one] for one in written)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).read_text(encoding="utf-8"))
