"""Gates and states of every step: the same by the kernels and by the equations, in every layout."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import elman.nn
from elman import kernels
from elman.nn import ChoGRUCell, GRUCell, LSTMCell, MUT1Cell, MUT2Cell, MUT3Cell
from elman.nn.recurrent import CELLS, Recurrent
from elman.nn.steps import unroll

LETTERS = {"RNN": {"h"}, "LSTM": {"i", "f", "g", "o", "c", "h"}, "GRU": {"r", "z", "n", "h"}}

needs_kernels = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")


def values(part: torch.Tensor | PackedSequence) -> torch.Tensor:
    return part.data if isinstance(part, PackedSequence) else part


@needs_kernels
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", LETTERS)
def test_kernels_and_equations_see_the_same_inside(name: str, packed: bool) -> None:
    layer = getattr(elman.nn, name)(3, 5, num_layers=2, bidirectional=True, dtype=torch.float64)
    x = torch.randn(6, 4, 3, dtype=torch.float64)
    given = pack_padded_sequence(x, [2, 6, 3, 3], enforce_sorted=False) if packed else x
    found = {}
    for backend in ("compiled", "cells"):
        layer.backend = backend
        found[backend] = layer.trace(given)
        assert torch.equal(values(found[backend].output), values(layer(given)[0]))
    assert [set(each) for each in found["compiled"].inside] == [LETTERS[name]] * 4
    for ours, theirs in zip(found["compiled"].inside, found["cells"].inside, strict=True):
        for letter, part in ours.items():
            torch.testing.assert_close(values(part), values(theirs[letter]), msg=letter)


@pytest.mark.parametrize("backend", ["auto", "torch", "cells"])
def test_the_output_is_the_last_layers_h_in_the_callers_layout(backend: str) -> None:
    layer = elman.nn.LSTM(3, 5, num_layers=2, batch_first=True, backend=backend)
    trace = layer.trace(torch.randn(4, 6, 3))
    assert torch.equal(values(trace.inside[-1]["h"]), values(trace.output))
    assert values(trace.inside[0]["f"]).shape == (4, 6, 5)
    assert bool((values(trace.inside[0]["i"]) > 0).all() and (values(trace.inside[0]["i"]) < 1).all())


@pytest.mark.parametrize("kind", [LSTMCell, GRUCell, ChoGRUCell, MUT1Cell, MUT2Cell, MUT3Cell])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_record_of_any_cell_is_in_the_order_of_the_steps(kind: type[elman.nn.Cell], reverse: bool) -> None:
    cell, x = kind(3, 5), torch.randn(6, 2, 3)
    record: list[dict[str, torch.Tensor]] = []
    output, _ = unroll(cell, x, None, cell.initial_state(2, x), reverse=reverse, record=record)
    assert torch.equal(torch.stack([step["h"] for step in record]), output)
    gates = set(record[0]) - {"h", "c"}
    assert gates and all(bool((step[name].abs() <= 1).all()) for step in record for name in gates)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
def test_a_stack_of_any_cell_is_traced_as_its_cells_step(cell: str, connections: str) -> None:
    layers = Recurrent(cell, 5, 5, num_layers=2, connections=connections)  # type: ignore[arg-type]
    x = torch.randn(6, 2, 5)
    trace = layers.trace(x)
    assert torch.equal(values(trace.output), values(layers(x)[0]))
    below = x
    for depth, (layer, inside) in enumerate(zip(layers.layers, trace.inside, strict=True)):
        step = layer.cells[0] if hasattr(layer, "cells") else elman.nn.fast.backends.cell_of(layer)
        state = step.initial_state(2, x)
        for time in range(len(x)):
            projected = step.project(below[time])
            expected = step.gates(projected, state)
            state = step.step(projected, state)
            expected |= dict(zip("hc", state, strict=False))
            assert set(expected) == set(inside)
            for letter, value in expected.items():
                torch.testing.assert_close(values(inside[letter])[time], value, msg=f"{depth} {letter} {time}")
        own = values(inside["h"])
        below = torch.cat([below, own], -1) if connections == "dense" else own + below * (connections == "residual")


@pytest.mark.parametrize("cell", ["lstm", "mut2"])
@pytest.mark.parametrize("merge", ["concat", "mean"])
def test_a_packed_stack_that_reads_both_ways_is_traced_like_each_sequence_alone(cell: str, merge: str) -> None:
    layers = Recurrent(cell, 3, 5, num_layers=2, bidirectional=True, merge=merge, batch_first=True)  # type: ignore[arg-type]
    x = torch.randn(3, 6, 3)
    lengths = [2, 6, 3]
    packed = layers.trace(pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False))
    for row, length in enumerate(lengths):
        alone = layers.trace(x[row : row + 1, :length])
        for ours, theirs in zip(packed.inside, alone.inside, strict=True):
            for letter, part in ours.items():
                padded, _ = pad_packed_sequence(part, batch_first=True)  # type: ignore[arg-type]
                torch.testing.assert_close(padded[row, :length], values(theirs[letter])[0], msg=letter)
