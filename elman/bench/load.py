"""Clients of a service on this machine, as many as wanted, each on a connection of its own; they speak HTTP themselves,
since a client that is slower than the service would measure itself."""

import asyncio
import gc
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


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
        while True:
            body = self.bodies[first % len(self.bodies)]
            head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            yield f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            first += 1


class Reply(NamedTuple):
    """What came back."""

    status: int
    seconds: float
    """Until it was there; of a stream, its first token."""
    tokens: int
    retry_after: float
    """Seconds after which to come again."""


class Connection:
    """A connection that is made anew where the other side has closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes, due: float | None = None) -> Reply:
        """Send a request and read its answer, whose time counts from when it was due, or else from now."""
        start = time.perf_counter() if due is None else due
        if self.reader is None or self.writer is None or self.writer.is_closing():
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        status, headers = int(head[9:12]), head.lower()
        if (length := _number(headers, b"content-length: ")) is not None:
            await self.reader.readexactly(length)
            took, tokens = time.perf_counter() - start, 0
        else:
            took, tokens = await self._events(start)
        if b"connection: close" in headers:
            self.close()
        return Reply(status, took, tokens, _number(headers, b"retry-after: ") or 0)

    async def _events(self, start: float) -> tuple[float, int]:
        """Read a body in chunks to its end: when the first event came, and the tokens that the last ones told of."""
        assert self.reader is not None
        first, told = 0.0, b""
        while size := int(await self.reader.readline(), 16):
            first = first or time.perf_counter() - start
            told = (told + await self.reader.readexactly(size))[-4096:]
            await self.reader.readexactly(2)
        await self.reader.readline()
        last = told.rpartition(b'"completion_tokens":')[2].strip()
        digits = bytes(last[: next((i for i, c in enumerate(last) if not 48 <= c <= 57), len(last))])
        return first, int(digits) if digits else 0

    def close(self) -> None:
        """Close it."""
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def _number(headers: bytes, name: bytes) -> int | None:
    """The number in a header, None where it is not there."""
    _, found, rest = headers.partition(b"\r\n" + name)
    return int(rest.partition(b"\r\n")[0]) if found else None


async def _ask(connection: Connection, request: bytes, outcome: Tally, due: float | None = None) -> float:
    """Ask, and note what comes of it; the seconds after which to come again."""
    try:
        answer = await connection.ask(request, due)
    except (OSError, asyncio.IncompleteReadError, ValueError):
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


async def paced(target: Endpoint, rate: float, seconds: float) -> Tally:
    """Requests that come at random, so many a second on average, whether the ones before are answered or not.

    The time of each counts from when it was due: a service that stands still makes all that come meanwhile wait.
    """
    outcome, draw, idle = Tally(), random.Random(1), list[Connection]()
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
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
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
