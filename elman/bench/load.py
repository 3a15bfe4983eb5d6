"""Clients of a service on this machine, as many as wanted, each on a connection of its own; they speak HTTP themselves,
since a client that is slower than the service would measure nothing."""

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Outcome:
    """What came of the requests of one measurement."""

    seconds: float = 0.0
    answered: list[float] = field(default_factory=list)
    """Seconds of each request that was answered; of a stream, to its first token."""
    refused: list[float] = field(default_factory=list)
    """Of those that were refused (429, 503)."""
    failed: int = 0
    tokens: int = 0

    def quantile(self, share: float) -> float:
        """The seconds that so many of the answers took at most."""
        return float(np.quantile(self.answered, share)) if self.answered else float("nan")

    @property
    def per_second(self) -> float:
        """Requests that were answered in a second."""
        return len(self.answered) / self.seconds


@dataclass(frozen=True)
class Target:
    """A path of a service, and bodies to send to it in turn."""

    port: int
    path: str
    bodies: Sequence[bytes]
    stream: bool = False

    def requests(self, first: int) -> Iterator[bytes]:
        """Requests without end, beginning somewhere in the bodies."""
        while True:
            body = self.bodies[first % len(self.bodies)]
            head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            yield f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            first += 1


class Connection:
    """A connection that is made anew where the other side has closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def ask(self, request: bytes, stream: bool) -> tuple[int, float, int]:
        """The status, the seconds to the answer or to its first token, and the tokens of a stream."""
        start = time.perf_counter()
        if self.reader is None or self.writer is None or self.writer.is_closing():
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=2**22)
        self.writer.write(request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        status, headers = int(head[9:12]), head.lower()
        if b"content-length: " in headers:
            length = int(headers.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await self.reader.readexactly(length)
            took, tokens = time.perf_counter() - start, 0
        else:
            took, tokens = await self._events(start)
        if b"connection: close" in headers:
            self.close()
        return status, took, tokens

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


async def _ask(connection: Connection, request: bytes, target: Target, outcome: Outcome) -> None:
    try:
        status, took, tokens = await connection.ask(request, target.stream)
    except (OSError, asyncio.IncompleteReadError, ValueError):
        outcome.failed += 1
        connection.close()
        return
    if status == 200:
        outcome.answered.append(took)
        outcome.tokens += tokens
    elif status in (429, 503):
        outcome.refused.append(took)
    else:
        outcome.failed += 1


async def closed(target: Target, clients: int, seconds: float) -> Outcome:
    """Clients that each send the next request when they have the answer to the last, for so long."""
    outcome, end = Outcome(), time.perf_counter() + seconds

    async def client(number: int) -> None:
        connection = Connection(target.port)
        for request in target.requests(number):
            await _ask(connection, request, target, outcome)
            if time.perf_counter() >= end:
                break
        connection.close()

    start = time.perf_counter()
    await asyncio.gather(*map(client, range(clients)))
    outcome.seconds = time.perf_counter() - start
    return outcome


async def paced(target: Target, rate: float, seconds: float) -> Outcome:
    """Requests that come at random, so many a second on average, whether the ones before are answered or not."""
    outcome, draw, idle = Outcome(), random.Random(1), list[Connection]()
    requests, tasks, start = target.requests(0), set[asyncio.Task[None]](), time.perf_counter()

    async def one(request: bytes) -> None:
        connection = idle.pop() if idle else Connection(target.port)
        await _ask(connection, request, target, outcome)
        idle.append(connection)

    due = start
    while (now := time.perf_counter()) < start + seconds:
        while due <= now:
            task = asyncio.create_task(one(next(requests)))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            due += draw.expovariate(rate)
        await asyncio.sleep(max(0.0, min(due - time.perf_counter(), 0.05)))
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - start
    for connection in idle:
        connection.close()
    return outcome


def measured(work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    """Run clients to their end."""

    async def run() -> Outcome:
        return await work()

    return asyncio.run(run())


def body(**values: object) -> bytes:
    """A JSON body."""
    return json.dumps(values).encode()
