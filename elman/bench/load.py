"""Clients of a service on this machine, as many as wanted, each on a connection of its own; they speak HTTP themselves,
since a client that is slower than the service would measure itself."""

import asyncio
import ctypes
import gc
import json
import os
import random
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import NamedTuple

import numpy as np

LAST_CHUNK = b"\r\n0\r\n\r\n"
"""The end of a body that comes in chunks."""
TOLD = re.compile(rb'"completion_tokens":\s*(\d+)')


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
        head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
        made = [f"{head}{len(body)}\r\n\r\n".encode() + body for body in self.bodies]
        first %= len(made)
        return cycle(made[first:] + made[:first])


class Reply(NamedTuple):
    """What came back."""

    status: int
    seconds: float
    """Until it was there; of a stream, its first token."""
    tokens: int
    retry_after: float
    """Seconds after which to come again."""


class Connection(asyncio.Protocol):
    """A connection that is made anew where the other side has closed it; one request at a time.

    What it reads it reads as it comes: to wake a reader for each part would take as long as some answers.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Reply] | None = None
        self._reading = Reading(0.0)

    async def ask(self, request: bytes, due: float | None = None) -> Reply:
        """Send a request and read its answer, whose time counts from when it was due, or else from now."""
        self._reading, loop = Reading(time.perf_counter() if due is None else due), asyncio.get_running_loop()
        if self._transport is None or self._transport.is_closing():
            self._transport, _ = await loop.create_connection(lambda: self, "127.0.0.1", self.port)
        self._answer = loop.create_future()
        self._transport.write(request)
        return await self._answer

    def data_received(self, data: bytes) -> None:
        """Read a part of the answer."""
        if self._answer is None or self._answer.done():
            return
        try:
            reply = self._reading.read(data)
        except ValueError as error:
            self._answer.set_exception(error)
            return
        if reply is not None:
            if self._reading.closes:
                self.close()
            self._answer.set_result(reply)

    def connection_lost(self, exc: Exception | None) -> None:
        """Whoever waits for an answer does so no more."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the connection was closed before the answer's end"))

    def close(self) -> None:
        """Close it."""
        if self._transport is not None:
            self._transport.close()
        self._transport = None


class Reading:
    """An answer of which some part has come."""

    def __init__(self, start: float) -> None:
        self._start, self._first, self._received = start, 0.0, b""
        self._status, self._length, self._retry_after = 0, 0, 0
        self._streams = self.closes = False

    def read(self, data: bytes) -> Reply | None:
        """What came back, once all of it is there; ValueError where it is no HTTP."""
        self._received += data
        if not self._status:
            head, blank, rest = self._received.partition(b"\r\n\r\n")
            if not blank:
                return None
            headers = head.lower() + b"\r\n"
            self._status, length = int(head[9:12]), _number(headers, b"content-length: ")
            self._length, self._streams = length or 0, length is None
            self._retry_after = _number(headers, b"retry-after: ") or 0
            self._received, self.closes = rest, b"\r\nconnection: close" in headers
        if not self._streams:
            return self._reply(0) if len(self._received) >= self._length else None
        if self._received and not self._first:
            self._first = time.perf_counter() - self._start
        self._received = self._received[-4096:]
        return self._reply(self._tokens()) if self._received.endswith(LAST_CHUNK) else None

    def _reply(self, tokens: int) -> Reply:
        return Reply(self._status, self._first or time.perf_counter() - self._start, tokens, self._retry_after)

    def _tokens(self) -> int:
        """The tokens that the last events of a stream told of."""
        told = TOLD.findall(self._received)
        return int(told[-1]) if told else 0


def _number(headers: bytes, name: bytes) -> int | None:
    """The number in a header, None where it is not there."""
    _, found, rest = headers.partition(b"\r\n" + name)
    return int(rest.partition(b"\r\n")[0]) if found else None


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
    """Sleeps to the moment where the system has timers for that, as Linux: those of an event loop go by whole
    milliseconds, and one that rounds them down asks over and over in the last half of one."""

    def __init__(self) -> None:
        self._loop, self._system, self._number = asyncio.get_running_loop(), ctypes.CDLL(None), -1
        if hasattr(self._system, "timerfd_create"):
            self._number = self._system.timerfd_create(1, os.O_NONBLOCK)  # by the clock that is never set
            self._loop.add_reader(self._number, self._ring)
        self._rung: asyncio.Future[None] | None = None

    async def sleep(self, seconds: float) -> None:
        """Go on after so long."""
        if self._number < 0 or seconds <= 0:
            await asyncio.sleep(max(0.0, seconds))
            return
        self._rung = self._loop.create_future()
        nanoseconds = max(1, int(seconds * 1e9))
        once = (ctypes.c_long * 4)(0, 0, *divmod(nanoseconds, 10**9))
        self._system.timerfd_settime(self._number, 0, once, None)
        await self._rung

    def _ring(self) -> None:
        os.read(self._number, 8)
        if self._rung is not None and not self._rung.done():
            self._rung.set_result(None)

    def close(self) -> None:
        """Give it back."""
        if self._number >= 0:
            self._loop.remove_reader(self._number)
            os.close(self._number)


async def paced(target: Endpoint, rate: float, seconds: float) -> Tally:
    """Requests that come at random, so many a second on average, whether the ones before are answered or not.

    The time of each counts from when it was due: a service that stands still makes all that come meanwhile wait.
    """
    outcome, draw, idle, alarm = Tally(), random.Random(1), list[Connection](), Alarm()
    requests, tasks, start = target.requests(0), set[asyncio.Task[None]](), time.perf_counter()

    async def one(request: bytes, due: float) -> None:
        connection = idle.pop() if idle else Connection(target.port)
        outcome.late.append(time.perf_counter() - due)
        await _ask(connection, request, outcome, due)
        idle.append(connection)

    due = start
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
    alarm.close()
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
