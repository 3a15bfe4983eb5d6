"""What is too much is refused at once, in a sentence, and what is wrong never breaks the service."""

import json
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import BaseModel, ValidationError

from elman.bench.load import Endpoint, body, closed, measured, paced
from elman.serve import schemas
from tests.serve.running import Running, eventually
from tests.serve.test_leaving import LONG, raw_request


def refused(response: httpx.Response, status: int) -> str:
    """The sentence of an error, which is of the one shape."""
    assert response.status_code == status, response.text
    (error,) = response.json().values()
    assert error.keys() == {"message", "type", "param", "code"} and error["message"] and "\n" not in error["message"]
    return str(error["message"])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"prompt": "the", "n": 99}, "'n' is 99, and at most 16"),
    ({"prompt": "the", "max_tokens": 10**9}, "at most 100000"),
    ({"prompt": "x" * 30_000}, "30,000 characters"),
    ({"prompt": "the", "temperature": -1}, "temperature"),
    ({"prompt": "the", "stop": ""}, "stop"),
    ({"prompt": "the", "stop": ["x"] * 65}, "'stop' has 65 parts: give at most 64"),
    ({"prompt": "the", "logit_bias": {"5": 1}}, "'logit_bias' is not offered: leave it out"),
    ({"prompt": "the", "logprobs": 99}, "logprobs"),
    ({"prompt": "the", "best_of": 3}, "best_of"),
    ({"prompt": "the", "label": "north"}, "knows no labels"),
    ({"prompt": "üü"}, "never saw in training"),
    ({"prompt": "the", "tempreature": 1}, "tempreature"),
    ({"prompt": []}, "no prompt"),
    ({"prompt": "the", "seed": 2**70}, "seed"),
    ({"prompt": 3}, "prompt"),
]


@pytest.mark.parametrize(("body", "words"), WRONG, ids=[words for _, words in WRONG])
def test_wrong_completions_are_told(service: Running, body: dict[str, Any], words: str) -> None:
    assert words in refused(service.post("/v1/completions", model="lm", **body), 400)


def test_other_wrong_requests_are_told(service: Running) -> None:
    assert "did you mean 'classify'" in refused(service.post("/v1/classify", model="clasify", input="x"), 404)
    assert "is a model for 'lm'" in refused(service.post("/v1/classify", model="lm", input="x"), 400)
    assert "there is no model" in refused(service.post("/v1/classify", model="../classify", input="x"), 404)
    assert "is empty" in refused(service.post("/v1/classify", input=" "), 400)
    assert "at most 256" in refused(service.post("/v1/classify", input=["x"] * 300), 400)
    assert "at most 32" in refused(service.post("/v1/translate", input="gdced", beam=1000), 400)
    assert "coverage" in refused(service.post("/v1/translate", input="gdced", coverage=1e308), 400)
    for view, options in (("ranks", {"against": "/etc/passwd"}), ("features", {"feature": "labels:/etc/passwd"})):
        asked = {"model": "lm", "view": view, "input": "the", "options": options}
        assert "names a file" in refused(service.post("/v1/explain", **asked), 400)
    assert "'input'" in refused(service.post("/v1/explain", model="lm", records=[{"image": "aaaa"}]), 400)
    assert "names a file" in refused(
        service.post("/v1/predict", model="translate", records=["gdced"], options={"lm": "/etc"}), 400
    )
    assert "view" in refused(service.post("/v1/explain", model="lm", view="nothing", input="the"), 400)
    for option in ("view", "texts", "model"):
        asked = {"model": "lm", "view": "ranks", "input": "the", "options": {option: "x"}}
        assert "has no option" in refused(service.post("/v1/explain", **asked), 400)
    asked = {"model": "translate", "view": "tree", "input": "gdced", "options": {"beam": 64}}
    assert "at most 32" in refused(service.post("/v1/explain", **asked), 400)
    for beam in ("64", 64.0, [64]):
        asked = {"model": "translate", "records": ["gdced"], "options": {"beam": beam}}
        assert "whole number" in refused(service.post("/v1/predict", **asked), 400)
    nonsense = {"model": "classify", "records": ["x"], "options": {"nonsense": 1}}
    assert "has no option 'nonsense'" in refused(service.post("/v1/predict", **nonsense), 400)
    assert "no such path" in refused(service.http.get("/v2/models"), 404)
    assert "takes no GET" in refused(service.http.get("/v1/classify"), 405)
    assert "either texts" in refused(service.post("/v1/tag"), 400)
    assert "2 texts and 1 targets" in refused(service.post("/v1/score", input=["a", "b"], target="c"), 400)


def bodies(seed: int, count: int) -> list[bytes]:
    """Bodies that no path can make sense of."""
    draw = random.Random(seed)
    deep = b'{"input":' + b"[" * 20_000 + b"]" * 20_000 + b"}"
    fixed = [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe{}",
        b'{"input": "\\ud800"}',
        b'{"input": ' + b"9" * 6000 + b"}",
        deep,
    ]
    fixed += [
        b'{"input": NaN}',
        b'{"prompt": 1e999}',
        '{"input": "é"}'.encode("latin-1"),
        b'{"input": "\x00"}',
        b"\x00",
    ]
    values: list[Any] = [None, True, -1, 2**80, 1e300, "", "x", [], [[]], {}, {"a": {}}, ["x", 1], "\u0000", "😀" * 50]
    keys = ["model", "input", "prompt", "max_tokens", "n", "stream", "tokens", "records", "options", "view", "q"]
    keys += ["target", "top", "seed", "stop", "beam", "require", "temperature", "logprobs", "label"]
    made = [
        json.dumps({key: draw.choice(values) for key in draw.sample(keys, draw.randint(0, 5))}).encode()
        for _ in range(count)
    ]
    cut = [one[: draw.randint(0, len(one))] for one in made[: count // 4]]
    return fixed + made + cut


PATHS = ["completions", "classify", "tag", "translate", "score", "next", "predict", "explain", "chat/completions"]


def malformed(service: Running, seed: int, count: int) -> None:
    with service.client() as client:
        for path in [*(f"/v1/{one}" for one in PATHS), "/translate"]:
            for body in bodies(seed, count):
                response = client.post(path, content=body, headers={"Content-Type": "application/json"})
                assert response.status_code < 500, (path, body[:200], response.text)
                if response.status_code >= 400:
                    refused(response, response.status_code)
        assert client.get("/healthz").status_code == 200


def test_malformed_requests_have_a_sentence_each(service: Running) -> None:
    malformed(service, seed=1, count=8)


REQUESTS = [each for name, each in vars(schemas).items() if name.endswith("Request") and name != "_Request"]


@pytest.mark.parametrize("fields", REQUESTS)
def test_of_a_list_with_many_mistakes_the_first_is_told(fields: type[BaseModel]) -> None:
    """All of them would take minutes, in which nobody else is answered."""
    for name in fields.model_fields:
        for wrong in ([None] * 1000, [[None] * 1000], [["a"], *[[None]] * 1000]):
            try:
                fields.model_validate_json(json.dumps({name: wrong}))
            except ValidationError as error:
                assert error.error_count() < 10, name


def test_a_million_mistakes_do_not_stop_the_service(service: Running) -> None:
    content = b'{"input": [' + b"1," * 500_000 + b"1]}"
    headers = {"Content-Type": "application/json"}
    with ThreadPoolExecutor(1) as pool:
        sent = pool.submit(service.http.post, "/v1/classify", content=content, headers=headers)
        for _ in range(20):
            assert service.http.get("/healthz").elapsed.total_seconds() < 2
        assert refused(sent.result(), 400) == "'input.0': input should be a valid string"


@pytest.mark.slow
def test_thousands_of_malformed_requests(service: Running) -> None:
    malformed(service, seed=2, count=50)
    before = memory(service)
    for seed in range(3, 10):
        malformed(service, seed=seed, count=60)
    assert memory(service) < before * 1.05 + 2000


def memory(running: Running) -> int:
    """Kilobytes of the service's process."""
    status = Path(f"/proc/{running.process.pid}/status")
    if not status.exists():
        pytest.skip("there is no /proc here")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


def test_other_content_is_refused(service: Running) -> None:
    for kind in ("text/plain", "application/xml", ""):
        response = service.http.post("/v1/classify", content=b'{"input":"x"}', headers={"Content-Type": kind})
        assert 400 <= response.status_code < 500
    assert service.http.post("/translate", content=b"q", headers={"Content-Type": "a/b"}).status_code == 415
    asked = {"content": b'{"q": "\\ud800", "target": "translate"}', "headers": {"Content-Type": "application/json"}}
    assert "no JSON" in refused(service.http.post("/translate", **asked), 400)
    form = {"headers": {"Content-Type": "application/x-www-form-urlencoded"}}
    assert "no form" in refused(service.http.post("/translate", content=b"q=%ff%fe&target=translate", **form), 400)
    two = service.http.post("/translate", content=b"q=gd&q=ced&target=translate", **form)
    assert two.status_code == 200 and len(two.json()["translatedText"]) == 2
    nothing = service.post("/translate", q="", target="translate")
    assert "is empty" in refused(nothing, 400) and nothing.json()["error"]["param"] == "q"


def test_too_large_a_body_is_refused_before_it_is_read(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n")
        assert b" 413 " in connection.recv(1000)
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        head = b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        for _ in range(30):
            try:
                connection.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            except OSError:
                break
        assert b" 413 " in connection.recv(1000)


def test_slow_and_silent_senders_are_not_waited_for(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as half:
        half.settimeout(30)
        half.sendall(raw_request("/v1/classify", {"input": "x"})[:-3])
        assert b" 408 " in half.recv(1000)
    for sent in (b"", b"POST /v1/classify HTTP/1.1\r\nHost: "):
        with socket.create_connection(("127.0.0.1", service.port)) as silent:
            silent.settimeout(30)
            silent.sendall(sent)
            assert silent.recv(1000) == b""  # closed
    for cut in (b"not http at all\r\n\r\n", b"GET / HTTP/9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", service.port)) as odd:
            odd.settimeout(30)
            odd.sendall(cut)
            assert odd.recv(1000)[:12] in (b"HTTP/1.1 400", b"")


def test_a_sender_that_takes_its_time_over_the_headers_is_not_waited_for(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as slow:
        slow.settimeout(0.3)
        slow.sendall(b"POST /v1/classify HTTP/1.1\r\nX: ")
        begun, told = time.monotonic(), None
        while told is None and time.monotonic() < begun + 30:
            try:
                slow.sendall(b"a")
                told = slow.recv(1000)
            except TimeoutError:
                continue
            except OSError:
                told = b""
        assert told == b"" and time.monotonic() - begun > 1  # closed without a word, and not at once


def test_a_sender_that_leaves_in_the_middle_is_no_failure(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as half:
        half.sendall(raw_request("/v1/classify", {"input": "x"})[:-3])
        time.sleep(0.1)
    before = service.metric("elman_requests_total", status="500")
    eventually(lambda: service.metric("elman_requests_total", path="/v1/classify", status="499") >= 1)
    assert service.metric("elman_requests_total", status="500") == before
    assert not any("failed" in line for line in service.said)


def test_more_connections_than_may_be_are_told_so(models: Path) -> None:
    with Running(str(models / "classify"), "--max-connections", "3") as running:
        kept = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(3)]
        for connection in kept:
            connection.sendall(raw_request("/v1/classify", {"input": "x"}))
            assert connection.recv(64).startswith(b"HTTP/1.1 200")
        response = running.http.post("/v1/classify", json={"input": "x"})
        assert "as many connections" in refused(response, 503) and response.headers["retry-after"] == "1"
        assert response.headers["x-request-id"] and response.headers["connection"] == "close"
        for connection in kept:
            connection.close()
        eventually(lambda: running.http.post("/v1/classify", json={"input": "x"}).status_code == 200)
        assert running.metric("elman_rejections_total", reason="connections") >= 1
        assert running.end() == 0


def test_ten_times_too_much_is_answered_or_refused(models: Path) -> None:
    """The times are those of `elman bench serving`; here it is that nothing is lost, and nothing stays behind."""
    options = ["--max-queue", "4", "--max-batch", "8"]
    with Running(str(models / "translate"), *options) as running:
        asked = body(input=["abcdefgh" * 6] * 16, beam=8)
        target = Endpoint(running.port, "/v1/translate", [asked])
        best = measured(lambda: closed(target, clients=2, seconds=1))
        assert best.answered and not best.refused
        found = measured(lambda: paced(target, 10 * best.per_second, seconds=2))
        assert found.answered and found.refused and not found.failed
        assert len(found.answered) + len(found.refused) == len(found.late)  # each that was sent
        assert running.metric("elman_queue_length") == 0
        assert running.post("/v1/translate", input="abc").status_code == 200
        assert running.end() == 0


def test_a_refused_request_keeps_its_connection(models: Path) -> None:
    """Unless much of it is still to come, which is not read."""
    options = ["--max-streams", "1", "--max-tokens", "100000000"]
    with Running(str(models / "lm"), *options) as running:
        with socket.create_connection(("127.0.0.1", running.port)) as writing:
            writing.sendall(raw_request("/v1/completions", LONG | {"max_tokens": 100_000_000}))
            assert writing.recv(64)
            with socket.create_connection(("127.0.0.1", running.port)) as connection:
                whole = raw_request("/v1/completions", LONG | {"stream": False, "max_tokens": 5})
                for cut in (len(whole), len(whole) - 5):  # also where the answer comes before the last of the request
                    connection.sendall(whole[:cut])
                    answer = b""
                    while not answer.endswith(b"}}"):  # the error, which may come in parts
                        answer += connection.recv(2000)
                    assert b" 429 " in answer and b"connection: close" not in answer
                    connection.sendall(whole[cut:])
                writing.close()
                eventually(lambda: running.metric("elman_streams") == 0)
                connection.sendall(whole)
                assert connection.recv(2000).startswith(b"HTTP/1.1 200")
        assert running.end() == 0


def test_full_is_429_at_once(models: Path) -> None:
    options = ["--max-streams", "3", "--max-tokens", "100000000", "--max-queue", "1", "--max-batch", "1"]
    with Running(str(models / "lm"), str(models / "translate"), *options) as running:
        body = LONG | {"max_tokens": 100_000_000}
        held = [socket.create_connection(("127.0.0.1", running.port)) for _ in range(3)]
        for connection in held:
            connection.sendall(raw_request("/v1/completions", body))
            assert connection.recv(64)
        response = running.post("/v1/completions", **body | {"stream": False})
        assert "has no room" in refused(response, 429) and response.headers["retry-after"] == "1"
        assert "has no room" in refused(running.post("/v1/completions", **LONG | {"n": 4}), 429)
        for connection in held:
            connection.close()
        eventually(lambda: running.metric("elman_streams") == 0)
        assert running.post("/v1/completions", model="lm", prompt="the ").status_code == 200
        text = "abcdefgh" * 6
        asked = {"input": [text] * 20, "beam": 8}
        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(lambda _: running.post("/v1/translate", **asked), range(12)))
        statuses = {one.status_code for one in found}
        assert statuses == {200, 429}
        assert all("waiting" in refused(one, 429) for one in found if one.status_code == 429)
        assert running.metric("elman_rejections_total", reason="full") >= 2
        assert running.end() == 0


def test_what_takes_too_long_is_ended(models: Path) -> None:
    options = ["--max-seconds", "1", "--max-tokens", "2000000000"]
    with Running(str(models / "lm"), str(models / "translate"), *options) as running:
        start = time.monotonic()
        response = running.post("/v1/completions", model="lm", prompt="the ", max_tokens=2_000_000_000)
        assert response.json()["choices"][0]["finish_reason"] == "length" and response.json()["choices"][0]["text"]
        eventually(lambda: running.metric("elman_streams") == 0)
        late = running.post("/v1/translate", input=["abcdefgh" * 100] * 256, beam=8)
        assert "longer than 1 seconds" in refused(late, 504)
        assert time.monotonic() - start < 30
        assert running.end() == 0


def test_headers_without_an_end_are_refused(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as much:
        much.settimeout(30)
        much.sendall(b"POST /v1/classify HTTP/1.1\r\n")
        with suppress(OSError):
            for _ in range(200):
                much.sendall(b"X: " + b"a" * 1000 + b"\r\n")
        told = much.recv(10_000)
    assert told.startswith(b"HTTP/1.1 431 ") and b'"message"' in told and b"x-request-id" in told


def test_what_is_no_http_is_told_in_the_one_shape_of_errors(service: Running) -> None:
    with socket.create_connection(("127.0.0.1", service.port)) as odd:
        odd.settimeout(30)
        odd.sendall("GET /v1/modèls HTTP/9.9\r\n\r\n".encode())
        told = odd.recv(10_000)
    assert told.startswith(b"HTTP/1.1 400 ") and b'"invalid_request_error"' in told and b"x-request-id" in told


def test_another_protocol_that_is_offered_costs_no_body(service: Running) -> None:
    headers = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAAQ"}
    told = service.http.post("/v1/classify", json={"input": "grimgrima"}, headers=headers)
    assert told.status_code == 200 and told.json()["results"][0]["label"]
