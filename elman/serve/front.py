"""What every request passes first: its id, the key, limits, and what is counted of it.

Plain ASGI, not a middleware class of the web framework: those hide from a path that its client has gone.
"""

import asyncio
import base64
import binascii
import hmac
import json
import logging
import random
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from elman.serve.batcher import full
from elman.serve.errors import Refused, error_body, refusal_of
from elman.serve.service import Service

log = logging.getLogger("elman.serve")

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

OPEN = ("/healthz", "/readyz")
"""Paths that need no key, and are answered while models are loaded and at the end."""
WATCHED = (*OPEN, "/metrics")
REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}")
LITTLE = 2**16
"""Bytes of a refused request that are read to its end, so that the connection can be kept."""
PROTECTION = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
]


def crowded(service: Service) -> bytes:
    """What is answered, whatever was asked, to a connection for which there is no room."""
    service.metrics.rejections.labels("connections").inc()
    return last_words(503, "there are as many connections as may be: try again in a moment", (b"retry-after", b"1"))


def last_words(status: int, sentence: str, *more: tuple[bytes, bytes]) -> bytes:
    """A whole answer in HTTP for a connection that is closed then: what came on it is no request that could be read."""
    body = json.dumps(error_body(status, sentence)).encode()
    length = str(len(body)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length), (b"connection", b"close")]
    headers += [*more, *PROTECTION, (b"x-request-id", new_id())]
    first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()
    return b"\r\n".join([first, *(b"%b: %b" % header for header in headers)]) + b"\r\n\r\n" + body


def new_id() -> bytes:
    """What a request is called that brings no name."""
    return b"%016x" % random.getrandbits(64)


class Front:
    """An application with the front door of the service before it."""

    def __init__(self, app: App, service: Service) -> None:
        self.app, self.service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have it answered."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        visit = _Visit(self.service, scope, receive, send)
        taken = False
        try:
            visit.check()
            taken = scope["path"] not in WATCHED
            if taken:
                self.service.begin()
            await self.app(scope, visit.receive, visit.send)
        except Exception as error:
            await visit.refuse(error)
        finally:
            if taken:
                self.service.end()
            visit.count()


class _Visit:
    """One request on its way through the front door."""

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        self.service, self.scope, self._receive, self._send = service, scope, receive, send
        self.since, self.status, self._read, self._whole = time.perf_counter(), 0, 0, False
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        given = self.headers.get(b"x-request-id", b"")
        self.id = given if given and REQUEST_ID.fullmatch(given) else new_id()
        scope.setdefault("state", {})["request_id"] = self.id.decode()

    def check(self) -> None:
        """Refuse what is refused whatever it asks for, before any of it is read."""
        path, service = self.scope["path"], self.service
        if path in OPEN:
            return
        if service.api_key is not None and not self._knows(service.api_key) and not self._preflight():
            service.metrics.rejections.labels("key").inc()
            raise Refused(
                401,
                "this service needs its key: send it as 'Authorization: Bearer KEY'",
                code="invalid_api_key",
                headers={"WWW-Authenticate": 'Basic realm="elman", charset="UTF-8"'},
            )
        if path in WATCHED:
            return
        if service.draining or not service.ready:
            service.metrics.rejections.labels("draining" if service.draining else "loading").inc()
            doing = "ending" if service.draining else "loading its models"
            raise Refused(503, f"the service is {doing}: try again in a moment", retry_after=2)
        if (reason := service.full(path)) is not None:
            raise full(service.metrics, reason)
        length = self.headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > service.limits.max_bytes:
            raise self._too_large()

    def _preflight(self) -> bool:
        """Whether a browser asks what a page of another origin may do, which it does without a key."""
        return self.scope["method"] == "OPTIONS" and b"access-control-request-method" in self.headers

    def _knows(self, key: str) -> bool:
        scheme, _, given = self.headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"basic":  # what a browser sends once it has asked for a password
            try:
                given = base64.b64decode(given, validate=True).partition(b":")[2]
            except binascii.Error:
                return False
        elif scheme.lower() != b"bearer":
            return False
        return hmac.compare_digest(given.strip(), key.encode())

    def _little(self) -> bool:
        """Whether so little of the request can be to come that reading it costs less than a new connection."""
        length = self.headers.get(b"content-length", b"0")
        unsure = b"transfer-encoding" in self.headers or b"expect" in self.headers  # how much, or whether it comes
        return not unsure and length.isdigit() and int(length) <= LITTLE

    def _too_large(self) -> Refused:
        self.service.metrics.rejections.labels("size").inc()
        return Refused(413, f"a request may have {self.service.limits.max_bytes:,} bytes at most: send less at a time")

    async def receive(self) -> Message:
        """The next part of the request, within its limits; then, when it comes to that, that the client has gone."""
        if self._whole:
            return await self._receive()
        left = self.since + self.service.limits.body_seconds - time.perf_counter()
        try:
            async with asyncio.timeout(max(left, 0.001)):
                message = await self._receive()
        except TimeoutError:
            self.service.metrics.rejections.labels("slow").inc()
            raise Refused(408, "the request did not come to its end in time: send it more quickly") from None
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            if self._read > self.service.limits.max_bytes:
                raise self._too_large()
        return message

    async def send(self, message: Message) -> None:
        """A part of the answer, with the headers that every answer has."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            own = {name for name, _ in message.get("headers", ())}
            added = [(name, value) for name, value in PROTECTION if name not in own]
            if self.status == 408 or not (self._whole or self._little()):
                added.append((b"connection", b"close"))  # what is still to come is not read
            message = {**message, "headers": [*message.get("headers", ()), *added, (b"x-request-id", self.id)]}
        await self._send(message)

    async def refuse(self, error: Exception) -> None:
        """Answer with an error, in the one shape of errors; cut the answer off where it has begun."""
        refused = refusal_of(error)
        if refused.status_code >= 500 and not isinstance(error, Refused):
            log.exception("request %s to %s failed", self.id.decode(), self.scope["path"], exc_info=error)
        if self.status:
            raise error
        body = json.dumps(refused.body(), ensure_ascii=False).encode()
        headers = [(name.lower().encode(), value.encode()) for name, value in (refused.headers or {}).items()]
        headers += [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": refused.status_code, "headers": headers})
        await self.send({"type": "http.response.body", "body": body})

    def count(self) -> None:
        """Note the path, the outcome and the time."""
        route = self.scope.get("route")
        path = getattr(route, "path", None) or (self.scope["path"] if self.scope["path"] in WATCHED else "other")
        self.service.metrics.count(path, str(self.status or "gone"), time.perf_counter() - self.since)
