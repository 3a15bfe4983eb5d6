"""`elman doctor`, with the kernels and without them."""

import json
from pathlib import Path

import pytest
import torch

from elman import __version__, kernels
from elman.cli import doctor
from tests.cli.invoke import invoke

compiled = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels are not installed")


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine that had no compiler."""
    monkeypatch.setattr(kernels, "native", None)
    monkeypatch.setattr(kernels, "missing", "No module named 'elman._kernels'")


@compiled
def test_with_kernels() -> None:
    code, out, error = invoke("doctor")
    assert (code, error) == (0, "")
    assert f"elman           {__version__}" in out
    assert torch.__version__ in out
    assert f"in use is {kernels.instruction_set()} of {', '.join(kernels.instruction_sets())}" in out
    assert "agrees with PyTorch's to" in out


@compiled
def test_json_with_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(bytes(1234))
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path))
    code, out, _ = invoke("doctor", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["cache"] == {"folder": str(tmp_path), "bytes": 1234}
    assert found["kernels"]["digits"] >= 5
    assert found["kernels"]["in_use"] in found["kernels"]["instruction_sets"]
    assert found["threads"] == torch.get_num_threads()
    assert found["versions"]["torch"] == torch.__version__


def test_without_kernels_it_says_why_what_it_costs_and_what_to_do(bare: None) -> None:
    code, out, error = invoke("doctor")
    assert (code, error) == (0, "")
    assert "No module named 'elman._kernels'" in out
    assert "times slower" in out
    assert "C++ compiler" in out
    code, out, _ = invoke("doctor", "--json")
    assert code == 0
    assert json.loads(out)["kernels"]["available"] is False


@compiled
def test_kernels_that_are_wrong_are_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "agreement", lambda: 2)
    code, out, error = invoke("doctor")
    assert code == 1
    assert "2 digits" in out
    assert "2 digits only" in error


def test_extras_that_are_not_installed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["torch>=2", 'no-such-package>=1; extra == "none"', 'numpy>=1; extra == "some"', 'pip; extra == "dev"']
    monkeypatch.setattr("importlib.metadata.requires", lambda name: asked)
    code, out, _ = invoke("doctor")
    assert code == 0
    assert "pip install 'elman[none]'" in out
    assert "[some]          numpy " in out
    assert "[dev]" not in out


def test_a_cache_that_is_not_there_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "none"))
    assert json.loads(invoke("doctor", "--json")[1])["cache"]["bytes"] == 0


def test_whose_threads() -> None:
    assert "PyTorch's (libgomp.so.1)" in doctor._whose("/env/site-packages/torch/lib/libgomp.so.1")
    assert "shared" in doctor._whose("/usr/lib/libgomp.so.1")
    assert "own" in doctor._whose("std::thread")
