"""Weights as int8: how close they are, how small, through a file and back, and damaged in every way."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from elman import kernels
from elman.errors import UserError
from elman.runtime import Engine, dequantise, quantise
from elman.runtime.weights import arrays_of
from tests.runtime.networks import VOCABULARY, instruction_set, make


def log_probs(engine: Engine, length: int = 400) -> np.ndarray:
    ids = np.random.default_rng(0).integers(0, engine.vocabulary, (4, length + 1))
    return engine.log_probs(ids[:, :-1], ids[:, 1:])[0]


def test_a_row_is_off_by_half_a_step_at_most() -> None:
    weight = torch.randn(50, 30) * torch.logspace(-6, 6, 50).unsqueeze(1)
    weight[7] = 0
    arrays = quantise({"weight": weight})
    assert arrays["weight"].dtype == np.int8
    assert np.abs(arrays["weight"].astype(int)).max(axis=1).tolist() == [127 if row != 7 else 0 for row in range(50)]
    error = np.abs(dequantise(arrays)["weight"] - weight.numpy())
    assert (error <= arrays["weight.scale"][:, None] * 0.501).all()


def test_through_a_file_and_back(tmp_path: Path) -> None:
    network = make("lstm", hidden=128, embedding=64, layers=2, tied=True)
    arrays = quantise(arrays_of(network))
    save_file(arrays, tmp_path / "int8.safetensors")
    save_file(arrays_of(network), tmp_path / "float.safetensors")
    small, large = ((tmp_path / f"{name}.safetensors").stat().st_size for name in ("int8", "float"))
    assert small < 0.28 * large
    again = Engine.of_arrays(
        make("lstm", hidden=128, embedding=64, layers=2, tied=True, seed=9), load_file(tmp_path / "int8.safetensors")
    )
    assert again.int8
    assert np.array_equal(log_probs(again), log_probs(Engine.of(network, int8=True)))


def test_the_architecture_alone_is_enough() -> None:
    network = make("gru", layers=2)
    arrays = arrays_of(network)
    empty = make("gru", layers=2, seed=5).to("meta")
    assert np.array_equal(log_probs(Engine.of_arrays(empty, arrays)), log_probs(Engine.of(network)))


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_perplexity_hardly_changes(cell: str) -> None:
    network = make(cell, hidden=64, layers=2, sharpness=2.0)
    expected, found = log_probs(Engine.of(network)), log_probs(Engine.of(network, int8=True))
    assert abs(np.exp(expected.mean() - found.mean()) - 1) < 0.01
    assert not np.array_equal(expected, found)


def test_instruction_sets_agree() -> None:
    """The integers are exact everywhere; what is left is the rounding of float32 between the products."""
    network = make("lstm", hidden=70, layers=2)
    found = []
    for name in kernels.instruction_sets():
        with instruction_set(name):
            found.append(log_probs(Engine.of(network, int8=True), length=12))
    for each in found[1:]:
        np.testing.assert_allclose(each, found[0], atol=0.05)


def test_integer_products_are_exact_at_their_largest() -> None:
    """Weights and activations of 127 everywhere, with every sign: nothing saturates, nothing wraps."""
    signs = torch.tensor([1.0, -1.0])[torch.randint(0, 2, (VOCABULARY, 64), generator=torch.manual_seed(3))]
    network = make("rnn", hidden=64, embedding=0, nonlinearity="relu")
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
        network.bodies[0].layers[0].bias_ih_l0.fill_(2.0)  # h is 2 everywhere: 127 in bytes
        network.softmax.weight.copy_(signs)
    expected = torch.log_softmax(2.0 * signs.double().sum(dim=1), dim=0).numpy()
    for name in kernels.instruction_sets():
        with instruction_set(name):
            engine = Engine.of(network, int8=True)
            found, _ = engine.step([0] * 5, engine.start(5))
            np.testing.assert_allclose(found, np.tile(expected, (5, 1)), rtol=1e-5, atol=1e-4)


def damaged(change: Any) -> dict[str, Any]:
    arrays = quantise(arrays_of(make("lstm")))
    change(arrays)
    return arrays


W = "bodies.0.layers.0.weight_hh_l0"


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.pop(W),
        lambda a: a.pop(W + ".scale"),
        lambda a: a.update({W: a[W][:-1]}),
        lambda a: a.update({W: a[W].T.copy()}),
        lambda a: a.update({W: a[W].astype(np.int16)}),
        lambda a: a.update({W: a[W].astype(np.float32)}),
        lambda a: a.update({W: np.full_like(a[W], -128)}),
        lambda a: a.update({W + ".scale": a[W + ".scale"][:-1]}),
        lambda a: a.update({W + ".scale": a[W + ".scale"].astype(np.float64)}),
        lambda a: a.update({W + ".scale": np.full_like(a[W + ".scale"], np.nan)}),
        lambda a: a.update({W + ".scale": np.full_like(a[W + ".scale"], np.inf)}),
        lambda a: a.update({W + ".scale": -a[W + ".scale"]}),
        lambda a: a.update({"softmax.bias": np.full(VOCABULARY, np.nan, dtype=np.float32)}),
        lambda a: a.update({"softmax.bias": np.zeros(VOCABULARY - 1, dtype=np.float32)}),
        lambda a: a.update({"more": np.zeros(3, dtype=np.float32)}),
        lambda a: a.clear(),
    ],
)
def test_damaged_arrays_are_refused(change: Any) -> None:
    with pytest.raises(UserError):
        Engine.of_arrays(make("lstm"), damaged(change))


def test_weights_that_are_not_finite() -> None:
    network = make("lstm")
    with torch.no_grad():
        network.softmax.weight[3, 3] = float("inf")
    for int8 in (False, True):
        with pytest.raises(UserError, match="not finite"):
            Engine.of(network, int8=int8)
