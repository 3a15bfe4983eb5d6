"""Starting, stopping and resuming runs from the page; only where `--allow-training` was said."""

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from elman.serve.answering import answer, service_of
from elman.serve.errors import Refused
from elman.serve.paths.runs import find_run
from elman.serve.schemas import ERRORS, RunRequest, RunState, TrainingView
from elman.serve.training import Trainer
from elman.tasks import TASKS
from elman.train.recipe import read_toml

router = APIRouter(responses=ERRORS)


def _trainer(request: Request) -> Trainer:
    trainer = service_of(request).training
    if trainer is None:
        raise Refused(403, "training is not allowed here: start the service with --allow-training", code="no_training")
    return trainer


@router.get("/v1/training", response_model=TrainingView)
async def training(request: Request) -> Response:
    """What a run can be started with: tasks, recipes, files."""
    trainer = _trainer(request)

    def work() -> dict[str, Any]:
        return {"tasks": list(TASKS), "recipes": trainer.recipes(), "files": trainer.files()}

    return answer(await asyncio.to_thread(work))


@router.post("/v1/runs", response_model=RunState)
async def start(request: Request, body: RunRequest) -> Response:
    """Start a run."""
    trainer = _trainer(request)
    await asyncio.to_thread(trainer.start, body.name, body.task, body.recipe, body.train, body.settings)
    return answer({"id": body.name, "state": "running"})


@router.post("/v1/runs/{name:path}/stop", response_model=RunState)
async def stop(request: Request, name: str) -> Response:
    """Stop a run; it saves what it has."""
    trainer = _trainer(request)
    await asyncio.to_thread(trainer.stop, name)
    return answer({"id": name, "state": "stopped"})


@router.post("/v1/runs/{name:path}/resume", response_model=RunState)
async def resume(request: Request, name: str) -> Response:
    """Go on with a run that was stopped."""
    trainer = _trainer(request)
    task = read_toml(find_run(trainer.runs, name) / "recipe.toml").get("task")
    await asyncio.to_thread(trainer.resume, name, str(task))
    return answer({"id": name, "state": "running"})
