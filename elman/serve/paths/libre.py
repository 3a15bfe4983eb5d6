"""`/translate` and `/languages` in the shape of LibreTranslate, for its clients."""

import re
from typing import Any
from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from pydantic_core import from_json

from elman.serve.answering import answer, as_list, aside, check_most, service_of, unless_gone
from elman.serve.errors import Refused
from elman.serve.paths.predictions import translated
from elman.serve.schemas import ERRORS, Language, LibreAnswer, LibreRequest
from elman.serve.service import Service
from elman.serve.shelf import Served

router = APIRouter(responses=ERRORS)
PAIR = re.compile(r"([a-z]{2,3})-([a-z]{2,3})")
UNKNOWN = "und"
"""The code of a language that is not known."""
NAMES = {
    "ar": "Arabic",
    "cs": "Czech",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "hi": "Hindi",
    "hu": "Hungarian",
    "it": "Italian",
    "ja": "Japanese",
    "ko": "Korean",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "zh": "Chinese",
}


def languages_of(service: Service, served: Served) -> tuple[str, str]:
    """The codes of a translator's languages: as told, as its name says (de-en), or as its training files end."""
    if served.name in service.languages:
        return service.languages[served.name]
    if (found := PAIR.fullmatch(served.name)) is not None:
        return found[1], found[2]
    files = served.model.recipe.get("data", {}).get("train", [])
    ends = [str(name).rsplit(".", 1)[-1] for name in files if isinstance(name, str)]
    if len(ends) == 2 and all(end in NAMES for end in ends):
        return ends[0], ends[1]
    return UNKNOWN, served.name


def _translators(service: Service) -> list[tuple[Served, str, str]]:
    served = [one for one in service.shelf.served.values() if one.task == "translate"]
    return [(one, *languages_of(service, one)) for one in served]


@router.get("/languages", response_model=list[Language])
async def languages(request: Request) -> Response:
    """The languages of the translators that are loaded."""
    found: dict[str, list[str]] = {}
    for _, source, target in _translators(service_of(request)):
        found.setdefault(source, []).append(target)
    return answer([{"code": code, "name": NAMES.get(code, code), "targets": found[code]} for code in found])


_BODY = {"schema": LibreRequest.model_json_schema()}


@router.post(
    "/translate",
    response_model=LibreAnswer,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": _BODY, "application/x-www-form-urlencoded": _BODY},
        }
    },
)
async def translate(request: Request) -> Response:
    """Translate a text, or several, from a language to another."""
    service, body = service_of(request), await _read(request)
    if body.format != "text":
        raise Refused(400, f"the format {body.format!r} is not offered: send plain text", param="format")
    served = _find(service, body)
    check_most(body.alternatives, service.limits.max_n - 1, "alternatives")
    texts, options = as_list(body.q), {"n_best": body.alternatives + 1}
    found = await unless_gone(request, translated(served, texts, options, "q"))
    single = isinstance(body.q, str)

    def written() -> Response:
        value: dict[str, Any] = {"translatedText": found[0].text if single else [one.text for one in found]}
        if body.alternatives:
            others = [[other.text for other in one.n_best[1:]] for one in found]
            value["alternatives"] = others[0] if single else others
        return answer(value)

    return await aside(sum(map(len, texts)), written)


async def _read(request: Request) -> LibreRequest:
    """The fields of a request, which may be JSON or those of a form."""
    kind, raw = request.headers.get("content-type", "").partition(";")[0].strip().lower(), await request.body()
    return await aside(len(raw), lambda: _fields(kind, raw))


def _fields(kind: str, raw: bytes) -> LibreRequest:
    try:
        if kind == "application/x-www-form-urlencoded":
            form = parse_qs(raw.decode(), max_num_fields=100, errors="strict")
            fields: Any = {key: several if key == "q" and several[1:] else several[-1] for key, several in form.items()}
        elif kind == "application/json":
            fields = from_json(raw)
        else:
            raise Refused(415, "send JSON, or the fields of a form, and say so with Content-Type")
    except (ValueError, RecursionError):
        raise Refused(400, "the body cannot be read: it is no JSON, and no form") from None
    try:
        return LibreRequest.model_validate(fields)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_url=False, include_input=False)) from None


def _find(service: Service, body: LibreRequest) -> Served:
    """The translator for the languages that are asked for."""
    for served, source, target in _translators(service):
        if body.target in (target, served.name) and body.source in ("auto", source):
            return served
    known = ", ".join(f"{source} to {target}" for _, source, target in _translators(service)) or "none"
    raise Refused(
        400, f"there is no translator from '{body.source}' to '{body.target}': there are {known}", param="target"
    )
