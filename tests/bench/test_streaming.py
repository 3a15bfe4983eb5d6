"""That every writer runs the same network, and what is reported of it."""

import json

import numpy as np
import pytest
import torch

from elman import kernels
from elman.bench import streaming
from elman.bench.streaming import (
    FLOAT,
    INT8,
    LSTM,
    ONNX,
    CellLoop,
    LSTMLoop,
    OnnxLoop,
    StreamingCase,
    StreamingReport,
    StreamingRow,
)
from elman.runtime import Engine

compiled = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels are not installed")
CASE = StreamingCase(hidden=24, layers=2, streams=3)
IDS = np.array([[5, 0, 95], [7, 7, 1], [0, 90, 2]])  # T x B


@torch.no_grad()
def expected() -> np.ndarray:
    """The log-probabilities of the network itself: T x B x V."""
    network = CASE.network()
    hidden, _ = network.hidden(torch.from_numpy(IDS.T.copy()))
    return network.softmax.log_probs(hidden).transpose(0, 1).numpy()


@pytest.mark.parametrize("kind", ["LSTMLoop", "CellLoop", "OnnxLoop"])
@torch.no_grad()
def test_a_peer_runs_the_same_network(kind: str) -> None:
    network = CASE.network()
    if kind == "OnnxLoop":
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")
        loop: streaming.Loop = OnnxLoop(network, CASE.streams, threads=1)
    else:
        loop = {"LSTMLoop": LSTMLoop, "CellLoop": CellLoop}[kind](network)
    first, state = loop.start(CASE.streams)
    for ids, right in zip(IDS, expected(), strict=True):
        logits, state = loop.step(torch.from_numpy(ids) if isinstance(first, torch.Tensor) else ids, state)
        found = torch.as_tensor(logits).log_softmax(dim=-1).numpy()
        np.testing.assert_allclose(found, right, atol=1e-5)
    drawn = np.asarray(loop.draw(logits))
    assert drawn.shape == (CASE.streams,)
    assert ((drawn >= 0) & (drawn < streaming.VOCABULARY)).all()


@torch.no_grad()
def test_peers_draw_by_probability() -> None:
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    network = CASE.network()
    logits = torch.full((4000, streaming.VOCABULARY), -30.0)
    logits[:, 0], logits[:, -1] = np.log(0.25), np.log(0.75)
    for drawn in (LSTMLoop(network).draw(logits).numpy(), OnnxLoop(network, 1, 1).draw(logits.numpy())):
        assert set(drawn.tolist()) == {0, streaming.VOCABULARY - 1}
        assert (drawn == 0).mean() == pytest.approx(0.25, abs=0.05)


@compiled
def test_the_engine_runs_the_same_network() -> None:
    engine = Engine.of(CASE.network())
    state = engine.start(CASE.streams)
    for ids, right in zip(IDS, expected(), strict=True):
        log_probs, state = engine.step(ids, state)
        np.testing.assert_allclose(log_probs, right, atol=1e-5)


def test_bytes_of_weights() -> None:
    H, V = 128, streaming.VOCABULARY
    one = StreamingCase(H, layers=1, streams=1).weight_bytes()
    assert one == 4 * (4 * H * H + V * H + V + 4 * H)
    two = StreamingCase(H, layers=2, streams=1).weight_bytes()
    assert two - one == 4 * (2 * 4 * H * H + 4 * H)
    assert StreamingCase(512, 2, 1).weight_bytes(int8=True) < 0.26 * StreamingCase(512, 2, 1).weight_bytes()
    assert StreamingCase(H, 1, 16).weight_bytes() < 1.1 * one  # the matrices are read once for all streams


def test_fractions_and_ratios() -> None:
    case = StreamingCase(128, 1, 16)
    speeds = {LSTM: 100.0, FLOAT: 32_000.0, INT8: 64_000.0}
    row = StreamingRow(case, speeds, {FLOAT: 10.0, INT8: 10.0})
    assert row.of_bandwidth[FLOAT] == pytest.approx(2000 * case.weight_bytes() / 10e9)
    assert row.ratio(FLOAT, LSTM) == pytest.approx(320)
    assert row.ratio(FLOAT, ONNX) is None
    record = StreamingReport({}, [row], ["a line"]).record()
    assert record["rows"][0]["ratio"][INT8] == {LSTM: pytest.approx(640)}
    assert record["rows"][0]["microseconds_a_token"][LSTM] == pytest.approx(10_000)


@compiled
def test_a_report_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HIDDEN", (16,))
    monkeypatch.setattr(streaming, "STREAMS", (1, 2))
    report = streaming.run(seconds=0.01, threads=1)
    record = json.loads(json.dumps(report.record()))
    assert [(row["hidden"], row["layers"], row["streams"]) for row in record["rows"]] == [
        (16, 1, 1),
        (16, 1, 2),
        (16, 2, 1),
        (16, 2, 2),
    ]
    for row in record["rows"]:
        assert {LSTM, streaming.CELL, FLOAT, INT8} <= set(row["tokens_per_second"])
        assert (ONNX in row["tokens_per_second"]) == (not record["skipped"])
        assert min(row["tokens_per_second"].values()) > 0
        assert row["ratio"][FLOAT][LSTM] > 0
        assert row["of_bandwidth"][FLOAT] > 0


@compiled
def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming.machine, "installed", lambda package: None if package == "onnxruntime" else "1.0")
    monkeypatch.setattr(streaming, "HIDDEN", (8,))
    report = streaming.run(quick=True, seconds=0.0, threads=1)
    assert report.skipped == ["ONNX Runtime was not measured: onnxruntime not installed"]
    assert ONNX not in report.rows[0].tokens_per_second
