"""Gates and states of every step: the same by the kernels and by the equations, in every layout."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import elman.nn
from elman import kernels
from elman.nn import ChoGRUCell, GRUCell, LSTMCell, MUT1Cell, MUT2Cell, MUT3Cell
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
