"""Clients of a service on this machine, as many as wanted, each on a connection of its own; they speak HTTP themselves,
since a client that is slower than the service would measure itself."""

import asyncio
import ctypes
import gc
import json
import os
import random
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import cycle, islice
from typing import NamedTuple, cast

import numpy as np

TOLD = re.compile(rb'"completion_tokens":\s*(\d+)')
LATE = 4096
"""Bytes of a stream that are kept, of its end: those that tell how many tokens it had."""


@dataclass
class Tally:
    """What came of the requests of one measurement."""

    seconds: float = 0.0
    answered: list[float] = field(default_factory=list)
    """Seconds of each request that was answered; of a stream, to its first token."""
    refused: list[float] = field(default_factory=list)
    """Of those that were refused (429, 503)."""
    late: list[float] = field(default_factory=list)
    """Seconds after which each request was sent that came at its time: how far behind the clients themselves were."""
    failed: int = 0
    tokens: int = 0

    def quantile(self, share: float) -> float:
        """The seconds that so many of the answers took at most."""
        return quantile(self.answered, share)

    @property
    def per_second(self) -> float:
        """Requests that were answered in a second."""
        return len(self.answered) / self.seconds


def quantile(seconds: Sequence[float], share: float) -> float:
    """What so many of some times are at most; not a number where there is none."""
    return float(np.quantile(seconds, share)) if seconds else float("nan")


@dataclass(frozen=True)
class Endpoint:
    """A path of a service, and bodies to send to it in turn."""

    port: int
    path: str
    bodies: Sequence[bytes]

    def requests(self, first: int) -> Iterator[bytes]:
        """Requests without end, beginning somewhere in the bodies."""
        return islice(cycle(self._requests), first % len(self.bodies), None)

    @cached_property
    def _requests(self) -> list[bytes]:
        head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
        return [f"{head}{len(body)}\r\n\r\n".encode() + body for body in self.bodies]


class Reply(NamedTuple):
    """What came back."""

    status: int
    seconds: float
    """Until it was there; of a stream, its first token."""
    tokens: int
    retry_after: float
    """Seconds after which to come again."""


class AnswerReader:
    """An answer of which some part has come: its head, then a body of a known length or one in chunks, a stream."""

    def __init__(self, start: float) -> None:
        self._start, self._first, self._received = start, 0.0, b""
        self._status, self._length, self._retry_after = 0, 0, 0
        self._streams = self._ends = self.closes = False
        self._late = b""

    def read(self, data: bytes) -> Reply | None:
        """What came back, once all of it is there; ValueError where it is no HTTP."""
        self._received += data
        if not self._status and not self._read_head():
            return None
        if not self._streams:
            return self._reply(0) if len(self._received) >= self._length else None
        if self._received and not self._first:
            self._first = time.perf_counter() - self._start
        while self._read_chunk():
            if self._ends:
                told = TOLD.findall(self._late)
                return self._reply(int(told[-1]) if told else 0)
        return None

    def _read_head(self) -> bool:
        head, blank, rest = self._received.partition(b"\r\n\r\n")
        if not blank:
            return False
        lines = (line.partition(b":") for line in head.lower().split(b"\r\n")[1:])
        headers = {name: value.strip() for name, _, value in lines}
        self._status, self._received = int(head[9:12]), rest
        self._length, self._streams = int(headers.get(b"content-length", 0)), b"content-length" not in headers
        self._retry_after, self.closes = int(headers.get(b"retry-after", 0)), headers.get(b"connection") == b"close"
        return True

    def _read_chunk(self) -> bool:
        """Whether there was a whole one: its size in a line, what it holds, and a line's end; the last has size 0."""
        line, end, rest = self._received.partition(b"\r\n")
        size = int(line, 16) if end else 0
        if not end or len(rest) < size + 2:
            return False
        self._ends, self._late, self._received = not size, (self._late + rest[:size])[-LATE:], rest[size + 2 :]
        return True

    def _reply(self, tokens: int) -> Reply:
        return Reply(self._status, self._first or time.perf_counter() - self._start, tokens, self._retry_after)


class Wire(asyncio.Protocol):
    """One connection, as long as it lasts. What comes on it is read as it comes: to wake a reader for each part would
    take as long as some answers."""

    transport: asyncio.Transport
    reading: AnswerReader
    answer: "asyncio.Future[Reply] | None" = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what is written to."""
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        """Read a part of the answer."""
        if self.answer is None or self.answer.done():
            return
        try:
            reply = self.reading.read(data)
        except ValueError as error:
            self.answer.set_exception(error)
            return
        if reply is not None:
            if self.reading.closes:
                self.transport.close()
            self.answer.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits for an answer does so no more."""
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionResetError("the connection was closed before the answer's end"))


class Connection:
    """A connection that is made anew where the other side has closed it; one request at a time."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._wire: Wire | None = None

    async def ask(self, request: bytes, due: float | None = None) -> Reply:
        """Send a request and read its answer, whose time counts from when it was due, or else from now."""
        start, loop = time.perf_counter() if due is None else due, asyncio.get_running_loop()
        if self._wire is None or self._wire.transport.is_closing():
            _, self._wire = await loop.create_connection(Wire, "127.0.0.1", self.port)
        self._wire.reading, self._wire.answer = AnswerReader(start), loop.create_future()
        self._wire.transport.write(request)
        return await self._wire.answer

    def close(self) -> None:
        """Close it."""
        if self._wire is not None:
            self._wire.transport.abort()
        self._wire = None


async def _ask(connection: Connection, request: bytes, outcome: Tally, due: float | None = None) -> float:
    """Ask, and note what comes of it; the seconds after which to come again."""
    try:
        answer = await connection.ask(request, due)
    except (OSError, ValueError):
        outcome.failed += 1
        connection.close()
        return 0.0
    if answer.status == 200:
        outcome.answered.append(answer.seconds)
        outcome.tokens += answer.tokens
    elif answer.status in (429, 503):
        outcome.refused.append(answer.seconds)
        return answer.retry_after
    else:
        outcome.failed += 1
    return 0.0


async def closed(target: Endpoint, clients: int, seconds: float, *, obedient: bool = False) -> Tally:
    """Clients that each send the next request when they have the answer to the last, for so long.

    Those that are refused come again at once, or, where obedient, when they were told to.
    """
    outcome, end = Tally(), time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection = Connection(target.port)
        for request in target.requests(number):
            again, left = await _ask(connection, request, outcome), end - time.perf_counter()
            if obedient and again:
                await asyncio.sleep(max(0.0, min(again, left)))
                left -= again
            if left <= 0:
                break
        connection.close()

    start = time.perf_counter()
    await asyncio.gather(*map(client, range(clients)))
    outcome.seconds = time.perf_counter() - start
    return outcome


class Alarm:
    """Sleeps to the moment, where the system is Linux, for one that waits: the timers of an event loop go by whole
    milliseconds, and who must not be late would have to ask over and over in the last of them."""

    def __init__(self) -> None:
        self._loop, self._timer, self._rung = asyncio.get_running_loop(), -1, asyncio.Event()
        if sys.platform == "linux":
            self._system = ctypes.CDLL(None)
            self._timer = self._system.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK)
        if self._timer >= 0:
            self._loop.add_reader(self._timer, self._ring)

    def __enter__(self) -> "Alarm":
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer >= 0:
            self._loop.remove_reader(self._timer)
            os.close(self._timer)

    async def sleep(self, seconds: float) -> None:
        """Go on after so long."""
        self._rung.clear()
        once = (ctypes.c_long * 4)(0, 0, *divmod(max(1, int(seconds * 1e9)), 10**9))  # none of 0, which is never
        if self._timer < 0 or seconds <= 0 or self._system.timerfd_settime(self._timer, 0, once, None):
            await asyncio.sleep(max(0.0, seconds))
        else:
            await self._rung.wait()

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # set anew meanwhile
            os.read(self._timer, 8)
            self._rung.set()


async def paced(target: Endpoint, rate: float, seconds: float, seed: int = 1) -> Tally:
    """Requests that come at random, so many a second on average, whether the ones before are answered or not.

    The time of each counts from when it was due: a service that stands still makes all that come meanwhile wait.
    """
    outcome, draw, idle = Tally(), random.Random(seed), list[Connection]()
    requests, tasks, start = target.requests(0), set[asyncio.Task[None]](), time.perf_counter()

    async def one(request: bytes, due: float) -> None:
        connection = idle.pop() if idle else Connection(target.port)
        outcome.late.append(time.perf_counter() - due)
        await _ask(connection, request, outcome, due)
        idle.append(connection)

    due = start
    with Alarm() as alarm:
        while due < start + seconds:
            now = time.perf_counter()
            while due <= now and due < start + seconds:  # all that came meanwhile, however long that was
                task = asyncio.create_task(one(next(requests), due))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                due += draw.expovariate(rate)
            await alarm.sleep(due - time.perf_counter())
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - start
    for connection in idle:
        connection.close()
    return outcome


def _event_loop() -> asyncio.AbstractEventLoop:
    """The quickest that there is."""
    try:
        import uvloop
    except ImportError:  # as on Windows
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def measured(work: Callable[[], Awaitable[Tally]]) -> Tally:
    """Run clients to their end; what they have not made themselves is not searched for garbage meanwhile, which takes
    long enough to be taken for the service's time."""

    async def run() -> Tally:
        return await work()

    gc.collect()
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=_event_loop) as runner:
            return runner.run(run())
    finally:
        gc.unfreeze()


def body(**values: object) -> bytes:
    """A JSON body."""
    return json.dumps(values).encode()
