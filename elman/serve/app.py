"""The application: all paths behind the front door, for any ASGI server.

from elman.serve.app import create_app
from elman.serve.service import Service
app = create_app(Service.loading({"mine": "runs/mine"}))
"""

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from elman import __version__
from elman.errors import ElmanError
from elman.serve.answering import Gone, response_of
from elman.serve.errors import Refused, first_mistake, refusal_of
from elman.serve.front import Front
from elman.serve.paths import about, completions, explain, lab, libre, predictions, runs, studio, training
from elman.serve.route import Shortcut
from elman.serve.service import Service

ABOUT = "Recurrent sequence models over HTTP: they write, classify, tag, translate and explain."


def create_app(service: Service) -> Front:
    """The application of a service."""
    app = FastAPI(title="Elman", version=__version__, description=ABOUT, docs_url=None, redoc_url=None)
    app.state.service = service
    app.add_exception_handler(Refused, _told)
    app.add_exception_handler(RequestValidationError, _mistaken)
    app.add_exception_handler(HTTPException, _other)
    app.add_exception_handler(Gone, _told)
    app.add_exception_handler(ElmanError, _failed)  # a mistake of the caller's: the connection stays
    app.add_exception_handler(Exception, _failed)
    routers = [paths.router for paths in (completions, predictions, explain, libre, about, lab, training, runs)]
    for router in routers:
        app.include_router(router)
    app.include_router(studio.studio())
    whole: Any = Shortcut(app, [route for router in routers for route in router.routes])
    if service.origins:
        allowed: dict[str, Any] = {"allow_methods": ["GET", "POST"], "allow_headers": ["*"]}
        whole = CORSMiddleware(whole, allow_origins=list(service.origins), **allowed)
    return Front(whole, service)


async def _told(request: Request, error: Any) -> Response:
    return response_of(error)


async def _failed(request: Request, error: Any) -> Response:
    return response_of(refusal_of(error))


async def _mistaken(request: Request, error: Any) -> Response:
    sentence, field = first_mistake(list(error.errors()))
    return response_of(Refused(400, sentence, param=field))


async def _other(request: Request, error: Any) -> Response:
    """What the framework refuses by itself: unknown paths, wrong methods, bodies that cannot be read."""
    sentences = {
        400: "the body cannot be read: it is no JSON in UTF-8, or is nested too deep",
        404: "there is no such path: /openapi.json tells which there are",
        405: f"the path takes no {request.method}: /openapi.json tells what it takes",
    }
    sentence = sentences.get(error.status_code, str(error.detail))
    return response_of(Refused(error.status_code, sentence, headers=dict(error.headers or {})))
