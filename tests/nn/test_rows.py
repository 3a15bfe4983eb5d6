"""Products of a few rows, and single steps: the same as PyTorch's, by whichever way."""

import pytest
import torch
from torch import nn

from elman import kernels
from elman.nn import rows
from elman.nn.recurrent import Recurrent

ISAS = kernels.instruction_sets() or [None]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, rows.MOST_ROWS, rows.MOST_ROWS + 1])
@pytest.mark.parametrize(("units", "size"), [(1, 1), (9, 16), (64, 37)])
@torch.no_grad()
def test_the_product_is_that_of_pytorch(
    isa: str | None, count: int, units: int, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "FEW", 0)
    before = kernels.instruction_set()
    if isa is not None:
        kernels.use(isa)
    try:
        x, weight, bias = torch.randn(count, size), torch.randn(units, size), torch.randn(units)
        for given in (bias, None):
            right = nn.functional.linear(x, weight, given)
            torch.testing.assert_close(rows.linear(x, weight, given), right, atol=1e-4, rtol=1e-4)
    finally:
        if before is not None:
            kernels.use(before)


def test_gradients_go_through_pytorch() -> None:
    x, weight = torch.randn(2, 3, requires_grad=True), torch.randn(4, 3)
    assert rows.linear(x, weight).requires_grad
    with torch.no_grad():
        assert rows.linear(x.double(), weight.double()).dtype == torch.float64
        with pytest.raises(RuntimeError):
            rows.linear(x, weight[:, :2].contiguous())


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
