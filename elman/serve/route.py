"""How a path reads its request: JSON straight into the fields that it asks for, in one go.

The framework reads a body in several steps, which together take longer than some answers.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from elman.serve.errors import Refused


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
            try:
                body = fields.model_validate_json(await request.body())
            except ValidationError as error:
                raise RequestValidationError(error.errors(include_url=False)) from None
            answer: Response = await endpoint(request, body)
            return answer

        return handle
