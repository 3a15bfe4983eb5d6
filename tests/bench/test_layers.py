"""What the benchmark of layers counts, compares and reports."""

import json
import math

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pad_packed_sequence

from elman import kernels
from elman.bench import layers, machine
from elman.bench.layers import JaxLayer, LayerBatch, LayerCase, LayerRow, LayersReport
from elman.errors import RunError, UserError

compiled = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels are not installed")


def test_operations_of_a_known_shape() -> None:
    padded = LayerCase("lstm", hidden=128, batch=32, steps=64)
    assert padded.flops == 2 * (32 * 64) * 4 * 128 * (128 + 128)
    both = LayerCase("rnn", hidden=10, batch=2, steps=3, directions=2, backward=True)
    assert both.flops == 3 * 2 * (2 * (2 * 3) * 1 * 10 * 20)


def test_padding_is_not_counted() -> None:
    case = LayerCase("gru", hidden=8, batch=50, steps=9, packed=True)
    lengths = case.lengths
    assert lengths.min() >= 1
    assert lengths.max() <= 9
    assert lengths.unique().numel() == 9
    assert torch.equal(lengths, case.lengths)  # the same in every run
    assert case.real_steps == int(lengths.sum()) < 50 * 9
    assert case.flops == 2 * case.real_steps * 3 * 8 * 16
    given = LayerBatch.of(case).input
    assert isinstance(given, PackedSequence)
    assert len(given.data) == case.real_steps


def test_all_shapes_that_users_have() -> None:
    found = layers.cases()
    assert len(set(found)) == 3 * 2 * 4 * 2 * 2
    assert {(case.hidden, case.batch, case.steps) for case in found} == set(layers.SHAPES)
    assert len(layers.cases(quick=True)) < len(found)
    assert {case.cell for case in layers.cases(["GRU"])} == {"gru"}
    with pytest.raises(UserError, match="did you mean 'lstm'"):
        layers.cases(["lsmt"])


def test_means_are_geometric_and_by_group() -> None:
    wide, narrow = LayerCase("gru", 100, 2, 3), LayerCase("gru", 50, 2, 3)
    other = LayerCase("gru", 50, 2, 3, packed=True)
    rows = [
        LayerRow(wide, {"torch": 8.0, "elman": 1.0}),
        LayerRow(narrow, {"torch": 2.0, "elman": 1.0}),
        LayerRow(other, {"torch": 3.0, "elman": 1.0, "jax": 6.0}),
    ]
    report = LayersReport({}, peak=1.0, rows=rows, product={})
    assert report.means() == pytest.approx({("gru", 1, False, False): 4.0, ("gru", 1, True, False): 3.0})
    assert report.means("jax") == pytest.approx({("gru", 1, True, False): 6.0})
    assert [mean.get("jax") for mean in report.record()["means"]] == [None, pytest.approx(6.0)]


@compiled
def test_a_report_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "SHAPES", ((12, 3, 5), (8, 2, 4)))
    monkeypatch.setattr(machine, "PRODUCT_SIZE", 64)
    seen = []

    def follow(rows, total):
        assert total == 32
        for row in rows:
            seen.append(row)
            yield row

    report = layers.run(["rnn", "lstm"], seconds=0.0, threads=1, follow=follow)
    assert report.rows == seen
    record = json.loads(json.dumps(report.record()))
    assert len(record["rows"]) == 32
    assert len(record["means"]) == 16
    assert record["machine"]["threads"] == 1
    for row in record["rows"]:
        assert row["gflops"]["elman"] == pytest.approx(row["flops"] / row["seconds"]["elman"] / 1e9)
        assert row["ratio"]["torch"] == pytest.approx(row["seconds"]["torch"] / row["seconds"]["elman"])
        assert row["of_peak"] == pytest.approx(row["gflops"]["elman"] / record["peak_gflops"])
        assert row["ratio"]["torch"] > 0
    assert set(record["product_microseconds"]) == {"alone", "torch", "elman"}
    assert all(0 < found["best"] <= found["median"] for found in record["product_microseconds"].values())


@compiled
def test_layers_that_differ_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "TOLERANCE", 0.0)
    with pytest.raises(RunError, match="differ"):
        layers.measure(LayerCase("gru", 8, 2, 4), seconds=0.0)


@compiled
def test_backward_goes_through_the_input_and_every_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = LayerBatch.of(LayerCase("lstm", 6, 4, 5, directions=2, packed=True, backward=True))
    counts = []
    real = torch.autograd.grad
    monkeypatch.setattr(
        torch.autograd, "grad", lambda output, leaves, given: counts.append(len(real(output, leaves, given)))
    )
    for layer in batch.layers():
        batch.work(layer)()
    assert counts == [1 + 8, 1 + 8]


@pytest.mark.parametrize("cell", layers.LAYERS)
@pytest.mark.parametrize("packed", [False, True])
def test_the_layer_in_jax_is_the_same_layer(cell: str, packed: bool) -> None:
    pytest.importorskip("jax")
    batch = LayerBatch.of(LayerCase(cell, 6, 5, 7, directions=2, packed=packed, backward=True))
    theirs, _ = batch.layers()
    layer = JaxLayer(batch, theirs)
    output = theirs(batch.input)[0]
    expected = pad_packed_sequence(output, total_length=7)[0] if packed else output
    found = np.asarray(layer.output(layer.x, layer.weights))
    np.testing.assert_allclose(found, expected.detach().numpy(), atol=1e-5)
    value, (d_x, d_weights) = layer.work()()
    assert math.isfinite(float(value))
    assert d_x.shape == (7, 5, 6)
    assert [len(direction) for direction in d_weights] == [4, 4]
