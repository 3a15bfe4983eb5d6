"""`/v1/explain`: the views of `elman explain` that read no files, as their JSON, or drawn."""

import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from elman.serve.answering import as_list, check_count, check_texts, service_of, to_json, unless_gone
from elman.serve.drawing import TYPES, Format, drawn
from elman.serve.errors import Refused
from elman.serve.garbage import settle
from elman.serve.limits import Limits
from elman.serve.options import check_options, refuse_files, refuse_unknown
from elman.serve.route import JsonRoute
from elman.serve.schemas import ERRORS, ExplainRequest, Explanation
from elman.serve.uploads import check_records, image_of, question_of
from elman.tasks import TASKS

router = APIRouter(responses=ERRORS, route_class=JsonRoute)
MOST = 64
"""Texts of an explanation at most: what is computed is large."""


@router.post("/v1/explain", response_model=Explanation)
async def explain(request: Request, body: ExplainRequest) -> Response:
    """What a model does with texts, or with images: a view of it, as data."""
    service = service_of(request)
    served = service.shelf.find(body.model)
    check_options(body.options, service.limits)
    given = _images(body, service.limits) if TASKS[served.task].record_has_image else _texts(body, service.limits)
    asked = (served.model, given, body.view, body.options, body.format)
    (found,) = await unless_gone(request, service.examiner.submit("explain", [asked], _explained))
    return Response(found, media_type=TYPES.get(body.format, "application/json"))


def _texts(body: ExplainRequest, limits: Limits) -> list[Any]:
    if body.input is None or body.records is not None:
        raise Refused(400, "what is to be explained stands in 'input': texts, and no 'records'", param="input")
    texts = as_list(body.input)
    check_count(len(texts), MOST, "texts", "input")
    check_texts([text if isinstance(text, str) else " ".join(text) for text in texts], limits, "input")
    return texts


def _images(body: ExplainRequest, limits: Limits) -> list[dict[str, Any]]:
    if body.records is None or body.input is not None:
        message = "this model sees images: give 'records', each with 'image' in base64, and no 'input'"
        raise Refused(400, message, param="records")
    check_count(len(body.records), MOST, "images", "records")
    check_records(body.records, limits.max_characters, uploads=True)
    return body.records


def _explained(items: list[Any]) -> list[bytes]:
    first = "torch" not in sys.modules
    from elman.inspect.explain import explain, find_view

    found = []
    for model, given, name, options, form in items:
        view = find_view(model, name)
        refuse_unknown(options, view.Options.model_fields, f"the view '{view.name}'")
        refuse_files(options, view.Options.model_fields)
        if view.takes_files:
            raise Refused(400, f"the view '{view.name}' reads files, which is not offered here", param="view")
        if TASKS[model.task].record_has_image:
            shown = _of_images(model, given, view.name, options, form)
        else:
            explanation = explain(model, given, view.name, **options)
            shown = drawn(explanation.page, explanation.to_dict, form)
        found.append(shown if isinstance(shown, bytes) else to_json(shown))
    if first and "torch" in sys.modules:
        settle()  # PyTorch is among what stays
    return found


def _of_images(
    model: Any, records: list[dict[str, Any]], view: str, options: dict[str, Any], form: Format
) -> dict[str, Any] | bytes:
    """A view of uploaded images. Views open files, so that is what they are meanwhile; answers call them by number."""
    from elman.inspect.explain import explain

    with tempfile.TemporaryDirectory() as folder:
        names, each = [f"image {number}" for number in range(1, len(records) + 1)], []
        for number, (name, record) in enumerate(zip(names, records, strict=True), 1):
            path = Path(folder, name)
            path.write_bytes(image_of(record, number))
            if model.task == "caption":
                each.append(explain(model, str(path), view, **options))
            else:
                each.append(explain(model, question_of(record, number), view, image=str(path), **options))
        texts = names if model.task == "caption" else [one.texts[0] for one in each]
        data = [one.data[0] for one in each]
        seen = replace(each[0], texts=texts, data=data)
        told = replace(seen, data=[replace(one, image=name) for one, name in zip(data, names, strict=True)])
        return drawn(seen.page, told.to_dict, form)
