"""Clients that leave free what they had, and nobody else notices; the service ends when it is told to."""

import asyncio
import json
import signal
import socket
import threading
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elman.serve import answering
from tests.serve.running import Running, events, eventually

LONG: dict[str, Any] = {"model": "lm", "prompt": "the ", "max_tokens": 100_000, "stream": True, "seed": 1}


def processes_below(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


def raw_request(path: str, body: dict[str, Any]) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def test_clients_that_vanish_free_their_rows_and_leave_others_alone(service: Running) -> None:
    kept = {"prompt": "the cat", "max_tokens": 3000, "seed": 9}
    expected = service.post("/v1/completions", model="lm", **kept).json()["choices"][0]["text"]
    found: list[str] = []

    def stay() -> None:
        with service.http.stream("POST", "/v1/completions", json=kept | {"stream": True}, timeout=60) as response:
            for one in list(events(response))[:-1]:
                found.append(json.loads(one)["choices"][0]["text"])

    staying = threading.Thread(target=stay)
    staying.start()
    for stream in (True, False):  # also those who wait for a whole answer
        gone = []
        for _ in range(40):
            connection = socket.create_connection(("127.0.0.1", service.port))
            connection.sendall(raw_request("/v1/completions", LONG | {"stream": stream}))
            if stream:
                assert connection.recv(64).startswith(b"HTTP/1.1 200")
            gone.append(connection)
        eventually(lambda: service.metric("elman_streams") >= 40)
        for connection in gone:
            connection.close()
        eventually(lambda: service.metric("elman_streams") <= 1)
    staying.join(60)
    assert "".join(found) == expected
    eventually(lambda: service.metric("elman_streams") == 0)


def test_a_long_text_does_not_make_a_short_one_wait(models: Path) -> None:
    with Running(str(models / "lm"), "--max-tokens", "2000000000") as running:
        endless = LONG | {"max_tokens": 2_000_000_000}
        with running.http.stream("POST", "/v1/completions", json=endless, timeout=60) as response:
            pieces = events(response)
            next(pieces)
            assert running.post("/v1/completions", model="lm", prompt="the ", max_tokens=5).status_code == 200
            assert running.metric("elman_streams") == 1  # the long one is still being written


def test_sigterm_lets_streams_come_to_their_end(models: Path) -> None:
    with Running(str(models / "lm"), "--max-tokens", "2000000000", "--max-seconds", "10") as running:
        long = LONG | {"max_tokens": 2_000_000_000}
        with running.http.stream("POST", "/v1/completions", json=long, timeout=60) as response:
            pieces = events(response)
            written = [next(pieces)]
            running.process.send_signal(signal.SIGTERM)
            eventually(lambda: running.http.get("/readyz").status_code == 503)
            refused = running.post("/v1/completions", model="lm", prompt="the ")
            assert refused.status_code == 503 and refused.headers["retry-after"] == "2"
            assert running.http.get("/healthz").status_code == 200
            written += list(pieces)
        assert written[-1] == "[DONE]"
        assert json.loads(written[-2])["choices"][0]["finish_reason"] == "length"
        assert running.end() == 0


def test_an_experiment_does_not_keep_the_service_from_its_end(models: Path) -> None:
    """It takes minutes and can be run again; who waits for it is told."""
    with Running(str(models / "lm")) as running:
        with running.http.stream("POST", "/v1/lab", json={"experiment": "memory"}, timeout=60) as response:
            eventually(lambda: len(processes_below(running.process.pid)) > 0)
            start = time.monotonic()
            running.process.send_signal(signal.SIGTERM)
            *_, told, last = events(response)
        assert "ended before it had a result" in json.loads(told)["error"]["message"] and last == "[DONE]"
        assert running.end() == 0 and time.monotonic() - start < 20  # and not the 30 that requests have


def test_wrong_options_of_an_experiment_are_refused_before_it_begins(service: Running) -> None:
    told = service.post("/v1/lab", experiment="bptt", options={"seedz": 2})
    assert told.status_code == 400 and told.json()["error"]["param"] == "options"
    assert "did you mean 'seeds'?" in told.json()["error"]["message"]


def test_an_end_that_takes_too_long_is_cut_short(models: Path) -> None:
    with Running(str(models / "lm"), "--max-tokens", "2000000000", "--drain-seconds", "0.3") as running:
        with running.http.stream(
            "POST", "/v1/completions", json=LONG | {"max_tokens": 2_000_000_000}, timeout=60
        ) as response:
            pieces = events(response)
            next(pieces)
            start = time.monotonic()
            assert running.end() == 0
            assert time.monotonic() - start < 20
        assert any("cut off" in line for line in running.said)


@pytest.mark.parametrize("ended", [False, True], ids=["answered", "ended"])
def test_who_leaves_in_the_moment_of_the_answer(monkeypatch: pytest.MonkeyPatch, ended: bool) -> None:
    """What is done with the answer is not cut off; and who ends the request from outside does end it."""
    monkeypatch.setattr(answering, "SHORT", 0.0)
    told = []

    async def both() -> None:
        loop = asyncio.get_running_loop()
        leaving, answer = loop.create_future(), loop.create_future()

        async def receive() -> dict[str, str]:
            await leaving
            return {"type": "http.disconnect"}

        async def work() -> str:
            return str(await answer)

        async def request() -> None:
            try:
                told.append(await answering.unless_gone(SimpleNamespace(receive=receive), work()))  # type: ignore[arg-type]
                await asyncio.sleep(0.01)
                told.append("sent")
            except answering.Gone:
                told.append("gone")

        asked = asyncio.ensure_future(request())
        await asyncio.sleep(0.05)
        if ended:
            leaving.set_result(None)
            await asyncio.sleep(0)
            loop.call_soon(asked.cancel)
        else:  # in one turn of the loop: first the answer, then that the client has left
            loop.call_soon(lambda: (loop.call_soon(answer.set_result, "found"), leaving.set_result(None)))
        await asyncio.wait([asked], timeout=5)
        told.append("cancelled" if asked.cancelled() else "done")

    asyncio.run(both())
    assert told == (["cancelled"] if ended else ["found", "sent", "done"])


@pytest.mark.parametrize(
    ("fails", "expected"), [("http.response.start", ["left"]), ("http.response.body", ["left", "ended"])]
)
def test_events_end_at_once_where_something_cannot_be_sent(fails: str, expected: list[str]) -> None:
    """What they hold, as the process of an experiment, is given back whether or not they have begun."""
    told: list[str] = []

    async def stream() -> AsyncGenerator[bytes, None]:
        try:
            yield b"data: 1\n\n"
            yield b"data: 2\n\n"
        finally:
            told.append("ended")

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == fails:
            raise OSError("the other side is gone")

    async def ask() -> None:
        request: Any = SimpleNamespace(receive=receive)
        events_of = stream()
        with pytest.raises(OSError, match="gone"):
            await answering.EventStream(request, events_of, lambda: told.append("left"))({}, receive, send)
        assert told == expected

    asyncio.run(ask())
