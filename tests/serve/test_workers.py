"""Models that change under load, and workers that die."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from elman.serve.shelf import fingerprint, signature
from tests.serve.running import Running, events, eventually
from tests.serve.test_leaving import LONG


class Load:
    """Clients that ask without a pause, on connections that they keep, and note every answer."""

    def __init__(self, url: str, clients: int = 4, **body: Any) -> None:
        self.url, self.body, self.stopped = url, body, threading.Event()
        self.answers: list[tuple[int, str]] = []
        self.noted = [0] * clients
        """Answers of each client."""
        self.threads = [threading.Thread(target=self._run, args=(number,)) for number in range(clients)]

    def _run(self, number: int) -> None:
        client = httpx.Client(base_url=self.url, timeout=60)
        while not self.stopped.is_set():
            try:
                response = client.post("/v1/completions", json=self.body)
                self.answers.append((response.status_code, response.json().get("system_fingerprint", "")))
            except httpx.HTTPError as error:
                self.answers.append((0, repr(error)))
                client.close()
                client = httpx.Client(base_url=self.url, timeout=60)
            self.noted[number] += 1
        client.close()

    def noted_all(self) -> int:
        """Wait until what every client is waiting for now is noted, and say how many answers that are."""
        before = list(self.noted)
        eventually(lambda: all(now > then for now, then in zip(self.noted, before, strict=True)), 60)
        return len(self.answers)

    def __enter__(self) -> "Load":
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopped.set()
        for thread in self.threads:
            thread.join()

    @property
    def failed(self) -> list[tuple[int, str]]:
        return [answer for answer in self.answers if answer[0] != 200]


def changed(folder: Path, seed: int) -> None:
    """Train a model's folder anew, as somebody else would beside the service."""
    import elman

    model = elman.load(folder, "lm")
    weights = {name: array + seed * 1e-3 for name, array in model.weights().items()}
    elman.tasks.LanguageModel(model.config, model.vocabulary, weights).write(folder)


def test_a_model_is_replaced_under_load_without_a_failed_request(models: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(models / "lm", tmp_path / "lm")
    with Running(str(folder), "--reload", "--max-tokens", "1000000") as running:
        seen = {running.post("/v1/completions", prompt="the ", max_tokens=2).json()["system_fingerprint"]}
        with Load(running.url, prompt="the ", max_tokens=20) as load:
            with httpx.stream("POST", running.url + "/v1/completions", json=LONG, timeout=60) as response:
                pieces = events(response)
                first = json.loads(next(pieces))["system_fingerprint"]
                changed(folder, 1)
                eventually(lambda: len({name for _, name in load.answers} | seen) == 2, 60)
                late = [json.loads(one) for one in [next(pieces) for _ in range(3)]]
                assert {one["system_fingerprint"] for one in late} == {first} == seen  # it ends as it began
            (good,) = {name for _, name in load.answers} - seen  # the last may still be of the old one
            (folder / "model.safetensors").write_bytes(b"broken")
            eventually(lambda: any("is not replaced" in line for line in running.said), 60)
            before = load.noted_all()
            eventually(lambda: len(load.answers) > before + 20)
            assert load.answers[-1] == (200, good)  # the old one goes on
        assert not load.failed
        told = next(line for line in running.said if "is not replaced" in line)
        assert str(folder) not in told
        assert running.metric("elman_loads_total", outcome="failed") == 1
        assert running.end() == 0


def children(pid: int) -> set[int]:
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task/{pid}/children")
    if not tasks.exists():
        pytest.skip("this system does not tell which processes belong to which")
    return set(map(int, tasks.read_text().split()))


def alive(pid: int) -> bool:
    """Whether a process is there, and not only waited for by nobody."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_workers_end_with_the_process_that_started_them(models: Path) -> None:
    with Running(str(models / "classify"), "--workers", "2") as running:
        eventually(lambda: len(children(running.process.pid)) == 2)
        workers = children(running.process.pid)
        eventually(lambda: httpx.get(running.url + "/readyz").status_code == 200)
        running.process.kill()
        running.process.wait()
        eventually(lambda: not any(map(alive, workers)))
        with pytest.raises(httpx.ConnectError):
            httpx.get(running.url + "/readyz")


def test_a_worker_that_is_killed_comes_back_and_the_others_go_on(models: Path) -> None:
    with Running(str(models / "lm"), "--workers", "2", "--max-tokens", "1000000") as running:
        eventually(lambda: len(children(running.process.pid)) == 2)
        eventually(lambda: httpx.get(running.url + "/readyz").status_code == 200)
        first = children(running.process.pid)
        for pid in first:  # the memory of the models is that of all
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
            kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in rollup.splitlines()[1:]}
            assert kilobytes["Private_Dirty"] < kilobytes["Rss"] / 2
        with Load(running.url, clients=4, prompt="the ", max_tokens=20) as load:
            eventually(lambda: len(load.answers) > 20)
            os.kill(min(first), signal.SIGKILL)
            killed = time.monotonic()
            eventually(lambda: len(children(running.process.pid) - {min(first)}) == 2)
            before = load.noted_all()  # also what the dead worker was answering
            eventually(lambda: len(load.answers) > before + 40)
            assert time.monotonic() - killed < 60
        assert len(load.failed) <= 4  # those that the dead worker was answering
        assert not [answer for answer in load.answers[before:] if answer[0] != 200]
        assert any("ended by signal 9: another one is started" in line for line in running.said)
        assert running.metric("elman_requests_total", path="/v1/completions") >= len(load.answers) - 8  # of both
        with httpx.stream("POST", running.url + "/v1/completions", json=LONG | {"max_tokens": 3000}, timeout=60) as one:
            pieces = events(one)
            next(pieces)
            running.process.send_signal(signal.SIGTERM)
            assert list(pieces)[-1] == "[DONE]"
        assert running.end() == 0


def test_a_changed_member_of_an_ensemble_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "members" / "2"
    place.mkdir(parents=True)
    (tmp_path / "config.json").write_text('{"members": 2}')
    (tmp_path / "model.safetensors").write_bytes(b"one")
    (place / "model.safetensors").write_bytes(b"two")
    before = signature(tmp_path), fingerprint(tmp_path)
    (place / "model.safetensors").write_bytes(b"three")
    assert signature(tmp_path) != before[0] and fingerprint(tmp_path) != before[1]
