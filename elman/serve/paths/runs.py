"""`/v1/runs`: the training runs of a folder, their recipes, scores and logs; only where `--runs` names one."""

import asyncio
import json
import time
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from elman.errors import UserError
from elman.serve.answering import answer, service_of
from elman.serve.errors import Refused, scrubbed
from elman.serve.schemas import ERRORS, RunList, RunLogAnswer, RunView
from elman.tasks.lock import at_work
from elman.tasks.run import is_run, saved_report
from elman.train.log import read_log
from elman.train.recipe import read_toml

router = APIRouter(responses=ERRORS)
MOST_RUNS = 1000
DEEP = 3
"""How many folders below the one that was named a run may stand."""
RECENT = 120
"""Seconds without a word after which a run that is not done counts as stopped, where its process is not to be seen."""
MOST_RECORDS = 20_000
NOTHING = {"task": None, "state": "failed", "step": 0, "records": 0, "updated": None, "dev": None}
"""What there is to say of a run that has no log, or that cannot be read."""


def find_runs(folder: Path) -> dict[str, Path]:
    """The runs below a folder by name: the folders between, with slashes."""
    found: dict[str, Path] = {}
    level = [folder]
    for _ in range(DEEP + 1):
        below: list[Path] = []
        for one in sorted(level):
            if one != folder and is_run(one):
                found[one.relative_to(folder).as_posix()] = one
            below += [each for each in one.iterdir() if each.is_dir() and not each.name.startswith(".")]
            if len(found) >= MOST_RUNS:
                return found
        level = below
    return found


def _folder(request: Request) -> Path:
    folder = service_of(request).runs
    if folder is None:
        raise Refused(404, "no folder of runs was named: start the service with --runs FOLDER", code="no_runs")
    return folder


def find_run(folder: Path, name: str) -> Path:
    """A run by its name, which is one of those that were found and never a path of the caller's."""
    runs = find_runs(folder)
    if name not in runs:
        raise Refused(404, f"there is no run {name!r}", code="run_not_found", param="name")
    return runs[name]


def summary(name: str, run: Path) -> dict[str, Any]:
    """What there is to say of a run in a line."""
    log, report = run / "log.jsonl", saved_report(run)
    records = read_log(log)
    updated = log.stat().st_mtime if log.exists() else run.stat().st_mtime
    held_out = [record for record in records if record.get("kind") == "dev"]
    running = at_work(run)
    if running is None:
        running = report is None and time.time() - updated < RECENT
    state = "running" if running else "finished" if report is not None else "stopped"
    last = records[-1] if records else {}
    return {
        "id": name,
        "task": read_toml(run / "recipe.toml").get("task"),
        "state": state,
        "step": last.get("step", 0),
        "records": len(records),
        "updated": round(updated, 3),
        "dev": held_out[-1] if held_out else None,
    }


def _seen(name: str, run: Path) -> dict[str, Any]:
    """What is to be said of a run, or why it cannot be read: one that is damaged does not hide the others."""
    try:
        return summary(name, run)
    except (UserError, OSError) as error:
        return {"id": name, **NOTHING, "said": f"it cannot be read: {error}"}


@router.get("/v1/runs", response_model=RunList)
async def runs(request: Request) -> Response:
    """The runs of the folder; with those that were started from the page and failed, what they said last."""
    folder, training = _folder(request), service_of(request).training

    def work() -> list[dict[str, Any]]:
        failures = {} if training is None else training.failures()
        found = [_seen(name, run) for name, run in find_runs(folder).items()]
        for run in found:
            said = failures.pop(run["id"], None)
            if training is not None and training.is_running(run["id"]):
                run["state"] = "running"  # until its process has ended, also where it has let go of the folder
                run.pop("said", None)  # what can be read of it is not all there yet
            elif said is not None and run["state"] in ("stopped", "failed"):  # and did not go on elsewhere
                run |= {"state": "failed", "said": said}
        return found + [{"id": name, **NOTHING, "said": said} for name, said in failures.items()]

    return answer({"runs": scrubbed(await asyncio.to_thread(work))})


@router.get("/v1/runs/{name:path}/log", response_model=RunLogAnswer)
async def log(request: Request, name: str, after: Annotated[int, Query(ge=0, lt=2**53)] = 0) -> Response:
    """The records of a run's log from the given number on; ask again with what `next` says."""
    folder = _folder(request)

    def work() -> dict[str, Any]:
        records = read_log(find_run(folder, name) / "log.jsonl")
        some = records[after : after + MOST_RECORDS]
        return {"records": some, "next": min(after, len(records)) + len(some)}

    return answer(await asyncio.to_thread(work))


@router.get("/v1/runs/{name:path}", response_model=RunView)
async def run(request: Request, name: str) -> Response:
    """One run: its recipe, its scores, its card."""
    folder = _folder(request)

    def work() -> dict[str, Any]:
        found, card = find_run(folder, name), None
        if (found / "README.md").exists():
            card = (found / "README.md").read_text(encoding="utf-8", errors="replace")
        recipe = json.loads(json.dumps(read_toml(found / "recipe.toml"), default=str))  # TOML has dates
        return {**summary(name, found), "recipe": recipe, "metrics": saved_report(found), "card": card}

    return answer(scrubbed(await asyncio.to_thread(work)))
