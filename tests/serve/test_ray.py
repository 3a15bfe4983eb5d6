"""The service on Ray: two replicas on this machine, of which one is lost under load."""

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from elman.errors import UserError
from elman.serve.ray import app, builder, checked
from tests.serve.running import ROOT, eventually


def test_arguments_are_checked(models: Path) -> None:
    folders, limits = checked({"model": [f"poet={models / 'lm'}"], "max_streams": "7"})
    assert list(folders) == ["poet"] and limits.max_streams == 7
    for wrong in ({}, {"model": "nothing"}, {"model": str(models / "lm"), "max_streams": "x"}):
        with pytest.raises(UserError):
            checked(wrong)


def test_the_example_configuration_names_what_is_there() -> None:
    yaml = pytest.importorskip("yaml")
    (one,) = yaml.safe_load((ROOT / "docs" / "examples" / "ray-serve.yaml").read_text())["applications"]
    assert one["import_path"] == f"{app.__module__}:{app.__name__}"
    assert set(one["args"]) == {"model", "replicas", "max_streams"}


def test_what_a_replica_makes_answers(models: Path) -> None:
    from starlette.testclient import TestClient

    folders, limits = checked({"model": str(models / "classify")})
    front = builder(folders, limits, None)()
    client = TestClient(front)
    assert client.post("/v1/classify", json={"input": "grimgrima"}).json()["results"][0]["label"]
    assert client.get("/readyz").status_code == 200
    front.service.close()


@pytest.mark.slow
def test_a_replica_is_lost_under_load(models: Path) -> None:
    ray, serve = pytest.importorskip("ray"), pytest.importorskip("ray.serve")
    ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR")
    try:
        serve.start(http_options={"host": "127.0.0.1", "port": 8473})
        serve.run(app({"model": str(models / "classify"), "replicas": "2"}), name="elman", route_prefix="/")
        url = "http://127.0.0.1:8473"
        eventually(lambda: len(pids()) == 2, 120)
        first = pids()
        outcomes: list[int] = []
        stopped = threading.Event()
        loads = [threading.Thread(target=load, args=(url, outcomes, stopped)) for _ in range(4)]
        for one in loads:
            one.start()
        time.sleep(2)
        os.kill(min(first), signal.SIGKILL)
        eventually(lambda: len(pids() - {min(first)}) == 2, 120)
        time.sleep(2)
        stopped.set()
        for one in loads:
            one.join()
        # Only what the lost replica was answering may have failed: one request of each client at most.
        assert outcomes.count(200) > 50 and len(outcomes) - outcomes.count(200) <= len(loads)
        assert set(outcomes[-20:]) == {200}
    finally:
        serve.shutdown()
        ray.shutdown()


def pids() -> set[int]:
    """The processes of the replicas that live."""
    import ray

    found: set[int] = set()
    for actor in ray.util.list_named_actors(all_namespaces=True):
        if actor["name"].startswith("SERVE_REPLICA::elman"):
            with suppress(ray.exceptions.RayError, ValueError):  # one that has just died
                replica: Any = ray.get_actor(actor["name"], namespace=actor["namespace"])
                found.add(ray.get(replica.__ray_call__.remote(lambda self: os.getpid()), timeout=10))
    return found


def load(url: str, outcomes: list[int], stopped: threading.Event) -> None:
    while not stopped.is_set():
        try:
            outcomes.append(httpx.post(url + "/v1/classify", json={"input": "grimgrima"}, timeout=30).status_code)
        except httpx.HTTPError:
            outcomes.append(0)
