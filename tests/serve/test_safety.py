"""The key guards every path, no answer tells where things are, and mistakes at the start are one sentence."""

import json
import os
import socket
import subprocess
import sys
import time
from base64 import b64encode
from pathlib import Path

import pytest

from tests.cli.invoke import invoke
from tests.serve.running import ROOT, Running

OPEN = {"/healthz", "/readyz"}


@pytest.fixture(scope="module")
def locked(models: Path, tmp_path_factory: pytest.TempPathFactory) -> "Running":  # type: ignore[misc]
    key = tmp_path_factory.mktemp("key") / "key"
    key.write_text("open-sesame\n")
    key.chmod(0o644)
    with Running(str(models / "classify"), "--api-key-file", str(key), "--cors", "http://example.org") as running:
        yield running  # type: ignore[misc]
        assert running.end() == 0


def test_the_key_guards_every_path_but_health(locked: Running) -> None:
    with locked.client(headers={"Authorization": "Bearer open-sesame"}) as client:
        paths = json.loads(client.get("/openapi.json").text)["paths"]
        assert client.post("/v1/classify", json={"input": "x"}).status_code == 200
    for path in [
        *paths,
        "/",
        "/openapi.json",
        "/nothing",
        "/v1/chat/completions",
        "/metrics",
        "//metrics",
        "/healthz/",
    ]:
        for method in ("GET", "POST", "OPTIONS", "HEAD", "PUT"):
            response = locked.http.request(method, path.replace("{name}", "classify"), timeout=60)
            assert (response.status_code == 401) == (path not in OPEN), (method, path, response.status_code)
    for wrong in ("open-sesame", "Bearer", "Bearer open-sesam", "Bearer open-sesame2", "Basic !", "Token open-sesame"):
        got = locked.http.get("/v1/models", headers={"Authorization": wrong}, timeout=60)
        assert got.status_code == 401 and "open-sesame" not in got.text
    assert "Basic" in got.headers["www-authenticate"]
    password = b64encode(b"anyone:open-sesame").decode()
    assert locked.http.get("/v1/models", headers={"Authorization": f"Basic {password}"}, timeout=60).is_success


def test_the_body_of_a_request_without_the_key_counts_as_no_headers_of_the_next(locked: Running) -> None:
    with socket.create_connection(("127.0.0.1", locked.port), timeout=30) as connection:
        connection.sendall(b"POST /v1/classify HTTP/1.1\r\nHost: x\r\nContent-Length: 65500\r\n\r\n")
        refused = b""
        while b"\r\n\r\n{" not in refused or not refused.endswith(b"}"):
            refused += connection.recv(10_000)
        assert refused.startswith(b"HTTP/1.1 401 ")
        connection.sendall(b"x" * 65500 + b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: ")
        time.sleep(0.2)  # so that the headers come in two pieces
        connection.sendall(b"a" * 200 + b"\r\n\r\n")
        assert connection.recv(10_000).startswith(b"HTTP/1.1 200 ")


def test_a_key_file_that_others_can_read_is_warned_of(locked: Running) -> None:
    assert any("others can read the key file" in line for line in locked.said)


def test_pages_of_other_origins_only_where_named(locked: Running, service: Running) -> None:
    asked = {"Origin": "http://example.org", "Access-Control-Request-Method": "POST"}
    allowed = locked.http.options("/v1/classify", headers=asked)
    assert allowed.headers["access-control-allow-origin"] == "http://example.org"
    other = locked.http.options("/v1/classify", headers=asked | {"Origin": "http://example.net"})
    assert "access-control-allow-origin" not in other.headers
    with locked.client(headers={"Authorization": "Bearer open-sesame", "Origin": "http://example.org"}) as client:
        for body, status in (({"input": "x"}, 200), ({"input": 3}, 400)):  # a page can read what was wrong, too
            told = client.post("/v1/classify", json=body)
            assert told.status_code == status
            assert told.headers["access-control-allow-origin"] == "http://example.org"
    assert "access-control-allow-origin" not in service.http.options("/v1/classify", headers=asked).headers


def test_no_answer_has_a_path_of_the_machine(service: Running, models: Path) -> None:
    for path in (
        "/v1/models",
        "/v1/models/lm",
        "/v1/runs",
        "/v1/runs/lm",
        "/v1/runs/lm/log",
        "/openapi.json",
        "/metrics",
    ):
        text = service.http.get(path, timeout=60).text
        assert str(models) not in text and str(ROOT) not in text and str(Path.home()) + "/" not in text, path


def test_every_answer_is_protected(service: Running) -> None:
    response = service.http.get("/healthz")
    assert response.headers["x-content-type-options"] == "nosniff" and "server" not in response.headers


def test_the_page_has_a_strict_policy(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.testclient import TestClient

    from elman.serve.app import create_app
    from elman.serve.paths import studio
    from elman.serve.service import Service

    (tmp_path / "index.html").write_text("<h1>page</h1>")
    (tmp_path / "app.js").write_text("1")
    (tmp_path / "secret.py").write_text("1")
    monkeypatch.setattr(studio, "FOLDER", tmp_path)
    client = TestClient(create_app(Service.loading({"c": models / "classify"})))
    page = client.get("/")
    assert page.text == "<h1>page</h1>" and "script-src 'self'" in page.headers["content-security-policy"]
    assert "unsafe" not in page.headers["content-security-policy"]
    assert client.get("/app.js").headers["content-type"].startswith("text/javascript")
    for wrong in ("/secret.py", "/../conftest.py", "/%2e%2e/conftest.py", "/nothing", "/etc/passwd"):
        assert client.get(wrong).status_code == 404


def start_wrong(*arguments: str) -> str:
    """The one sentence that `elman serve` ends with."""
    code, out, error = invoke("serve", *arguments)
    assert code == 2 and not out, (out, error)
    lines = [line for line in error.splitlines() if not line.startswith("warning")]
    assert len(lines) == 1 and lines[0].startswith("elman: "), error
    return lines[0]


def test_mistakes_at_the_start_are_one_sentence_each(models: Path, tmp_path: Path) -> None:
    model = str(models / "classify")
    assert "no model folder at" in start_wrong(str(tmp_path / "nothing"))
    assert "is not a model folder" in start_wrong(str(tmp_path))
    other = tmp_path / "classify"
    other.symlink_to(models / "classify")
    assert "would both be called 'classify'" in start_wrong(model, str(other))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert "cannot be had" in start_wrong(model, "--port", str(taken.getsockname()[1]))
    assert "no host" in start_wrong(model, "--host", "no.such.host.invalid")
    assert "no key file" in start_wrong(model, "--api-key-file", str(tmp_path / "key"))
    (tmp_path / "key").write_text("")
    assert "is empty" in start_wrong(model, "--api-key-file", str(tmp_path / "key"))
    assert "no folder of runs" in start_wrong(model, "--runs", str(tmp_path / "runs"))
    assert "max_beam" in start_wrong(model, "--max-beam", "0")
    assert "NAME=SOURCE-TARGET" in start_wrong(model, "--language", "x")
    assert "there is no model of this name here" in start_wrong(model, "--language", "other=de-en")
    for origin in ("x", "", "http://", "http://a b", "http://host/path", "http://user:pw@host", "http://hé"):
        assert "is no origin: give it as http://host" in start_wrong(model, "--cors", origin)


def test_a_model_that_cannot_be_loaded_ends_the_service(models: Path, tmp_path: Path) -> None:
    import shutil

    broken = shutil.copytree(models / "classify", tmp_path / "broken")
    (broken / "model.safetensors").write_bytes(b"nothing")
    with Running(str(broken), wait=False) as running:
        assert running.process.wait(120) == 2
        for reader in running.readers:
            reader.join(5)
        loading, told = running.said
        assert loading == "loading broken" and "is damaged" in told


def test_without_the_extra_one_sentence_says_what_to_install(models: Path) -> None:
    hidden = "import sys; sys.modules['fastapi'] = None; sys.argv = ['elman', 'serve', sys.argv[1]];"
    line = [sys.executable, "-c", hidden + "from elman.cli.main import run; run()", str(models / "classify")]
    ended = subprocess.run(line, capture_output=True, text=True, cwd=ROOT, env=dict(os.environ))
    assert ended.returncode == 2
    assert ended.stderr == "elman: elman serve needs fastapi: pip install 'elman[serve]'\n"
