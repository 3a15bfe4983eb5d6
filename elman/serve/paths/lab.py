"""`/v1/lab`: the experiments of the course, each in a process of its own that ends when the client leaves."""

import asyncio
import multiprocessing
from collections.abc import AsyncGenerator
from multiprocessing.connection import Connection
from typing import Any

from fastapi import APIRouter, Request, Response

from elman import __version__
from elman.errors import UserError
from elman.serve.answering import EventStream, answer, event, service_of
from elman.serve.errors import Refused
from elman.serve.options import offered, refuse_files
from elman.serve.route import JsonRoute
from elman.serve.schemas import ERRORS, LabRequest, StudioView
from elman.train.recipe import parse

router = APIRouter(responses=ERRORS, route_class=JsonRoute)
MOST = 2
"""Experiments at the same time: each takes a core for a minute or two."""
EVENTS = 'data: {"said": "seed 1 of 3"}\n\ndata: {"data": {}, "drawn": {}, "svg": ""}\n\ndata: [DONE]\n\n'


@router.get("/v1/studio", response_model=StudioView)
async def studio(request: Request) -> Response:
    """What the Studio offers beside the models: runs, training, the experiments of the course."""
    from elman.lab import EXPERIMENTS

    service = service_of(request)
    lab = [{"name": one.name, "about": one.about, "options": offered(one.Options)} for one in EXPERIMENTS.values()]
    told = {"version": __version__, "runs": service.runs is not None, "training": service.training is not None}
    return answer({**told, "limits": service.limits.model_dump(), "lab": lab})


@router.post("/v1/lab", responses={200: {"content": {"text/event-stream": {"example": EVENTS}}}})
async def lab(request: Request, body: LabRequest) -> Response:
    """Run an experiment: events that say what is done, the last with its numbers, its panels and its picture."""
    from elman.lab import find_experiment

    service = service_of(request)
    try:
        experiment = find_experiment(body.experiment)
    except UserError as error:
        raise Refused(404, str(error), param="experiment") from None
    refuse_files(body.options, experiment.Options.model_fields)
    try:
        parse(experiment.Options, body.options, where=f"the experiment '{body.experiment}'")
    except UserError as error:
        raise Refused(400, str(error), param="options") from None
    if len(service.experiments) >= MOST:
        raise Refused(
            429, f"{MOST} experiments are under way: try again when one is done", headers={"Retry-After": "30"}
        )
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("spawn").Process(
        target=_measure, args=(body.experiment, body.options, there), daemon=True
    )
    process.start()
    there.close()

    def end() -> None:
        if end in service.experiments:
            service.experiments.remove(end)
            process.kill()  # after which its last word is that there is no result

    async def events() -> AsyncGenerator[bytes, None]:
        told: dict[str, Any] = {}
        try:
            while not ("data" in told or "error" in told):
                told = await asyncio.to_thread(_next, here)
                if told:
                    yield event(told)
            yield b"data: [DONE]\n\n"
        finally:
            end()
            await asyncio.to_thread(process.join)
            here.close()

    service.experiments.add(end)
    return EventStream(request, events(), end)


def _next(told: Connection) -> dict[str, Any]:
    """The next word of an experiment; an empty one where it says nothing for a moment."""
    try:
        return told.recv() if told.poll(0.5) else {}
    except (EOFError, OSError):
        return {"error": {"message": "the experiment was ended before it had a result", "type": "server_error"}}


def _measure(name: str, options: dict[str, Any], tell: Connection) -> None:
    """Run an experiment, in a process of its own."""
    from elman.lab import run
    from elman.serve.drawing import drawn, panels

    try:
        outcome = run(name, say=lambda line: tell.send({"said": line}), **options)
    except UserError as error:
        tell.send({"error": {"message": str(error), "type": "invalid_request_error"}})
        return
    picture = drawn(outcome.page, outcome.to_dict, "svg")
    assert isinstance(picture, bytes)
    tell.send({"data": outcome.to_dict(), "drawn": panels(outcome.page()), "svg": picture.decode()})
