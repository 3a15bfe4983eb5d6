"""What the paths do alike: give an answer, or give up when the client has gone; look at what a request asks for."""

import asyncio
import json
import math
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from fastapi import Request, Response

from elman.serve.errors import Refused
from elman.serve.limits import Limits
from elman.serve.service import Service

T = TypeVar("T")
JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
SHORT = 0.05
"""Seconds after which it is worth to look whether a client still waits."""
QUICK = 4096
"""Characters that are read or written so quickly that it is done on the event loop."""


class Gone(Exception):
    """The client has left before its answer."""


def service_of(request: Request) -> Service:
    """The service that a request came to."""
    found: Service = request.app.state.service
    return found


def to_json(value: Any) -> bytes:
    """A value as JSON; numbers that JSON has no words for become null."""
    try:
        return JSON.encode(value).encode()
    except ValueError:
        return JSON.encode(_finite(value)).encode("utf-8", "replace")


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


def answer(value: Any) -> Response:
    """An answer in JSON."""
    return Response(to_json(value), media_type="application/json")


def response_of(error: Refused | Gone) -> Response:
    """The answer to a request that is refused, or that nobody waits for any more."""
    if isinstance(error, Gone):
        return Response(status_code=499)  # which nobody reads
    return Response(to_json(error.body()), error.status_code, error.headers, "application/json")


async def aside(size: int, work: Callable[[], T]) -> T:
    """What the work on so many characters gives: done here, or in a thread where others would wait for it too long."""
    return work() if size <= QUICK else await asyncio.to_thread(work)


async def until_gone(request: Request) -> None:
    """Returns when the client has left."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What the work gives; it is given up, and `Gone` raised, where the client leaves before.

    Whether it has left is not looked at in the first moment, in which most answers come.
    """
    task, leaving, gone = asyncio.current_task(), list[asyncio.Task[None]](), False
    assert task is not None

    def look() -> None:
        leaving.append(asyncio.ensure_future(until_gone(request)))
        leaving[0].add_done_callback(leave)

    def leave(looking: asyncio.Task[None]) -> None:
        nonlocal gone
        if leaving and not looking.cancelled():  # else the work has ended meanwhile
            gone = True
            task.cancel()

    timer = asyncio.get_running_loop().call_later(SHORT, look)
    try:
        return await work
    except asyncio.CancelledError:
        if not gone or task.uncancel():  # somebody else ends it, too
            raise
        raise Gone from None
    finally:
        timer.cancel()
        while leaving:
            leaving.pop().cancel()


class EventStream(Response):
    """Server-sent events, ended at once when the client leaves.

    `leave` is called then, and when all is over, whether or not `events` have begun: it gives back what they hold, and
    wakes them where they wait for something.
    """

    def __init__(self, request: Request, events: AsyncGenerator[bytes, None], leave: Callable[[], None]) -> None:
        super().__init__(media_type="text/event-stream")
        self.request, self.events, self.leave = request, events, leave

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send the events as they come."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
        leaving = asyncio.ensure_future(until_gone(self.request))
        leaving.add_done_callback(lambda task: None if task.cancelled() else self.leave())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            async for event in self.events:
                await send({"type": "http.response.body", "body": event, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except Gone:
            pass
        finally:
            leaving.cancel()
            self.leave()
            await self.events.aclose()  # now, and not when their memory is freed


def event(value: Any) -> bytes:
    """A value as a server-sent event."""
    return b"data: " + to_json(value) + b"\n\n"


def as_list(given: Any) -> list[Any]:
    """A text, or several, as a list."""
    return [given] if isinstance(given, str) else list(given)


def check_texts(texts: Sequence[str], limits: Limits, param: str) -> None:
    """Refuse texts that are too many or too long, or that have nothing in them."""
    check_count(len(texts), limits.max_texts, "texts", param)
    for number, text in enumerate(texts, 1):
        check_characters(len(text), limits.max_characters, param, f"text {number} of {len(texts)}")
        if not text.strip():
            raise Refused(400, f"text {number} of {len(texts)} is empty: give it at least one character", param=param)


def check_count(count: int, most: int, what: str, param: str) -> None:
    """Refuse more texts or records than a request may have."""
    if count > most:
        message = f"{count:,} {what} are too many: give at most {most:,}, and the others in further requests"
        raise Refused(400, message, param=param)


def check_characters(length: int, most: int, param: str, which: str = "a text") -> None:
    """Refuse a text that is too long."""
    if length > most:
        raise Refused(400, f"{which} has {length:,} characters: give at most {most:,}", param=param)


def check_most(value: int | None, most: int, param: str) -> None:
    """Refuse a number that is more than the service offers."""
    if value is not None and value > most:
        raise Refused(400, f"'{param}' is {value}, and at most {most} are offered here", param=param)
