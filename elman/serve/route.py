"""How a path reads its request: JSON straight into the fields that it asks for, in one go.

The framework finds a path and reads a body in several steps, which together take longer than some answers.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from elman.serve.answering import Gone, aside, response_of
from elman.serve.errors import Refused, first_mistake

FASTER = 4
"""Times less work than writing an answer is reading a request of as many characters."""


class JsonRoute(APIRoute):
    """A path whose function takes the request and a body: `async def path(request: Request, body: Fields)`."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """What answers a request."""
        endpoint: Any = self.endpoint
        fields: type[BaseModel] | None = endpoint.__annotations__.get("body")
        if fields is None:
            return endpoint  # type: ignore[no-any-return]

        async def handle(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json" and not kind.endswith("+json"):
                raise Refused(415, "send JSON, and say so with 'Content-Type: application/json'")
            content = await _whole(request)
            body = await aside(len(content) // FASTER, lambda: _read(fields, content))
            answer: Response = await endpoint(request, body)
            return answer

        return handle


def _read(fields: type[BaseModel], content: bytes) -> BaseModel:
    """The fields of a body; refused with its first mistake."""
    try:
        return fields.model_validate_json(content)
    except ValidationError as error:
        sentence, field = first_mistake(error.errors(include_url=False, include_input=False))
        raise Refused(400, sentence, param=field) from None


async def _whole(request: Request) -> bytes:
    """The body of a request; `Gone` where the client leaves before its end."""
    parts, more = [], True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise Gone
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
    return b"".join(parts)


class Shortcut:
    """An application whose paths that take JSON are gone to straight, past the framework, and all others through it."""

    def __init__(self, app: FastAPI, routes: Iterable[Any]) -> None:
        self.app = app
        self.handlers = {
            route.path: (route, route.get_route_handler())
            for route in routes
            if isinstance(route, JsonRoute) and route.methods == {"POST"} and not route.param_convertors
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or have it answered."""
        posted = scope["type"] == "http" and scope["method"] == "POST"
        route, handle = self.handlers.get(scope["path"], (None, None)) if posted else (None, None)
        if handle is None:
            await self.app(scope, receive, send)
            return
        scope["app"], scope["route"] = self.app, route
        try:
            response = await handle(Request(scope, receive, send))
        except (Refused, Gone) as error:
            response = response_of(error)
        await response(scope, receive, send)
