"""Towers say what their stacks say, each in its own direction."""

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence, unpack_sequence

from elman.nn.pooling import LastMaxMeanPooling
from elman.nn.recurrent import Recurrent
from elman.nn.steps import as_state
from elman.nn.towers import BACKWARD, Towers, turned


def towers(direction: str, cell: str = "lstm") -> Towers:
    torch.manual_seed(0)
    stacks = [Recurrent(cell, 3, 5, num_layers=2) for _ in BACKWARD[direction]]
    return Towers(stacks, direction)  # type: ignore[arg-type]


SEQUENCES = [torch.randn(length, 3, generator=torch.Generator().manual_seed(length)) for length in (2, 6, 1, 6)]


@pytest.mark.parametrize("direction", BACKWARD)
@pytest.mark.parametrize("cell", ["lstm", "gru", "mut1"])
def test_each_stack_reads_alone_and_in_its_direction(direction: str, cell: str) -> None:
    body = towers(direction, cell)
    output, state = body(pack_sequence(SEQUENCES, enforce_sorted=False))
    for number, (sequence, found) in enumerate(zip(SEQUENCES, unpack_sequence(output), strict=True)):
        for place, (stack, backward) in enumerate(zip(body.towers, BACKWARD[direction], strict=True)):
            alone, final = stack((sequence.flip(0) if backward else sequence).unsqueeze(1))
            right = alone[:, 0].flip(0) if backward else alone[:, 0]
            torch.testing.assert_close(found[:, 5 * place : 5 * place + 5], right)
            for part, own in zip(as_state(state), as_state(final), strict=True):
                torch.testing.assert_close(part[place :: body.directions, number], own[:, 0])


@pytest.mark.parametrize("direction", BACKWARD)
def test_a_trace_is_the_call_with_what_is_inside(direction: str) -> None:
    body, packed = towers(direction), pack_sequence(SEQUENCES, enforce_sorted=False)
    output, _ = body(packed)
    trace = body.trace(packed)
    torch.testing.assert_close(trace.output.data, output.data)
    assert len(trace.inside) == 2 * body.directions
    top = torch.cat([one["h"].data for one in trace.inside[-body.directions :]], dim=1)
    torch.testing.assert_close(top, output.data)


def test_turning_twice_is_nothing() -> None:
    order = turned(pack_sequence(SEQUENCES, enforce_sorted=False))
    assert order[order].tolist() == list(range(len(order)))


def test_the_number_of_stacks_follows_from_the_direction() -> None:
    with pytest.raises(ValueError, match="needs 2 towers"):
        Towers([Recurrent("gru", 3, 5)], "both")


@pytest.mark.parametrize("direction", BACKWARD)
def test_last_max_and_mean_side_by_side(direction: str) -> None:
    body = towers(direction)
    packed = pack_sequence(SEQUENCES, enforce_sorted=False)
    pooled = LastMaxMeanPooling(body)(*body(packed))
    for row, found in zip(pooled, unpack_sequence(body(packed)[0]), strict=True):
        ends = [(0 if backward else -1) for backward in BACKWARD[direction]]
        last = torch.cat([found[end, 5 * place : 5 * place + 5] for place, end in enumerate(ends)])
        torch.testing.assert_close(row, torch.cat([last, found.amax(0), found.mean(0)]))
