"""Runs that are started from the page: each once, none left behind; and runs that cannot be read."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from elman.serve.app import create_app
from elman.serve.errors import Refused
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics
from elman.serve.service import Service
from elman.serve.shelf import Shelf
from elman.serve.training import Trainer


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The processes that would train: they sleep."""
    found: list[Any] = []
    real = subprocess.Popen

    def sleeping(command: list[str], **options: Any) -> Any:
        found.append(real([sys.executable, "-c", "import time; time.sleep(3600)"], **options))
        return found[-1]

    monkeypatch.setattr("elman.serve.training.subprocess.Popen", sleeping)
    return found


def test_of_many_who_start_one_run_one_does(tmp_path: Path, started: list[Any]) -> None:
    trainer, told = Trainer(tmp_path / "runs", tmp_path, most=8), list[int]()
    together = threading.Barrier(8)

    def start() -> None:
        together.wait()
        try:
            trainer.start("same", "lm", None, [], [])
            told.append(200)
        except Refused as refused:
            told.append(refused.status_code)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    trainer.close()
    assert sorted(told) == [200] + [409] * 7 and len(started) == 1
    assert started[0].returncode == -signal.SIGTERM
    with pytest.raises(Refused, match="ending"):
        trainer.start("late", "lm", None, [], [])


def test_a_run_inside_another_goes_on(tmp_path: Path, started: list[Any]) -> None:
    """Members, folds and stages are runs of their own."""
    (tmp_path / "runs" / "three" / "members" / "2").mkdir(parents=True)
    trainer = Trainer(tmp_path / "runs", tmp_path)
    trainer.resume("three/members/2", "tag")
    assert trainer.is_running("three/members/2")
    trainer.close()
    assert trainer.failures() == {}


def test_a_run_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path) -> None:
    for name, recipe in {"fine": 'task = "lm"\nd = 2020-01-01\n', "broken": "[[[ nope", "odd": "\x00\xff"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "recipe.toml").write_bytes(recipe.encode("latin-1"))
        (tmp_path / name / "config.json").write_text("{}")
        (tmp_path / name / "log.jsonl").mkdir()
    service = Service(Shelf({}, Limits(), Metrics()), runs=tmp_path)
    service.ready = True
    client = TestClient(create_app(service))  # which raises what would end a connection
    runs = {run["id"]: run for run in client.get("/v1/runs").json()["runs"]}
    assert set(runs) == {"fine", "broken", "odd"} and runs["fine"]["task"] == "lm"
    for name in ("broken", "odd"):
        assert runs[name]["state"] == "failed" and "cannot be read" in runs[name]["said"]
        assert str(tmp_path) not in runs[name]["said"]
        told = client.get(f"/v1/runs/{name}")
        assert told.status_code == 400 and "recipe" in told.json()["error"]["message"]
    assert client.get("/v1/runs/fine").json()["recipe"]["d"] == "2020-01-01"
    assert client.get("/v1/runs/fine/log").json()["records"] == []
