"""Dynamic evaluation beside its equation in NumPy."""

import numpy as np
import pytest
import torch
from torch import nn

from elman.nn.dynamic import EPSILON, DynamicEvaluation, SquaredGradients


def test_updates_are_the_equation() -> None:
    torch.manual_seed(1)
    network = nn.Linear(3, 2)
    rms = {"weight": torch.rand(2, 3), "bias": torch.zeros(2)}
    rms["weight"][0, 0] = 40.0  # so large that the decay is bounded
    mean = float((rms["weight"].mean() + 0.0) / 2)
    first = {name: weight.detach().numpy().copy() for name, weight in network.named_parameters()}
    now = {name: weight.copy() for name, weight in first.items()}
    dynamic = DynamicEvaluation(network, rms, rate=0.01, decay=0.2)
    for step in range(3):
        network(torch.full((3,), float(step + 1))).pow(2).sum().backward()
        gradients = {name: weight.grad.numpy().copy() for name, weight in network.named_parameters()}  # type: ignore[union-attr]
        dynamic.update()
        for name, weight in network.named_parameters():
            r = rms[name].numpy()
            pull = np.minimum(1.0, 0.2 * r / mean)
            now[name] += pull * (first[name] - now[name]) - 0.01 * gradients[name] / (r + EPSILON * mean)
            np.testing.assert_allclose(weight.detach().numpy(), now[name], rtol=1e-4, atol=1e-5)
            assert weight.grad is None
    dynamic.keep()
    dynamic.restore()
    np.testing.assert_allclose(network.weight.detach().numpy(), now["weight"], rtol=1e-4, atol=1e-5)


def test_a_weight_without_a_gradient_is_drawn_back_alone() -> None:
    network = nn.Linear(1, 1, bias=False)
    dynamic = DynamicEvaluation(network, {"weight": torch.ones(1, 1)}, rate=0.1, decay=0.5)
    trained = float(network.weight.detach())
    network.weight.data.add_(1.0)
    dynamic.update()
    assert float(network.weight.detach()) == pytest.approx(trained + 0.5)


def test_gradients_of_nothing_move_nothing() -> None:
    network = nn.Linear(2, 2)
    rms = SquaredGradients(network).rms()
    dynamic = DynamicEvaluation(network, rms, rate=1.0, decay=1.0)
    before = network.weight.detach().clone()
    network(torch.zeros(2)).sum().mul(0.0).backward()
    dynamic.update()
    assert torch.equal(network.weight.detach(), before)
