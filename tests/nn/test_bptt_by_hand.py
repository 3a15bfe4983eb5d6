"""Backpropagation through time derived by hand, in numpy, against autograd through `elman.nn.RNN`.

h_t = tanh(W_h h_{t-1} + W_e e_t + b1), y_t = softmax(U h_t + b2), L = -1/T Σ_t log y_t[target_t].
"""

import numpy as np
import numpy.typing as npt
import torch

from elman.nn import RNN

Array = npt.NDArray[np.float64]
T, E, H, V = 7, 3, 5, 6


def softmax(q: Array) -> Array:
    powers = np.exp(q - q.max())
    return powers / powers.sum()


def forward(e: Array, W_h: Array, W_e: Array, b1: Array, U: Array, b2: Array) -> tuple[list[Array], list[Array]]:
    """The states h_0 (zeros) to h_T, and the predictions y_1 to y_T."""
    h, y = [np.zeros(H)], []
    for e_t in e:
        h.append(np.tanh(W_h @ h[-1] + W_e @ e_t + b1))
        y.append(softmax(U @ h[-1] + b2))
    return h, y


def backward(e: Array, targets: Array, h: list[Array], y: list[Array], W_h: Array, U: Array) -> dict[str, Array]:
    """For each loss L_t the sum over all earlier steps p, as the chain rule has it; no work is shared."""
    dU, db2 = np.zeros((V, H)), np.zeros(V)
    dW_h, dW_e, db1 = np.zeros((H, H)), np.zeros((H, E)), np.zeros(H)
    for t in range(1, T + 1):
        dq = y[t - 1] - np.eye(V)[targets[t - 1]]  # dL_t/dq = y - one-hot
        dU += np.outer(dq, h[t])
        db2 += dq
        dh = U.T @ dq  # dL_t/dh_t
        for p in range(t, 0, -1):
            dz = (1 - h[p] ** 2) * dh  # through tanh: dL_t/dz_p
            dW_h += np.outer(dz, h[p - 1])
            dW_e += np.outer(dz, e[p - 1])
            db1 += dz
            dh = W_h.T @ dz  # one step further back: dL_t/dh_{p-1}
    return {"U": dU / T, "b2": db2 / T, "W_h": dW_h / T, "W_e": dW_e / T, "b1": db1 / T}


def test_hand_derived_gradients_equal_autograds() -> None:
    torch.manual_seed(3)
    rnn = RNN(E, H, backend="cells", dtype=torch.float64)
    top = torch.nn.Linear(H, V, dtype=torch.float64)
    e, targets = torch.randn(T, E, dtype=torch.float64), torch.randint(V, (T,))
    loss = torch.nn.functional.cross_entropy(top(rnn(e)[0]), targets)
    loss.backward()

    W_h, W_e = rnn.weight_hh_l0.detach().numpy(), rnn.weight_ih_l0.detach().numpy()
    b1 = (rnn.bias_ih_l0 + rnn.bias_hh_l0).detach().numpy()
    U, b2 = top.weight.detach().numpy(), top.bias.detach().numpy()
    h, y = forward(e.numpy(), W_h, W_e, b1, U, b2)
    by_hand = backward(e.numpy(), targets.numpy(), h, y, W_h, U)

    assert abs(-np.mean([np.log(y[t][targets[t]]) for t in range(T)]) - loss.item()) < 1e-12
    autograd = {
        "U": top.weight.grad,
        "b2": top.bias.grad,
        "W_h": rnn.weight_hh_l0.grad,
        "W_e": rnn.weight_ih_l0.grad,
        "b1": rnn.bias_ih_l0.grad,
    }
    for name, gradient in autograd.items():
        assert gradient is not None
        assert gradient.abs().max() > 1e-4, name
        np.testing.assert_allclose(by_hand[name], gradient.numpy(), atol=1e-8, rtol=0, err_msg=name)
