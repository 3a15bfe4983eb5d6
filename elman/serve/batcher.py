"""Predictions that arrive together are computed together: a queue and a thread for each model."""

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from elman.serve.errors import Refused, refusal_of
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics

log = logging.getLogger("elman.serve")

MUCH = 8
"""Texts of a batch: after one of fewer, the next does not wait for others."""
ENOUGH = 4
"""Texts that are waited for: in batches of more, each is hardly sooner done."""

Work = Callable[[list[Any]], Sequence[Any]]
"""Computes an answer for each of some items, in their order."""


@dataclass(eq=False)
class Job:
    """The items of one request, and who waits for their answers."""

    key: Hashable
    items: list[Any]
    work: Work
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[list[Any]]"
    since: float
    taken: int = 0
    found: list[Any] = field(default_factory=list)
    gone: bool = False
    """Nobody waits for it any more."""

    @property
    def kind(self) -> Hashable:
        """What its items have in common with those of other keys: about how long one takes."""
        return self.key[0] if isinstance(self.key, tuple) else self.key


class Batcher:
    """Computes jobs in a thread of its own; those of one `key` that wait at the same time are one batch.

    A job that finds the thread idle is computed at once. While there is much to do, a batch waits up to `batch_wait`
    milliseconds for a few others. Of a long job only a share goes into each batch, so that no short one
    waits for all of it. No more jobs are taken than can be computed in half of the time that each of them has.
    """

    def __init__(self, name: str, limits: Limits, metrics: Metrics) -> None:
        self.name, self.limits, self.metrics = name, limits, metrics
        self._queue, self._queued = metrics.queue.labels(name), metrics.queued.labels(name)
        self._batch = metrics.batch.labels(name)
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._last_size, self._last_end = 1, 0.0
        self._items: Counter[Hashable] = Counter()
        """Items that wait, of each kind."""
        self._pace: dict[Hashable, float] = {}
        """Seconds that an item of a kind takes, in the batches of late."""

    @property
    def full(self) -> bool:
        """Whether as many jobs wait as may: by their number, or by the time that they will take."""
        if not self._waiting:
            return False
        seconds = sum(count * self._pace.get(kind, 0.0) for kind, count in dict(self._items).items())
        return seconds > self.limits.max_seconds / 2 or len(self._waiting) >= self.limits.max_queue

    async def submit(self, key: Hashable, items: Sequence[Any], work: Work) -> list[Any]:
        """The answers for some items, at least one; refused at once where too many wait, or after too long a time."""
        loop = asyncio.get_running_loop()
        job = Job(key, list(items), work, loop, loop.create_future(), time.perf_counter())
        with self._changed:
            if self.full:
                raise full(self.metrics, f"{self.name!r} has {len(self._waiting)} requests waiting")
            self._waiting.append(job)
            self._items[job.kind] += len(job.items)
            self._queue.set(len(self._waiting))
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=f"batches of {self.name}", daemon=True)
                self._thread.start()
        end = loop.call_later(self.limits.max_seconds, self._give_up, job)
        try:
            return await job.answer
        finally:
            end.cancel()
            job.gone = True

    def _give_up(self, job: Job) -> None:
        """Refuse a job that had its time."""
        if not job.answer.done():
            self.metrics.rejections.labels("time").inc()
            seconds = f"{self.limits.max_seconds:g}"
            job.answer.set_exception(Refused(504, f"this took longer than {seconds} seconds: ask for less"))

    def close(self) -> None:
        """End the thread once nothing waits any more; a job that comes later is computed all the same."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def join(self, seconds: float) -> None:
        """Wait for the end of the thread, so long."""
        if (thread := self._thread) is not None:
            thread.join(seconds)

    # In the thread

    def _run(self) -> None:
        while (batch := self._next()) is not None:
            if batch:
                self._compute(batch)

    def _next(self) -> list[tuple[Job, int, int]] | None:
        """The parts (job, from, to) of the next batch; None when all is over."""
        with self._changed:
            while not self._waiting:
                if self._closed:
                    self._thread = None
                    return None
                self._changed.wait()
            busy = self._last_size >= MUCH and time.perf_counter() - self._last_end < self.limits.batch_wait / 1e3
            if busy and self.limits.batch_wait:
                wanted = min(ENOUGH, self.limits.max_batch)
                self._changed.wait_for(lambda: self._items.total() >= wanted, self.limits.batch_wait / 1e3)
            parts = self._take()
            left: Counter[Hashable] = Counter()
            for job in self._waiting:
                left[job.kind] += len(job.items) - job.taken
            self._items = left
            return parts

    def _take(self) -> list[tuple[Job, int, int]]:
        self._waiting = deque(job for job in self._waiting if not job.gone)
        if not self._waiting:
            self._queue.set(0)
            return []
        key = self._waiting[0].key
        alike = [job for job in self._waiting if job.key == key][: self.limits.max_batch]
        share = max(1, self.limits.max_batch // len(alike))
        parts, now = [], time.perf_counter()
        for job in alike:
            begin, job.taken = job.taken, min(len(job.items), job.taken + share)
            parts.append((job, begin, job.taken))
            if begin == 0:
                self._queued.observe(now - job.since)
        over = {id(job) for job in alike if job.taken == len(job.items)}
        rest = [job for job in self._waiting if id(job) not in over]
        # Those that were served go behind those that were not, so that each key has its turn.
        served = {id(job) for job in alike}
        rest.sort(key=lambda job: id(job) in served)
        self._waiting = deque(rest)
        self._queue.set(len(rest))
        return parts

    def _compute(self, parts: list[tuple[Job, int, int]]) -> None:
        items = [item for job, begin, end in parts for item in job.items[begin:end]]
        self._batch.observe(len(items))
        start, first = time.perf_counter(), parts[0][0]
        try:
            answers = list(first.work(items))
            if len(answers) != len(items):
                raise RuntimeError(f"{len(items)} items have {len(answers)} answers")
        except Exception as error:  # of one of them: each by itself, so that it is the others' no more
            self._one_by_one(parts, error)
            return
        self._last_size, self._last_end = len(items), time.perf_counter()
        took = (self._last_end - start) / len(items)
        self._pace[first.kind] = (self._pace.get(first.kind, 0.0) + took) / 2
        place, done = 0, []
        for job, begin, end in parts:
            job.found += answers[place : place + end - begin]
            place += end - begin
            if len(job.found) == len(job.items):
                done.append((job, job.found))
        _deliver(done)

    def _one_by_one(self, parts: list[tuple[Job, int, int]], error: Exception) -> None:
        if len(parts) > 1:
            for part in parts:
                self._compute([part])
            return
        job = parts[0][0]
        refused = refusal_of(error)
        if refused.status_code >= 500:
            log.exception("%s failed", self.name, exc_info=error)
        with self._changed:
            job.gone = True
        _deliver([(job, refused)])


def _deliver(done: list[tuple[Job, Any]]) -> None:
    """Hand answers to those who wait, all of one event loop at once."""
    loops: dict[int, list[tuple[Job, Any]]] = {}
    for job, answer in done:
        loops.setdefault(id(job.loop), []).append((job, answer))
    for several in loops.values():
        try:
            several[0][0].loop.call_soon_threadsafe(_answer, several)
        except RuntimeError:  # the loop is closed: nobody waits
            continue


def _answer(several: list[tuple[Job, Any]]) -> None:
    for job, answer in several:
        if job.answer.done():
            continue
        if isinstance(answer, Refused):
            job.answer.set_exception(answer)
        else:
            job.answer.set_result(answer)


def full(metrics: Metrics, what: str) -> Refused:
    """What to answer where there is no room."""
    metrics.rejections.labels("full").inc()
    return Refused(429, f"{what}: try again in a moment", code="queue_full", retry_after=1)
