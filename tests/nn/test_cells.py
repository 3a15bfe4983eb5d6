"""Every cell against finite differences, against PyTorch's cells where there are such, and against its equation."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elman.nn import CELLS, Cell, ChoGRUCell, ElmanCell, GRUCell, LSTMCell, MUT1Cell, MUT2Cell, MUT3Cell

B, H = 3, 4
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in CELLS},
    "relu": ("elman", {"nonlinearity": "relu"}),
    "logistic": ("elman", {"nonlinearity": "logistic"}),
    "lstm projected": ("lstm", {"proj_size": 2}),
}


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("input_size", [3, H], ids=["other size", "same size"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_gradients_equal_finite_differences(variant: str, input_size: int, bias: bool) -> None:
    torch.manual_seed(1)
    name, options = VARIANTS[variant]
    cell = CELLS[name](input_size, H, bias, dtype=torch.float64, **options)
    names = [key for key, _ in cell.named_parameters()]
    x, state = double(2, B, input_size), [double(B, size) for size in cell.state_sizes]
    leaves = [t.detach().clone().requires_grad_() for t in (x, *state, *cell.parameters())]

    def two_steps(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        start, weights = rest[: len(state)], rest[len(state) :]
        running = cell.with_weights(**dict(zip(names, weights, strict=True)))
        return running(x[1], running(x[0], start))

    assert torch.autograd.gradcheck(two_steps, leaves)


@pytest.mark.parametrize("bias", [True, False])
def test_equal_to_torchs_cells(bias: bool) -> None:
    pairs: list[tuple[Cell, nn.Module]] = [
        (ElmanCell(3, H, bias), nn.RNNCell(3, H, bias)),
        (ElmanCell(3, H, bias, nonlinearity="relu"), nn.RNNCell(3, H, bias, nonlinearity="relu")),
        (LSTMCell(3, H, bias), nn.LSTMCell(3, H, bias)),
        (GRUCell(3, H, bias), nn.GRUCell(3, H, bias)),
    ]
    for ours, theirs in pairs:
        ours.load_state_dict(theirs.state_dict(), strict=True)
        x, state = torch.randn(B, 3), tuple(torch.randn(B, size) for size in ours.state_sizes)
        expected = theirs(x, state if len(state) == 2 else state[0])
        expected = expected if isinstance(expected, tuple) else (expected,)
        torch.testing.assert_close(ours(x, state), expected, atol=1e-6, rtol=0)


def sigma(x: float) -> float:
    return float(torch.sigmoid(torch.tensor(x, dtype=torch.float64)))


def tanh(x: float) -> float:
    return float(torch.tanh(torch.tensor(x, dtype=torch.float64)))


def scalar(kind: type[Cell], **weights: list[float]) -> float:
    """One step of a cell of size 1 with these weights, from x = 0.7 and h = -0.4."""
    cell = kind(1, 1, dtype=torch.float64)
    assert {name for name, _ in cell.named_parameters()} == set(weights)
    for name, values in weights.items():
        parameter = cell.get_parameter(name)
        parameter.data = torch.tensor(values, dtype=torch.float64).view_as(parameter)
    return cell(torch.tensor([[0.7]], dtype=torch.float64), (torch.tensor([[-0.4]], dtype=torch.float64),))[0].item()


def test_equations_by_hand() -> None:
    x, h = 0.7, -0.4
    b = [0.1, 0.2, 0.3]  # of r, z and h

    r, z = sigma(2 * x + 5 * h + 0.1), sigma(3 * x + 6 * h + 0.2)
    new = tanh(4 * x + 7 * (r * h) + 0.3)
    got = scalar(ChoGRUCell, weight_ih=[2, 3, 4], weight_hh=[5, 6, 7], bias_ih=b)
    assert got == pytest.approx(z * h + (1 - z) * new)

    z = sigma(3 * x + 0.2)
    new = tanh(7 * (r * h) + tanh(x) + 0.3)
    got = scalar(MUT1Cell, weight_ih=[2, 3], weight_hh=[5, 7], bias_ih=b)
    assert got == pytest.approx(new * z + h * (1 - z))

    z, r = sigma(3 * x + 6 * h + 0.2), sigma(x + 5 * h + 0.1)
    new = tanh(7 * (r * h) + 4 * x + 0.3)
    got = scalar(MUT2Cell, weight_ih=[3, 4], weight_hh=[5, 6, 7], bias_ih=b)
    assert got == pytest.approx(new * z + h * (1 - z))

    z, r = sigma(3 * x + 6 * tanh(h) + 0.2), sigma(2 * x + 5 * h + 0.1)
    new = tanh(7 * (r * h) + 4 * x + 0.3)
    got = scalar(MUT3Cell, weight_ih=[2, 3, 4], weight_hh=[5, 6, 7], bias_ih=b)
    assert got == pytest.approx(new * z + h * (1 - z))


def test_mutants_resize_an_input_of_another_size() -> None:
    assert MUT1Cell(3, H).weight_x.shape == MUT2Cell(3, H).weight_x.shape == (H, 3)
    assert MUT1Cell(H, H).weight_x is None
    assert MUT3Cell(3, H).weight_x is None, "MUT3 never adds the input itself"


def test_with_weights_leaves_the_cell_alone() -> None:
    cell, x = GRUCell(3, H), torch.randn(B, 3)
    before = cell(x)[0]
    other = cell.with_weights(weight_ih=torch.zeros(3 * H, 3))
    assert not torch.equal(other(x)[0], before)
    assert torch.equal(cell(x)[0], before)
    assert "weight_ih" in cell.state_dict()


def test_weights_begin_within_one_over_root_of_hidden_size() -> None:
    cell = LSTMCell(30, 100)
    assert 0.09 < max(p.abs().max().item() for p in cell.parameters()) <= 0.1


def test_wrong_input_raises() -> None:
    cell = LSTMCell(3, H)
    with pytest.raises(ValueError, match="must be B x 3, got"):
        cell(torch.zeros(B, 4))
    with pytest.raises(RuntimeError, match="expected a state of"):
        cell(torch.zeros(B, 3), (torch.zeros(B, H),))
    with pytest.raises(ValueError, match="unknown nonlinearity 'sin'"):
        ElmanCell(3, H, nonlinearity="sin")
    with pytest.raises(ValueError, match="smaller than hidden_size"):
        LSTMCell(3, H, proj_size=H)
    with pytest.raises(ValueError, match="greater than zero"):
        GRUCell(0, H)
