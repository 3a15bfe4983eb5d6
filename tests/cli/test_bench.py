"""`elman bench` by the command line."""

import json
from pathlib import Path

import pytest

from elman import kernels
from elman.bench import adapting, decoding, layers, machine, prediction, streaming
from elman.bench.translators import Sizes
from tests.cli.invoke import invoke

compiled = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels are not installed")
TINY = ("--quick", "--seconds", "0", "--threads", "1")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "SHAPES", ((8, 2, 4), (6, 3, 5)))
    monkeypatch.setattr(streaming, "HIDDEN", (8,))
    monkeypatch.setattr(adapting, "CASES", (adapting.AdaptingCase("words", 40, 8, 8, tokens=300, learned=60),))
    monkeypatch.setattr(machine, "SETTLE", 0.0)
    monkeypatch.setattr(prediction, "cases", lambda quick: [prediction.PredictionCase("tag", hidden=8)])
    monkeypatch.setattr(decoding, "SIZES", Sizes(vocabulary=50, embedding=6, hidden=8))
    monkeypatch.setattr(decoding, "LENGTH", 4)
    monkeypatch.setattr(machine, "PRODUCT_SIZE", 64)
    monkeypatch.setattr(machine, "READ_BYTES", 2**16)


@compiled
def test_layers_as_a_table_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "layers.json"
    code, out, error = invoke("bench", "layers", "--cell", "gru", "--cell", "rnn", "--json", str(file), *TINY)
    assert code == 0, error
    assert "6/3/5" in out
    assert "Geometric means" in out
    record = json.loads(file.read_text())
    assert {row["cell"] for row in record["rows"]} == {"rnn", "gru"}
    assert len(record["rows"]) == 2 * 2 * 2 * 2


@compiled
def test_streaming_as_json_alone() -> None:
    code, out, error = invoke("bench", "streaming", "--json", "-", *TINY)
    assert code == 0, error
    record = json.loads(out)
    assert [row["hidden"] for row in record["rows"]] == [8]


@compiled
def test_streaming_as_a_table() -> None:
    code, out, error = invoke("bench", "streaming", *TINY)
    assert code == 0, error
    assert "Elman int8" in out


@compiled
def test_adapting_as_a_table_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "adapting.json"
    code, out, error = invoke("bench", "adapting", "--json", str(file), *TINY)
    assert code == 0, error
    assert "a cache of 2,000 tokens" in out and "x static" in out
    (row,) = json.loads(file.read_text())["rows"]
    assert set(row["tokens_per_second"]) == {"static", "cache", "dynamic"} and row["ratio"]["cache"] > 0


@compiled
def test_prediction_as_a_table_and_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prediction.json"
    code, out, error = invoke("bench", "prediction", "--json", str(file), *TINY)
    assert code == 0, error
    assert "Elman int8" in out and "p99 ms" in out and "tokens/s" in out
    (row,) = json.loads(file.read_text())["rows"]
    assert row["task"] == "tag" and row["hidden"] == 8
    assert {"PyTorch", "Elman float32", "Elman int8"} <= row["speeds"].keys()


@compiled
def test_decoding_as_a_table() -> None:
    code, out, error = invoke("bench", "decoding", *TINY)
    assert code == 0, error
    assert "Elman luong-feeding" in out
    assert "x JoeyNMT" in out


def test_a_cell_that_is_not_there() -> None:
    code, _, error = invoke("bench", "layers", "--cell", "grru")
    assert code == 2
    if kernels.available():
        assert "did you mean 'gru'?" in error


def test_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "native", None)
    monkeypatch.setattr(kernels, "missing", "no compiler was found")
    for what in ("layers", "streaming", "decoding"):
        code, out, error = invoke("bench", what)
        assert (code, out) == (2, "")
        assert "no compiler was found" in error


@compiled
@pytest.mark.parametrize(("command", "package"), [("streaming", "onnxruntime"), ("layers", "jax")])
def test_a_peer_that_is_broken_does_not_end_it(monkeypatch: pytest.MonkeyPatch, command: str, package: str) -> None:
    def fail(name: str) -> None:
        if name == package:
            raise RuntimeError("built for another machine")

    monkeypatch.setattr(machine, "import_module", fail)
    monkeypatch.setattr(machine, "installed", lambda name: "1.0")
    code, out, error = invoke("bench", command, *TINY)
    assert code == 0, error
    assert f"was not measured: {package} is installed, but cannot be imported (RuntimeError: built for" in out
