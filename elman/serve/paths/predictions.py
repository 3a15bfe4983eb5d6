"""What models answer to texts: classes, tags, translations, scores, what comes next; and any task's records."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response

from elman.serve.answering import (
    QUICK,
    as_list,
    aside,
    check_characters,
    check_count,
    check_most,
    check_texts,
    service_of,
    to_json,
    unless_gone,
)
from elman.serve.errors import Refused
from elman.serve.options import MOST_LISTED, check_options, refuse_files, refuse_unknown
from elman.serve.route import JsonRoute
from elman.serve.schemas import (
    ERRORS,
    InputRequest,
    NextRequest,
    PredictRequest,
    Results,
    ScoreRequest,
    TagRequest,
    TranslateRequest,
)
from elman.serve.shelf import Served
from elman.serve.uploads import check_records, image_of, question_of
from elman.tasks import TASKS
from elman.tasks.predict import PredictOptions
from elman.tasks.search import Search
from elman.text.tagging import cut, join

router = APIRouter(responses=ERRORS, route_class=JsonRoute)
IMAGES = 32
"""Uploaded images that are seen at a time."""


async def _answer(served: Served, size: int, results: Callable[[], Iterable[Any]]) -> Response:
    """An answer with the results of about so many characters."""

    def written() -> bytes:
        # One by one: so that Python can turn to other requests in between.
        return b'{"model":%b,"results":[%b]}' % (to_json(served.name), b",".join(map(to_json, results())))

    return Response(await aside(size, written), media_type="application/json")


@router.post("/v1/classify", response_model=Results)
async def classify(request: Request, body: InputRequest) -> Response:
    """The classes of texts, with the probability of each."""
    service = service_of(request)
    served, texts = service.shelf.find(body.model, "classify"), as_list(body.input)
    check_texts(texts, service.limits, "input")
    found = await unless_gone(request, served.batcher.submit("answers", texts, served.model.answers))
    each = zip(texts, found, strict=True)
    return await _answer(served, _size(texts), lambda: (_classified(text, one) for text, one in each))


def _size(texts: Sequence[str]) -> int:
    return sum(map(len, texts))


def _classified(text: str, one: Any) -> dict[str, Any]:
    ordered = sorted(one.probabilities.items(), key=lambda pair: -pair[1])
    likely = {label: round(probability, 6) for label, probability in ordered}
    return {"text": text, "label": one.label, "labels": list(one.labels), "probabilities": likely}


@router.post("/v1/tag", response_model=Results)
async def tag(request: Request, body: TagRequest) -> Response:
    """The tags of texts, or of ready tokens, and the spans that they write."""
    service = service_of(request)
    served = service.shelf.find(body.model, "tag")
    if (body.input is None) == (body.tokens is None):
        raise Refused(400, "a tagger wants either texts in 'input' or ready 'tokens': give one of them", param="input")
    if body.input is not None:
        texts = items = as_list(body.input)
        check_texts(texts, service.limits, "input")
    else:
        given: Any = body.tokens
        items = [given] if isinstance(given[0], str) else given
        texts = [" ".join(tokens) for tokens in items]
        check_texts(texts, service.limits, "tokens")
        for number, tokens in enumerate(items, 1):
            if not all(token.strip() for token in tokens):
                raise Refused(400, f"text {number} of {len(items)} has an empty token: leave it out", param="tokens")

    def work(several: list[Any]) -> list[Any]:
        cuts = [cut(one) if isinstance(one, str) else join(one) for one in several]
        found: list[Any] = served.model.tag(cuts)
        return found

    found = await unless_gone(request, served.batcher.submit("tag", items, work))
    return await _answer(served, _size(texts), lambda: (one.to_dict() for one in found))


@router.post("/v1/next", response_model=Results)
async def next_tokens(request: Request, body: NextRequest) -> Response:
    """The likeliest next tokens of texts, or with `words` whole words."""
    service = service_of(request)
    served, texts = service.shelf.find(body.model, "lm"), as_list(body.input)
    check_count(len(texts), service.limits.max_texts, "texts", "input")
    check_characters(max(map(len, texts)), service.limits.max_characters, "input")
    check_most(body.top, MOST_LISTED, "top")
    asked: dict[str, Any] = {"top": body.top, "label": body.label, "words": body.words}

    def work(several: list[str]) -> list[Any]:
        found: list[Any] = served.model.predict(several, **asked)
        return found

    found = await unless_gone(request, served.batcher.submit(("next", *asked.values()), texts, work))
    each = zip(texts, found, strict=True)
    return await _answer(served, len(texts) * body.top * 40, lambda: (_next(text, one) for text, one in each))


def _next(text: str, tokens: Sequence[Any]) -> dict[str, Any]:
    return {"text": text, "next": [{"token": one.token, "probability": round(one.probability, 9)} for one in tokens]}


@router.post("/v1/score", response_model=Results)
async def score(request: Request, body: ScoreRequest) -> Response:
    """The log-probability of every token of texts; of a translator, that of translations."""
    service = service_of(request)
    tasks = ("lm", "translate") if body.model is not None else ("lm",) if body.target is None else ("translate",)
    served, texts = service.shelf.find(body.model, *tasks), as_list(body.input)
    check_texts(texts, service.limits, "input")
    if served.task == "translate":
        return await _score_pairs(request, served, texts, body)
    if body.target is not None:
        raise Refused(400, "'target' is for translators: leave it out", param="target")
    label = body.label

    def work(several: list[str]) -> list[Any]:
        return [served.model.score(text, label) for text in several]

    found = await unless_gone(request, served.batcher.submit(("score", label), texts, work))
    each = zip(texts, found, strict=True)
    return await _answer(served, _size(texts), lambda: (_scored(text, tokens) for text, tokens in each))


def _scored(text: str, tokens: Sequence[Any]) -> dict[str, Any]:
    total = sum(one.log_prob for one in tokens)
    mean = total / max(len(tokens), 1)
    each = [{"token": one.token, "log_prob": round(one.log_prob, 6)} for one in tokens]
    perplexity = math.exp(-mean) if mean > -700 else None
    return {"text": text, "log_prob": round(total, 6), "perplexity": perplexity, "tokens": each}


async def _score_pairs(request: Request, served: Served, texts: list[str], body: ScoreRequest) -> Response:
    targets = as_list(body.target or ())
    if len(targets) != len(texts):
        raise Refused(
            400, f"there are {len(texts)} texts and {len(targets)} targets: give one for each", param="target"
        )
    check_texts(targets, served.limits, "target")
    pairs = list(zip(texts, targets, strict=True))
    found = await unless_gone(request, served.batcher.submit("pairs", pairs, served.model.log_probs))
    each = [
        {"text": text, "target": target, "log_prob": round(log_prob, 6)}
        for (text, target), log_prob in zip(pairs, found, strict=True)
    ]
    return await _answer(served, _size(texts), lambda: each)


@router.post("/v1/translate", response_model=Results)
async def translate(request: Request, body: TranslateRequest) -> Response:
    """Translations, with everything that the search can be asked for."""
    service = service_of(request)
    served, texts = service.shelf.find(body.model, "translate"), as_list(body.input)
    found = await unless_gone(request, translated(served, texts, body.model_dump(exclude={"model", "input"})))
    return await _answer(served, _size(texts) * body.n_best, lambda: map(_translation, found))


async def translated(served: Served, texts: list[str], options: dict[str, Any], param: str = "input") -> list[Any]:
    """The translations of some texts, those of `param`, within the limits of the service."""
    limits = served.limits
    check_texts(texts, limits, param)
    check_most(options.get("beam"), limits.max_beam, "beam")
    check_most(options.get("n_best"), limits.max_n, "n_best")
    for name in ("min_length", "max_length"):
        check_most(options.get(name), limits.max_tokens, name)
    search = Search.of(options)

    def work(items: list[tuple[str, Search]]) -> list[Any]:
        found: list[Any] = served.model.translate([text for text, _ in items], [search for _, search in items])
        return found

    # What is drawn takes its random numbers by its place in a batch: it has one of its own.
    key = ("translate",) if search.temperature is None else ("translate", object())
    return await served.batcher.submit(key, [(text, search) for text in texts], work)


def _translation(one: Any) -> dict[str, Any]:
    value = {"text": one.source, **one.to_dict(), "source_tokens": one.source_tokens}
    value["target_tokens"] = one.target_tokens
    value["n_best"] = [
        {
            "translation": each.text,
            "score": round(each.score, 6),
            "log_prob": round(each.log_prob, 6),
            "finished": each.finished,
        }
        for each in one.n_best
    ]
    if one.weights is not None:
        value["weights"] = one.weights.astype(float).round(5).tolist()
    return value


# Any task


@router.post("/v1/predict", response_model=Results)
async def predict(request: Request, body: PredictRequest) -> Response:
    """What `elman predict --json` says of records, whatever the model's task."""
    service = service_of(request)
    served, limits = service.shelf.find(body.model), service.limits
    check_count(len(body.records), limits.max_texts, "records", "records")
    fields = TASKS[served.task].Options.model_fields
    refuse_unknown(body.options, fields, f"a prediction of '{served.task}'")
    refuse_files(body.options, fields)
    check_options(body.options, limits)
    check_records(body.records, limits.max_characters, uploads=TASKS[served.task].record_has_image)
    asked = (body.records, body.options)
    key = ("predict", id(asked))  # records of two requests may belong together, as the rows of a series do

    def work(items: list[Any]) -> list[Any]:
        return [predicted(served.model, *item) for item in items]

    (found,) = await unless_gone(request, served.batcher.submit(key, [asked], work))
    return await _answer(served, int(request.headers.get("content-length", QUICK + 1)), lambda: found)


def predicted(model: Any, records: list[Any], options: dict[str, Any]) -> list[Any]:
    """The answers of `elman predict --json` for records in memory; of numbers, one series."""
    if TASKS[model.task].record_has_image:
        return list(_of_images(model, records, options))
    if not isinstance(records[0], str | dict):
        return [model.predict(records).to_dict()] if model.task == "series" else model.predict(records, **options)
    predictor, asked = TASKS[model.task].predictor(model, options)
    lines = [json.dumps({"text": one} if isinstance(one, str) else one) for one in records]
    settings = PredictOptions(where=Path("the request"), format="jsonl", as_json=True, asked=asked)
    return [json.loads(line) for line in predictor.predict_lines(iter(lines), settings)]


def _of_images(model: Any, records: list[Any], options: dict[str, Any]) -> Iterator[Any]:
    """Captions of uploaded images, or answers to questions about them: images are called by their numbers."""
    predictor, asked = TASKS[model.task].predictor(model, dict(options))
    settings = PredictOptions(where=Path("the request"), as_json=True, asked=asked)
    for start in range(0, len(records), IMAGES):
        some = []
        for number, record in enumerate(records[start : start + IMAGES], start + 1):
            content, fields = image_of(record, number), {name: record[name] for name in record if name != "image"}
            if not TASKS[model.task].record_is_image:
                fields["question"] = question_of(record, number)
            some.append(predictor.uploaded(number, content, fields, asked))
        for one, answer in zip(some, predictor.answers(some), strict=True):
            yield from map(json.loads, predictor.written(one, answer, settings))
