"""Single steps are what a sequence of length one gives."""

import pytest
import torch

from elman.nn.recurrent import Recurrent


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru", "gru-cho"])
@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
@pytest.mark.parametrize("bias", [True, False])
@torch.no_grad()
def test_a_step_is_a_sequence_of_length_one(cell: str, connections: str, bias: bool) -> None:
    torch.manual_seed(3)
    layer = Recurrent(cell, 6, 6, num_layers=2, connections=connections, bias=bias).eval()
    state = tuple(torch.randn(2, 4, size) for size in layer.state_sizes)
    x = torch.randn(4, 6)
    output, after = layer.step(x, state)
    right, final = layer(x.unsqueeze(0), state if len(state) > 1 else state[0])
    assert torch.allclose(output, right[0], atol=1e-5)
    for part, expected in zip(after, final if isinstance(final, tuple) else (final,), strict=True):
        assert torch.allclose(part, expected, atol=1e-5)


def test_a_step_can_be_differentiated() -> None:
    layer = Recurrent("gru", 3, 5)
    x = torch.randn(2, 3, requires_grad=True)
    output, _ = layer.step(x, (torch.zeros(1, 2, 5),))
    output.sum().backward()
    assert x.grad is not None
    assert x.grad.abs().sum() > 0
