"""The compiled module itself: which instruction sets, what it refuses, the lock it lets go of."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
import torch

from elman import kernels
from elman.errors import UserError

needs_kernels = pytest.mark.skipif(not kernels.available(), reason="Elman was built without its kernels")

LEVELS = ["baseline", "avx2", "avx512"]


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=120)


@needs_kernels
def test_instruction_sets_rise_from_the_baseline() -> None:
    found = kernels.instruction_sets()
    assert found == [level for level in LEVELS if level in found]
    assert found[0] == "baseline"
    assert kernels.instruction_set() in found


@needs_kernels
def test_use_chooses_one_and_refuses_others() -> None:
    before = kernels.instruction_set()
    try:
        for name in kernels.instruction_sets():
            kernels.use(name)
            assert kernels.instruction_set() == name
    finally:
        kernels.use(str(before))
    with pytest.raises(
        UserError, match=f"'mmx', and this machine's kernels are: {', '.join(kernels.instruction_sets())}"
    ):
        kernels.use("mmx")
    with pytest.raises(ValueError, match="mmx"):
        kernels.native.use("mmx")
    assert kernels.instruction_set() == before


@needs_kernels
def test_the_environment_forces_a_lower_set() -> None:
    shown = "from elman import kernels; print(kernels.instruction_set())"
    assert python(shown, ELMAN_ISA="baseline").stdout.strip() == "baseline"
    wrong = python(shown, ELMAN_ISA="sse9")
    assert wrong.returncode != 0
    *_, sentence = wrong.stderr.strip().splitlines()
    known = ", ".join(kernels.instruction_sets())
    assert sentence == f"elman.errors.UserError: ELMAN_ISA is 'sse9', and this machine's kernels are: {known}"


def test_without_the_module_everything_runs_on_torch() -> None:
    done = python(
        """
import sys
sys.modules["elman._kernels"] = None
import torch
import elman.nn
from elman import kernels

assert not kernels.available() and kernels.missing
assert kernels.instruction_sets() == [] and kernels.instruction_set() is None
layer = elman.nn.LSTM(3, 4, num_layers=2, bidirectional=True)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
x, losses = torch.randn(5, 2, 3), []
for _ in range(3):
    optimizer.zero_grad()
    losses.append(layer(x)[0].square().mean())
    losses[-1].backward()
    optimizer.step()
assert losses[-1] < losses[0]
try:
    elman.nn.LSTM(3, 4, backend="compiled")(x)
except RuntimeError as error:
    print(error)
"""
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("the compiled kernels are not there (")
    assert "RuntimeWarning: Elman's compiled kernels are not there (" in done.stderr and "`elman doctor`" in done.stderr
    assert "backend='auto'" in done.stdout


def call(cell: str = "LSTM", backward: bool = False, **changes: Any) -> dict[str, Any]:
    """The arguments of a right call: two directions, 3 sequences of 4 steps and fewer, from 7 to 6, projected to 5."""
    sizes, inputs, hidden, size = [3, 3, 2, 1], 7, 6, 5
    rows, gates = sum(sizes), 4 * hidden
    shapes = {"weight_ih": (gates, inputs), "weight_hh": (gates, size), "weight_hr": (size, hidden)}
    shapes |= {"gates": (rows, gates), "before": (rows, size), "cells": (rows, hidden), "inner": (rows, hidden)}
    if backward:
        shapes |= {"d_gates": (rows, gates), "d_input": (rows, inputs), "d_hidden": (rows, size)}
    else:
        shapes |= {"input": (rows, inputs), "bias_ih": (1, gates), "bias_hh": (1, gates)}
    ends = ("d_h_n", "d_c_n", "d_h", "d_c", "c_0") if backward else ("h_0", "c_0", "h", "c")
    states = {name: np.full((2 * 3, size if "h" in name else hidden), 0.25) for name in ends}
    directions = [{name: np.full(shape, 0.25) for name, shape in shapes.items()} for _ in range(2)]
    given = {"backward": backward, "mode": cell, "hidden": hidden, "output_size": size, "threads": 2}
    given |= {
        "input_size": inputs,
        "batch_sizes": sizes,
        "output": np.zeros((rows, 2 * size)),
        "states": states,
        "directions": directions,
    }
    return given | changes


BREAKS: dict[str, Callable[[np.ndarray], Any]] = {
    "missing": lambda a: None,
    "another type": lambda a: a.astype(np.float32),
    "whole numbers": lambda a: a.astype(np.int64),
    "a row too many": lambda a: np.zeros((len(a) + 1, a.shape[1])),
    "a column too few": lambda a: np.zeros((len(a), a.shape[1] - 1)),
    "no rows": lambda a: a[:0],
    "flat": lambda a: a.reshape(-1),
    "transposed memory": lambda a: np.asfortranarray(a) if len(a) > 1 else np.zeros((2, a.shape[1]))[::2, ::-1],
    "every other column": lambda a: np.zeros((len(a), 2 * a.shape[1]))[:, ::2],
    "read only": lambda a: np.broadcast_to(a[:1], a.shape),
    "no tensor": lambda a: "weights",
}


@needs_kernels
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_a_right_call_runs(backward: bool) -> None:
    given = call(backward=backward)
    kernels.native.recurrence(**given)
    result = given["directions"][0]["d_gates"] if backward else given["output"]
    assert np.isfinite(result).all() and len(np.unique(result)) > 1


@needs_kernels
@pytest.mark.parametrize("broken", BREAKS)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_wrong_tensors_are_refused_by_name(backward: bool, broken: str) -> None:
    optional = {"bias_ih", "bias_hh", "before", "inner", "h_0", "c_0", "d_h_n", "d_c_n", "d_h", "d_c"}
    optional |= set() if backward else {"cells"}

    def places(given: dict[str, Any]) -> list[dict[str, Any]]:
        return [*given["directions"], given["states"]]

    for place, tensors in enumerate(places(call(backward=backward))):
        for name, tensor in tensors.items():
            if broken == "missing" and name in optional:
                continue
            if broken == "flat" and len(tensor) == 1:  # a bias is flat
                continue
            given = call(backward=backward)
            places(given)[place][name] = BREAKS[broken](tensor)
            with pytest.raises(ValueError, match=f"^{name} "):
                kernels.native.recurrence(**given)


@needs_kernels
@pytest.mark.parametrize(
    ("cell", "missing"), [("GRU", "inner"), ("GRU", "before"), ("RNN_TANH", "last"), ("RNN_RELU", "before")]
)
def test_what_the_way_back_needs_of_the_other_cells(cell: str, missing: str) -> None:
    blocks = 3 if cell == "GRU" else 1
    shapes = {"weight_hh": (blocks * 6, 6), "gates": (8, blocks * 6), "before": (8, 6), "inner": (8, 6), "last": (4, 6)}
    direction = {name: np.full(shape, 0.25) for name, shape in shapes.items()}
    direction["d_gates"] = np.zeros((8, 24 if cell == "GRU" else 6))
    given = {
        "backward": True,
        "mode": cell,
        "input_size": 0,
        "hidden": 6,
        "output_size": 6,
        "threads": 1,
        "batch_sizes": [4, 4],
    }
    given |= {"output": np.ones((8, 6)), "states": {}, "directions": [direction]}
    kernels.native.recurrence(**given)
    assert direction["d_gates"].any()
    del direction[missing]
    with pytest.raises(ValueError, match=f"^{missing} is missing"):
        kernels.native.recurrence(**given)


@needs_kernels
@pytest.mark.parametrize(
    "changes",
    [
        {"mode": "CNN"},
        {"input_size": -1},
        {"input_size": 8},
        {"mode": "GRU"},
        {"mode": "RNN_TANH"},
        {"hidden": 0},
        {"hidden": 7},
        {"hidden": 2**31 - 1},
        {"output_size": -1},
        {"output_size": 4},
        {"batch_sizes": []},
        {"batch_sizes": [3, 3, 2]},
        {"batch_sizes": [3, 3, 3, 1]},
        {"batch_sizes": [2, 3, 3, 1]},
        {"batch_sizes": [3, 3, 3, 0]},
        {"batch_sizes": [5, 5, 0, -1]},
        {"batch_sizes": [2**62] * 4},
        {"directions": []},
        {"output": np.zeros(90)},
        {"output": np.zeros((9, 5))},
        {"output": np.zeros((9, 10), dtype=np.float32)},
        {"output": np.zeros((9, 10), dtype=np.int32)},
        {"output": np.zeros((9, 10), order="F")},
    ],
    ids=str,
)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_wrong_calls_are_refused(backward: bool, changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        kernels.native.recurrence(**call(backward=backward, **changes))


@needs_kernels
def test_three_directions_and_other_types_are_refused() -> None:
    given = call()
    with pytest.raises(ValueError, match="one or two"):
        kernels.native.recurrence(**given | {"directions": given["directions"] * 2})
    for wrong in ({"batch_sizes": 3}, {"output": None}, {"output": "no"}, {"directions": [1]}, {"hidden": "6"}):
        with pytest.raises(TypeError):
            kernels.native.recurrence(**given | wrong)


def floats(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.zeros(shape, dtype=np.float32)


LOSSES = {"logits": floats(3, 7), "targets": np.zeros(3, dtype=np.int64), "losses": floats(3)}
SEEN = {"weights": floats(2, 5), "states": floats(3, 5, 4), "padding": np.zeros((3, 5), dtype=np.uint8)}


@needs_kernels
@pytest.mark.parametrize(
    "wrong", [{"logits": floats(21)}, {"logits": floats(2, 7)}, {"losses": floats(4)}], ids=",".join
)
def test_wrong_losses_are_refused(wrong: dict[str, Any]) -> None:
    options = {"smoothing": 0.0, "threads": 2}
    kernels.native.cross_entropy(**LOSSES, **options)
    with pytest.raises(ValueError):
        kernels.native.cross_entropy(**LOSSES | wrong, **options)
    for name in ("logits", "losses"):  # a copy in the right type would be written to in its place
        with pytest.raises(TypeError):
            kernels.native.cross_entropy(**LOSSES | {name: LOSSES[name].astype(np.float64)}, **options)


@needs_kernels
@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": floats(2, 4)},
        {"weights": floats(4, 5), "contexts": floats(4, 4)},
        {"weights": floats(10)},
        {"states": floats(3, 20)},
        {"padding": np.zeros((2, 5), dtype=np.uint8)},
        {"contexts": floats(3, 4)},
    ],
    ids=",".join,
)
@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_wrong_contexts_are_refused(backward: bool, wrong: dict[str, Any]) -> None:
    given = SEEN | {"contexts": floats(2, 4), "backward": backward, "threads": 2}
    kernels.native.contexts(**given)
    with pytest.raises(ValueError):
        kernels.native.contexts(**given | wrong)
    for name in ("weights", "contexts"):
        with pytest.raises(TypeError):
            kernels.native.contexts(**given | {name: given[name].astype(np.float64)})


@pytest.fixture
def no_switching() -> Iterator[None]:
    """Python's threads take turns only where one lets go of the lock by itself."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    yield
    sys.setswitchinterval(before)


@needs_kernels
def test_other_python_threads_go_on_meanwhile(no_switching: None) -> None:
    size, steps, batch = 192, 100, 16
    states, weights = {"h": np.zeros((batch, size))}, np.full((size, size), 1e-3)
    given = {"backward": False, "mode": "RNN_TANH", "input_size": 0, "hidden": size, "output_size": size, "threads": 1}
    given |= {"batch_sizes": [batch] * steps, "output": np.zeros((steps * batch, size))}
    given |= {"states": states, "directions": [{"weight_hh": weights}]}
    ticks, done = [0], Event()

    def tick() -> None:
        while not done.is_set():
            ticks[0] += 1
            time.sleep(1e-4)  # lets go of the lock, and needs it again

    ticker = Thread(target=tick)
    ticker.start()
    try:
        during = 0
        for _ in range(200):  # one call is enough, unless the machine is busy
            before = ticks[0]
            kernels.native.recurrence(**given)
            during = ticks[0] - before
            if during:
                break
    finally:
        done.set()
        ticker.join()
    assert during > 0


@needs_kernels
def test_threads_are_as_many_as_torchs() -> None:
    before = torch.get_num_threads()
    try:
        for count in (1, 3):
            torch.set_num_threads(count)
            assert kernels.threads() == count
    finally:
        torch.set_num_threads(before)
    assert kernels.native.thread_library()
