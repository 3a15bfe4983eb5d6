"""How the process is set up in which the service runs."""

import gc
import os

import pytest

from elman import kernels
from elman.serve.garbage import settle
from elman.serve.run import leave_a_core


def test_batches_leave_a_core_to_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    before = kernels.threads()
    try:
        monkeypatch.setenv("OMP_NUM_THREADS", "5")
        leave_a_core(workers=1)
        assert kernels.threads() == before  # the user has said how many
        for workers in (1, 2):
            kernels.use_threads(4)
            monkeypatch.delenv("OMP_NUM_THREADS")
            leave_a_core(workers)
            assert kernels.threads() == {1: 3, 2: 1}[workers] == int(os.environ["OMP_NUM_THREADS"])
    finally:
        kernels.use_threads(before)


def test_what_is_loaded_is_not_searched_for_garbage_again() -> None:
    loaded = [[] for _ in range(1000)]
    settle()
    try:
        kept = {id(one) for one in gc.get_objects()}
        assert not any(id(one) in kept for one in loaded)
        new = [[]]
        assert any(one is new for one in gc.get_objects())
    finally:
        gc.unfreeze()
