"""Timing by turns, and the machine's own limits."""

import pytest
import torch

from elman import kernels
from elman.bench import machine
from elman.errors import UserError


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "SETTLE", 0.0)


def test_works_are_done_by_turns_and_the_best_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(machine.time, "perf_counter", lambda: clock)
    done = []
    costs = {"theirs": iter([1.0, 9.0, 3.0, 1.0, 2.0, 1.0, 4.0]), "ours": iter([0.5, 9.0, 1.0, 0.5, 5.0, 0.5, 1.5])}

    def work(name: str) -> None:
        nonlocal clock
        done.append(name)
        clock += next(costs[name])

    best = machine.interleave([lambda: work("theirs"), lambda: work("ours")], seconds=0.0)
    assert best == [2.0, 1.0]  # calls that only make warm do not count
    assert done == ["theirs", "ours"] + ["theirs", "theirs", "ours", "ours"] * 3


def test_more_time_means_more_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = 0.0
    monkeypatch.setattr(machine.time, "perf_counter", lambda: clock)

    def work() -> None:
        nonlocal clock
        clock += 1.0

    machine.interleave([work], seconds=10.0)
    assert clock == 11.0  # one call to get warm, five rounds of two


def test_limits_are_positive() -> None:
    assert machine.matmul_gflops(0.0) > 0.1
    assert machine.gigabytes_per_second(2**16, 0.0) > 0.01


def test_threads_are_put_back() -> None:
    before = torch.get_num_threads()
    with machine.using_threads(1):
        assert kernels.threads() == 1
    assert torch.get_num_threads() == before
    with pytest.raises(UserError, match="1 or more, not 0"), machine.using_threads(0):
        pass


def test_without_kernels_there_is_nothing_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "native", None)
    monkeypatch.setattr(kernels, "missing", "no compiler was found")
    with pytest.raises(UserError, match=r"no compiler was found.*elman doctor"):
        machine.need_kernels()
