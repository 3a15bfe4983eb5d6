"""Packed sequences and the step loop."""

import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_sequence

from elman.nn.cells import Cell, State
from elman.nn.steps import Steps, unroll


def letters(word: str) -> Tensor:
    return torch.tensor([[float(ord(letter))] for letter in word])


def spelled(data: Tensor) -> str:
    return "".join(chr(int(code)) for code in data.flatten())


class Counter(Cell):
    """Counts the steps of each sequence."""

    blocks = 1

    def project(self, x: Tensor) -> Tensor:
        return torch.ones_like(x)

    def step(self, projected: Tensor, state: State) -> State:
        return (state[0] + projected,)


def test_packing_goes_step_by_step() -> None:
    steps = Steps.of(pack_sequence([letters("abc"), letters("x")]), batch_first=False)
    assert spelled(steps.data) == "axbc"
    assert steps.batch_sizes is not None
    assert steps.batch_sizes.tolist() == [2, 1, 1]
    assert steps.batch_size == 2


def test_states_follow_the_callers_order() -> None:
    steps = Steps.of(pack_sequence([letters("x"), letters("abc")], enforce_sorted=False), batch_first=False)
    given = torch.tensor([[[1.0], [2.0]]])  # the state of x, then that of abc
    (inner,) = steps.state((given,))
    assert inner.flatten().tolist() == [2, 1], "the longest sequence comes first"
    assert torch.equal(steps.final_state((inner,)), given)


def test_each_sequence_is_run_for_its_own_length() -> None:
    packed = pack_sequence([letters("abcd"), letters("xy"), letters("z")])
    for reverse in (False, True):
        start = (torch.tensor([[10.0], [20.0], [30.0]]),)
        output, (final,) = unroll(Counter(1, 1), packed.data, packed.batch_sizes, start, reverse=reverse)
        assert final.flatten().tolist() == [14, 22, 31]
        assert output.flatten().tolist() == ([14, 22, 31, 13, 21, 12, 11] if reverse else [11, 21, 31, 12, 22, 13, 14])
