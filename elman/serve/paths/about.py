"""What the service says of itself: its models, its health, its figures."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from elman.serve.answering import answer, service_of
from elman.serve.errors import Refused, scrubbed
from elman.serve.options import offered
from elman.serve.paths.libre import languages_of
from elman.serve.schemas import ERRORS, ModelCard, ModelList, Status
from elman.serve.service import Service
from elman.serve.shelf import Served
from elman.tasks import TASKS

router = APIRouter(responses=ERRORS)

PATHS = {
    "lm": ["/v1/completions", "/v1/next", "/v1/score"],
    "classify": ["/v1/classify"],
    "tag": ["/v1/tag"],
    "translate": ["/v1/translate", "/v1/score", "/translate"],
}
"""Those of a task beside `/v1/predict` and `/v1/explain`, which all have."""


@router.get("/v1/models", response_model=ModelList)
async def models(request: Request) -> Response:
    """The models that are loaded, and what can be asked of each."""
    service = service_of(request)
    cards = [await _card(service, one) for one in service.shelf.served.values()]
    return answer({"object": "list", "data": cards})


@router.get("/v1/models/{name}", response_model=ModelCard)
async def model(request: Request, name: str) -> Response:
    """One model, with its scores."""
    service = service_of(request)
    served = service.shelf.find(name)
    card = await _card(service, served)
    report = await asyncio.to_thread(lambda: served.model.report)
    return answer({**card, "metrics": None if report is None else scrubbed(dict(report))})


async def prepare(service: Service) -> None:
    """Make what is said of the models before anyone asks: the first page is then there at once."""
    for served in list(service.shelf.served.values()):
        await _card(service, served)


async def _card(service: Service, served: Served) -> dict[str, Any]:
    """What is said of a model; it takes long the first time, as all of its views are imported."""
    if served.card is None:
        served.card = await asyncio.to_thread(card_of, service, served)
    return served.card


def card_of(service: Service, served: Served) -> dict[str, Any]:
    """What there is to say of a model."""
    model, views = served.model, views_of(served)
    card: dict[str, Any] = {
        "id": served.name,
        "object": "model",
        "created": served.loaded,
        "owned_by": "elman",
        "task": served.task,
        "about": model.about(),
        "parameters": model.parameters,
        "int8": all(one.int8 is not None for one in model.members),
        "members": len(model.members),
        "max_texts": service.limits.max_texts,
        "compiled": served.compiled,
        "fingerprint": served.fingerprint,
        "paths": [*PATHS.get(served.task, []), "/v1/predict", *(["/v1/explain"] if views else [])],
        "views": views,
        "options": offered(TASKS[served.task].Options),
    }
    if served.task in ("lm", "classify", "tree", "answer"):
        card["labels"] = model.labels
    if served.task == "lm":
        card |= {"direction": model.settings.direction, "unit": model.reading.unit}
        card["tokens"] = model.tokenizer.settings.kind
    if served.task == "tag":
        card["tags"] = model.tags
    if served.task == "translate":
        card |= {"languages": languages_of(service, served), "attends": model.settings.attends}
    return card


def views_of(served: Served) -> list[dict[str, Any]]:
    """The views of a model, and what can be asked of each."""
    from elman.inspect.explain import views_of

    return [
        {
            "name": view.name,
            "about": view.about,
            "joint": view.joint,
            "takes_tokens": view.takes_tokens,
            "options": offered(view.Options),
        }
        for view in views_of(served.model).values()
        if not view.takes_files
    ]


@router.get("/healthz", response_model=Status)
async def health(request: Request) -> Response:
    """Whether the process answers."""
    return answer({"status": "ok"})


@router.get("/readyz", response_model=Status)
async def ready(request: Request) -> Response:
    """Whether requests are taken on."""
    service = service_of(request)
    if service.draining:
        raise Refused(503, "the service is ending", retry_after=2)
    if not service.ready:
        raise Refused(503, "the service is loading its models", retry_after=2)
    return answer({"status": "ready", "models": list(service.shelf.served)})


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"example": "# HELP"}}}})
async def metrics(request: Request) -> Response:
    """Figures for Prometheus."""
    text, kind = service_of(request).metrics.written()
    return Response(text, media_type=kind)
