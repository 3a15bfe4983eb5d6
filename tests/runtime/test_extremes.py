"""Cell states and gates far out: layers, engine, encoder and decoder are what float64 says, in float32 and in int8."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import elman.nn
from elman import kernels
from elman.nn.pooling import POOLINGS
from elman.nn.recurrent import Recurrent
from elman.ragged import Ragged
from elman.runtime import CompiledTranslator, Encoder, Engine, State, quantise
from elman.runtime.quantise import dequantise
from elman.runtime.weights import arrays_of
from tests.nn import translators
from tests.runtime.networks import make

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

STATES = [sign * size for size in (20.0, 44.0, 100.0, 1e4) for sign in (1, -1)]
GATES = [sign * size for size in (1.0, 30.0, 90.0) for sign in (1, -1)]
BLOCKS = {"rnn": 1, "lstm": 4, "gru": 3}
H_N = 2.0
"""The GRU's W_hn h + b_hn."""


@pytest.fixture(params=kernels.instruction_sets(), autouse=True)
def isa(request: pytest.FixtureRequest) -> Iterator[None]:
    before = kernels.instruction_set()
    kernels.use(request.param)
    yield
    kernels.use(str(before))


def units(cell: str) -> tuple[Tensor, Tensor]:
    """A unit for every large state and every sum of each gate in turn, the other gates at 1: G x H, and H."""
    count = BLOCKS[cell]
    made = [
        ([gate if block == which else 1.0 for block in range(count)], state)
        for which in range(count)
        for state in STATES
        for gate in GATES
    ]
    return torch.tensor([gates for gates, _ in made]).t(), torch.tensor([state for _, state in made])


def fill(layers: nn.Module, cell: str, gates: Tensor) -> None:
    """No weights: the biases alone make the gates."""
    with torch.no_grad():
        for name, parameter in layers.named_parameters():
            parameter.zero_()
            if "bias_ih" in name:
                parameter.copy_(gates.flatten())
            elif "bias_hh" in name and cell == "gru":
                parameter[-gates.shape[1] :] = H_N


def expected(cell: str, gates: Tensor, state: Tensor) -> list[Tensor]:
    """h and c after a step, in float64; the GRU's state is its h, the LSTM's its c."""
    gates, state = gates.double(), state.double()
    if cell == "rnn":
        return [gates[0].tanh()]
    if cell == "gru":
        r, z, n = gates[0].sigmoid(), gates[1].sigmoid(), gates[2]
        n = (n + r * H_N).tanh()
        return [(1 - z) * n + z * state]
    i, f, g, o = gates
    c = f.sigmoid() * state + i.sigmoid() * g.tanh()
    return [o.sigmoid() * c.tanh(), c]


def assert_near(found: Tensor | np.ndarray, right: list[Tensor], rtol: float = 2e-6) -> None:
    found = torch.as_tensor(found).double().flatten()
    torch.testing.assert_close(found, torch.cat(right), rtol=rtol, atol=1e-38)  # the least with all digits


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("cell", BLOCKS)
def test_layers(cell: str, dtype: torch.dtype) -> None:
    gates, state = units(cell)
    layer = getattr(elman.nn, cell.upper())(1, len(state), backend="compiled", dtype=dtype)
    fill(layer, cell, gates)
    first = state.to(dtype).view(1, 1, -1)
    given = (torch.zeros_like(first), first) if cell == "lstm" else first
    _, after = layer(torch.zeros(1, 1, 1, dtype=dtype), given)
    assert_near(torch.cat(after if cell == "lstm" else [after]).detach(), expected(cell, gates, state))


@pytest.mark.parametrize("int8", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("cell", BLOCKS)
def test_engine(cell: str, int8: bool) -> None:
    gates, state = units(cell)
    network = make(cell, hidden=len(state))
    fill(network.bodies[0], cell, gates)
    engine = Engine.of(network, int8=int8)
    first = torch.cat([torch.zeros_like(state), state] if cell == "lstm" else [state])
    for rows in (1, 3):
        begin = State(first.repeat(rows, 1).numpy(), engine.start(1).engine)
        _, after = engine.step([1] * rows, begin)
        for row in after.numbers:
            assert_near(row.copy(), expected(cell, gates, state))


@pytest.mark.parametrize("int8", [False, True], ids=["float32", "int8"])
@pytest.mark.parametrize("cell", BLOCKS)
def test_decoder(cell: str, int8: bool) -> None:
    gates, state = units(cell)
    network = translators.network(cell=cell, hidden=len(state), layers=1).float()
    fill(network.decoder.body, cell, gates)
    arrays = arrays_of(network)
    decoder = CompiledTranslator.of(network, arrays=quantise(arrays) if int8 else arrays)
    begin = decoder.read(Ragged.of([[2, 3]]))
    first = torch.cat([torch.zeros_like(state), state] if cell == "lstm" else [state])
    _, after = decoder.step(np.array([1]), begin._replace(numbers=first.view(1, -1).numpy()))
    assert_near(after.numbers[0, : len(first)], expected(cell, gates, state))


@pytest.mark.parametrize("steps", [20, 44, 100, 10_000])
@pytest.mark.parametrize("int8", [False, True], ids=["float32", "int8"])
def test_encoder(int8: bool, steps: int) -> None:
    """It begins at zero, so the cell is filled up first, by one a step; then come the gates."""
    made = [(gate, sign) for gate in GATES for sign in (1.0, -1.0)]
    full = torch.tensor([[30.0, 30.0, 30.0 * sign, 30.0] for _, sign in made]).t()  # 4 x H
    last = torch.tensor([[-30.0, 30.0, 1.0, gate] for gate, _ in made]).t()
    network = nn.ModuleDict({"body": Recurrent("lstm", 2, len(made))})
    fill(network["body"], "lstm", torch.zeros_like(full))
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "weight_ih" in name:
                parameter.copy_(torch.stack([full.flatten(), last.flatten()], dim=1))
    arrays = arrays_of(network)
    if int8:
        arrays = quantise(arrays)
        weight = next(torch.from_numpy(array) for name, array in dequantise(arrays).items() if "weight_ih" in name)
        full, last = weight[:, 0].view_as(full), weight[:, 1].view_as(last)
    c = torch.zeros(len(made), dtype=torch.float64)
    for gates in (*[full] * steps, last):
        h, c = expected("lstm", gates, c)
    body = network["body"]
    assert isinstance(body, Recurrent)
    text = np.repeat([[1.0, 0.0], [0.0, 1.0]], [steps, 1], axis=0)
    found = Encoder.of(network, body, arrays=arrays)(text, [steps + 1])
    assert_near(found[-1], [h], rtol=2e-5 if int8 else 2e-6)  # int8: a row's scale is rounded, and a gate of 90 with it


def test_a_nan_reaches_the_maximum_of_a_text() -> None:
    body = Recurrent("rnn", 3, 5)
    network = nn.ModuleDict({"body": body})
    encoder = Encoder.of(network, body, pooling=POOLINGS["max"](body))
    for place in range(3):
        text = np.zeros((3, 3), np.float32)
        text[place, 1] = np.nan
        assert np.isnan(encoder(text, [3])).all(), f"at step {place}"
