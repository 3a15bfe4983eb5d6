"""Jobs that wait together are one batch; one that is wrong, long or given up is nobody else's business."""

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from elman.errors import UserError
from elman.serve.batcher import Batcher
from elman.serve.errors import Refused
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics


class Work:
    """Doubles numbers, notes each batch, and waits where it is told to."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_go, self.begun = threading.Event(), threading.Event()
        self.may_go.set()

    def __call__(self, items: list[int]) -> list[int]:
        self.batches.append(items)
        self.begun.set()
        assert self.may_go.wait(30)
        if 13 in items:
            raise UserError("13 brings bad luck")
        return [2 * item for item in items]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def batcher(**limits: Any) -> Batcher:
    return Batcher("doubles", Limits(**limits), Metrics())


async def held(doubles: Batcher, work: Work) -> "asyncio.Task[list[int]]":
    """A first job that keeps the thread busy until `may_go` is set."""
    work.may_go.clear()
    first = asyncio.ensure_future(doubles.submit("x", [0], work))
    while not work.begun.is_set():
        await asyncio.sleep(0.001)
    return first


def test_jobs_that_wait_together_are_one_batch() -> None:
    doubles, work = batcher(), Work()

    async def main() -> None:
        first = await held(doubles, work)
        others = [asyncio.ensure_future(doubles.submit("x", [i, i + 1], work)) for i in range(1, 5)]
        await asyncio.sleep(0.01)
        work.may_go.set()
        assert await first == [0]
        assert await asyncio.gather(*others) == [[2 * i, 2 * i + 2] for i in range(1, 5)]

    run(main())
    assert work.batches == [[0], [1, 2, 2, 3, 3, 4, 4, 5]]
    doubles.close()


def test_what_is_wrong_with_one_job_is_told_to_that_one() -> None:
    doubles, work = batcher(), Work()

    async def main() -> list[Any]:
        first = await held(doubles, work)
        others = [asyncio.ensure_future(doubles.submit("x", [i], work)) for i in (12, 13, 14)]
        await asyncio.sleep(0.01)
        work.may_go.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    _, twelve, thirteen, fourteen = run(main())
    assert (twelve, fourteen) == ([24], [28])
    assert isinstance(thirteen, Refused) and thirteen.status_code == 400
    doubles.close()


def test_a_long_job_is_shared_out_over_batches() -> None:
    doubles, work = batcher(max_batch=4), Work()

    async def main() -> list[str]:
        first = await held(doubles, work)
        order: list[str] = []

        async def note(name: str, items: list[int]) -> None:
            assert await doubles.submit("x", items, work) == [2 * item for item in items]
            order.append(name)

        both = [asyncio.ensure_future(note("long", list(range(20, 60)))), asyncio.ensure_future(note("short", [1, 2]))]
        await asyncio.sleep(0.01)
        work.may_go.set()
        await asyncio.gather(first, *both)
        return order

    assert run(main()) == ["short", "long"]
    assert max(map(len, work.batches)) == 4
    doubles.close()


def test_a_job_that_is_given_up_is_not_computed() -> None:
    doubles, work = batcher(), Work()

    async def main() -> None:
        first = await held(doubles, work)
        gone, stays = (asyncio.ensure_future(doubles.submit("x", [i], work)) for i in (7, 8))
        await asyncio.sleep(0.01)
        gone.cancel()
        await asyncio.sleep(0)
        work.may_go.set()
        assert await stays == [16] and await first == [0]

    run(main())
    assert not any(7 in batch for batch in work.batches)
    doubles.close()


def test_too_many_and_too_long() -> None:
    doubles, work = batcher(max_queue=2, max_seconds=1), Work()

    async def main() -> None:
        first = await held(doubles, work)
        waiting = [asyncio.ensure_future(doubles.submit("x", [i], work)) for i in (1, 2)]
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="429") as full:
            await doubles.submit("x", [3], work)
        assert full.value.headers == {"Retry-After": "1"}
        found = await asyncio.gather(first, *waiting, return_exceptions=True)
        assert [one.status_code for one in found if isinstance(one, Refused)] == [504] * 3
        work.may_go.set()

    run(main())
    doubles.close()


def test_no_more_is_taken_than_can_be_computed_in_time() -> None:
    doubles, work = batcher(max_seconds=10), Work()

    def slow(items: list[int]) -> list[int]:
        time.sleep(0.2)
        return work(items)

    async def main() -> None:
        assert await doubles.submit("x", [1], slow) == [2]  # an item takes a tenth of a second or more
        work.begun.clear()
        first = await held(doubles, work)
        waiting = asyncio.ensure_future(doubles.submit("x", list(range(20, 120)), work))
        await asyncio.sleep(0)
        with pytest.raises(Refused, match="429"):  # in a queue of two
            await doubles.submit("x", [3], work)
        work.may_go.set()
        assert await first == [0] and len(await waiting) == 100
        assert await doubles.submit("x", [3], work) == [6]

    run(main())
    doubles.close()


def test_a_job_after_a_small_batch_does_not_wait_for_others() -> None:
    doubles, work = batcher(batch_wait=1000), Work()

    async def main() -> None:
        for _ in range(3):
            start = time.perf_counter()
            assert await doubles.submit("x", [1, 2, 3], work) == [2, 4, 6]
            assert await doubles.submit("x", [4], work) == [8]
            assert time.perf_counter() - start < 0.9

    run(main())
    doubles.close()


def test_after_a_large_batch_no_more_than_a_few_are_waited_for() -> None:
    doubles, work = batcher(batch_wait=1000), Work()

    async def main() -> None:
        assert len(await doubles.submit("x", list(range(12)), work)) == 12
        start = time.perf_counter()
        found = await asyncio.gather(*(doubles.submit("x", [number], work) for number in range(4)))
        assert found == [[0], [2], [4], [6]] and time.perf_counter() - start < 0.9
        assert work.batches[-1] == [0, 1, 2, 3]

    run(main())
    doubles.close()


def test_a_job_that_comes_after_the_end_is_answered_all_the_same() -> None:
    doubles, work = batcher(), Work()
    doubles.close()
    for _ in range(3):  # a request may have found its model just before another took the model's place
        assert run(doubles.submit("x", [4], work)) == [8]


def test_other_keys_are_other_batches() -> None:
    doubles, work = batcher(), Work()

    async def main() -> None:
        first = await held(doubles, work)
        others = [asyncio.ensure_future(doubles.submit(key, [i], work)) for i, key in enumerate("abab", 1)]
        await asyncio.sleep(0.01)
        work.may_go.set()
        await asyncio.gather(first, *others)

    run(main())
    assert sorted(work.batches[1:]) == [[1, 3], [2, 4]]
    doubles.close()


def test_what_takes_long_does_not_count_for_what_takes_none() -> None:
    doubles, work = batcher(max_seconds=2), Work()

    def slow(items: list[int]) -> list[int]:
        time.sleep(0.3)
        return work(items)

    async def main() -> None:
        for number in range(3):
            assert await doubles.submit(("predict", number), [1], slow) == [2]
        work.begun.clear()
        first = await held(doubles, work)
        many = asyncio.ensure_future(doubles.submit("x", list(range(20, 40)), work))
        await asyncio.sleep(0)
        assert not doubles.full  # twenty of the other kind would be
        work.may_go.set()
        assert await first == [0] and len(await many) == 20

    run(main())
    doubles.close()
