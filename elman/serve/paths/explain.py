"""`/v1/explain`: every view of `elman explain`, as its JSON, or drawn."""

from typing import Any

from fastapi import APIRouter, Request, Response

from elman.serve.answering import answer, as_list, check_texts, service_of, unless_gone
from elman.serve.drawing import TYPES, drawn
from elman.serve.errors import Refused
from elman.serve.options import refuse_files
from elman.serve.paths.predictions import IMAGES
from elman.serve.route import JsonRoute
from elman.serve.schemas import ERRORS, ExplainRequest, Explanation

router = APIRouter(responses=ERRORS, route_class=JsonRoute)
MOST = 64
"""Texts of an explanation at most: what is computed is large."""


@router.post("/v1/explain", response_model=Explanation)
async def explain(request: Request, body: ExplainRequest) -> Response:
    """What a model does with texts: a view of it, as data."""
    service = service_of(request)
    served = service.shelf.find(body.model)
    if served.task in IMAGES:
        raise Refused(400, "views of images are not offered here: elman explain draws them", param="model")
    texts = as_list(body.input)
    if len(texts) > MOST:
        raise Refused(400, f"{len(texts)} texts are too many to explain at a time: give at most {MOST}", param="input")
    spoken = [text if isinstance(text, str) else " ".join(text) for text in texts]
    check_texts(spoken, service.limits, "input")
    asked = (served.model, texts, body.view, body.options, body.format)
    (found,) = await unless_gone(request, service.examiner.submit("explain", [asked], _explained))
    return Response(found, media_type=TYPES[body.format]) if isinstance(found, bytes) else answer(found)


def _explained(items: list[Any]) -> list[dict[str, Any] | bytes]:
    from elman.inspect.explain import explain, find_view

    found = []
    for model, texts, name, options, form in items:
        view = find_view(model, name)
        refuse_files(options, view.Options.model_fields)
        explanation = explain(model, texts, view.name, **options)
        found.append(drawn(explanation.page, explanation.to_dict, form))
    return found
