"""One process of the service: it listens, loads its models, answers, and ends when it is told to."""

import asyncio
import gc
import logging
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from elman.errors import RunError, UserError
from elman.serve.app import create_app
from elman.serve.front import LITTLE, crowded, last_words
from elman.serve.garbage import settle
from elman.serve.paths.about import prepare
from elman.serve.reload import watch
from elman.serve.service import Service

log = logging.getLogger("elman.serve")

BACKLOG = 2048
MOST_HEADERS = 2**16
"""Bytes of a request's headers at most."""
HEAD = tuple(b"HTTP/1.1 %d" % digit for digit in range(2, 6))
"""What the head of an answer begins with; that a client may go on sending (100) is none."""
UPGRADE = re.compile(rb"\r\nupgrade:[^\r]*", re.IGNORECASE)
"""An offer to speak HTTP/2, whose request the server would read without its body."""
KEEP_ALIVE = 65
"""Seconds that a connection may be silent between two requests: longer than clients keep one."""
CUT_OFF = 1
"""Seconds until requests that took longer than the end allows are cut off."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at an address; UserError where it cannot be had."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UserError(f"there is no host {host!r} here: give an address of this machine with --host") from None
    family, kind, protocol, _, address = found[0]
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except PermissionError:
        raise UserError(f"port {port} needs rights that this user has not: give another one with --port") from None
    except OSError as error:
        raise UserError(f"{host}:{port} cannot be had ({error.strerror}): give another with --port") from None
    bound.listen(BACKLOG)
    bound.setblocking(False)
    return bound


def address_of(bound: socket.socket) -> str:
    """Where a browser finds the service."""
    host, port = bound.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Joining:
    """A transport that sends the head of an answer with what follows it, not before: one call of the system instead of
    two, and a client that is woken once."""

    def __init__(self, transport: Any) -> None:
        self._transport, self._head = transport, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send this, or keep it if it is a head."""
        if not self._head and data.startswith(HEAD) and data.endswith(b"\r\n\r\n"):
            self._head = data
            return
        head, self._head = self._head, b""  # gone also where the transport is closed, and complains
        self._transport.write(head + data)

    def flush(self) -> None:
        """Send a head that nothing follows, as of an answer to HEAD."""
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Close it when all is sent."""
        self.flush()
        self._transport.close()


def protocol(service: Service) -> type[Any]:
    """How HTTP is spoken: as the server does, but whoever sends no whole request is not waited for forever, headers end
    somewhere, and who comes when there are as many connections as may be is told so, and nothing else is done for them.
    """
    limits = service.limits

    class Patient(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        _waiting: Any = None
        _too_many = False
        _header = 0
        """Bytes of headers that are not whole yet, and of the rest of a request that was refused before it was read."""

        def connection_made(self, transport: Any) -> None:
            super().connection_made(Joining(transport))
            self._too_many = len(self.connections) > limits.max_connections
            self._wait()

        def data_received(self, data: bytes) -> None:
            if self._too_many:  # told once something was sent: what is not read would cut the answer off
                if not self.transport.is_closing():
                    self.transport.write(crowded(service))
                    self.transport.close()
                return
            if b"h2c" in data and self._idle():
                head, blank, rest = data.partition(b"\r\n\r\n")
                data = UPGRADE.sub(b"", head) + blank + rest
            super().data_received(data)
            self._header = self._header + len(data) if self._idle() else 0
            if self._header > MOST_HEADERS + LITTLE and not self.transport.is_closing():
                service.metrics.rejections.labels("size").inc()
                self._end(431, f"the headers of a request may have {MOST_HEADERS:,} bytes at most: send fewer")
            if not self._idle():
                if self._waiting is not None:
                    self._waiting.cancel()
                    self._waiting = None
            elif self._waiting is None:  # the headers are not whole
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._waiting is not None:
                self._waiting.cancel()
            super().connection_lost(exc)

        def on_response_complete(self) -> None:
            self.transport.flush()
            super().on_response_complete()

        def send_400_response(self, msg: str) -> None:
            self._end(400, "this is no request in HTTP/1.1: send one")

        def _end(self, status: int, sentence: str) -> None:
            self.transport.write(last_words(status, sentence))
            self.transport.close()

        def _idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            self._waiting = asyncio.get_running_loop().call_later(limits.body_seconds, self._give_up)

        def _give_up(self) -> None:
            self._waiting = None
            if self._idle() and not self.transport.is_closing():
                self.transport.close()

    return Patient


class _Server(uvicorn.Server):
    """The server, without handlers of signals of its own: it would end by the signal, and not with exit code 0."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def run(
    service: Service, bound: socket.socket, *, reload: float | None = None, told: Callable[[], None] | None
) -> None:
    """Answer requests until SIGTERM or an interrupt.

    `told` is called when all models are loaded; it is None in one of several processes, which do without what makes the
    first page quick, since that takes memory of their own. `reload` is how many seconds lie between two looks at the
    models' folders; None is never.
    """
    sys.setswitchinterval(0.001)  # a thread that computes gives the event loop its turn sooner
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # requests that fail are told by the front door
    config = uvicorn.Config(
        create_app(service),
        http=protocol(service),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=CUT_OFF,
    )
    with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
        runner.run(_serve(service, bound, _Server(config), reload, told))
        service.close()
    gc.unfreeze()  # the end of a process looks for everything that is left


async def _serve(
    service: Service, bound: socket.socket, server: _Server, reload: float | None, told: Callable[[], None] | None
) -> None:
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[Any]]()

    async def end() -> None:
        await service.drain()
        server.should_exit = True

    def stop() -> None:
        if service.draining:  # told a second time
            server.should_exit = server.force_exit = True
        else:
            tasks.add(loop.create_task(end()))

    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError, RuntimeError):  # outside of the main thread there are no signals
            loop.add_signal_handler(number, stop)
    loading = loop.create_task(_load(service, server, told))
    serving = loop.create_task(server.serve(sockets=[bound]))
    if reload is not None:
        tasks.add(loop.create_task(watch(service, reload)))
    try:
        await serving
    finally:
        for task in tasks:
            task.cancel()
    if not server.started:
        raise RunError("the service could not be started")
    if loading.done():
        loading.result()


async def _load(service: Service, server: _Server, told: Callable[[], None] | None) -> None:
    """Load the models while the service already says that it does so; what is wrong with one ends it."""
    try:
        await asyncio.to_thread(service.shelf.load)
    except BaseException:
        server.should_exit = True
        raise
    service.ready = True
    if told is not None:
        told()
        await prepare(service)
        await asyncio.to_thread(settle)
