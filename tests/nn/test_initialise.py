"""Initialisations by name, on drop-ins, cells and `Recurrent`."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from elman.nn import GRU, LSTM, RNN, LSTMCell, MUT1Cell, Recurrent, initialise

H = 4
MODULES: dict[str, Callable[[], nn.Module]] = {
    "layer": lambda: LSTM(3, H, num_layers=2, bidirectional=True),
    "torch layer": lambda: nn.GRU(3, H),
    "cell": lambda: MUT1Cell(3, H),
    "recurrent, fused": lambda: Recurrent("lstm", 3, H, 2),
    "recurrent, stepped": lambda: Recurrent("gru-cho", 3, H, 2, bidirectional=True),
    "inside another": lambda: nn.ModuleDict({"encoder": GRU(3, H), "top": nn.Linear(H, 2)}),
}


def blocks(module: nn.Module) -> list[Tensor]:
    weights = [p.detach() for name, p in module.named_parameters() if "weight_hh" in name]
    return [block for weight in weights for block in weight.split(H)]


@pytest.mark.parametrize("kind", MODULES)
def test_orthogonal(kind: str) -> None:
    module = MODULES[kind]()
    initialise(module, "orthogonal")
    assert blocks(module)
    for block in blocks(module):
        torch.testing.assert_close(block @ block.T, torch.eye(H), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", MODULES)
def test_identity(kind: str) -> None:
    module = MODULES[kind]()
    initialise(module, "identity")
    assert blocks(module)
    assert all(torch.equal(block, torch.eye(H)) for block in blocks(module))


def test_an_identity_network_with_relu_sums_its_positive_input() -> None:
    layer = RNN(1, 1, nonlinearity="relu")
    initialise(layer, "identity")
    nn.init.ones_(layer.weight_ih_l0)
    assert layer(torch.tensor([[1.0], [2.0], [3.0]]))[0].flatten().tolist() == [1, 3, 6]


def test_forget_bias_reaches_every_lstm_and_nothing_else() -> None:
    for module in (LSTM(3, H, 2, bidirectional=True), LSTMCell(3, H), Recurrent("lstm", 3, H, 2)):
        before = {name: p.detach().clone() for name, p in module.named_parameters()}
        initialise(module, forget_bias=1.5)
        for name, p in module.named_parameters():
            if "bias" in name:
                assert (p[H : 2 * H] == (1.5 if "bias_ih" in name else 0)).all()
                assert torch.equal(p[:H], before[name][:H])
                assert torch.equal(p[2 * H :], before[name][2 * H :])
            else:
                assert torch.equal(p, before[name])


def test_uniform_changes_nothing() -> None:
    layer = GRU(3, H)
    before = layer.weight_hh_l0.detach().clone()
    initialise(layer, "uniform", forget_bias=1.0)
    assert torch.equal(layer.weight_hh_l0, before)


def test_an_unknown_name_raises() -> None:
    with pytest.raises(ValueError, match="unknown initialisation 'xavier', known are: uniform, orthogonal"):
        initialise(GRU(3, H), "xavier")
