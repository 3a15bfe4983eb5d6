"""Downloads against a server that misbehaves on demand."""

import gzip
import hashlib
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from elman.corpora import download
from elman.errors import UserError

CONTENT = bytes(range(256)) * 4096  # 1 MB
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `content`; the first answers give only as many bytes as `cuts` says."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = CONTENT
        self.cuts: list[int] = []
        self.ranges = True
        self.status = 200
        self.asked: list[str | None] = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}/file.txt"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        if self.server.status != 200:
            self.send_error(self.server.status)
            return
        start = int(re.findall(r"\d+", asked)[0]) if asked and self.server.ranges else 0
        if start >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        if start:
            whole = len(self.server.content)
            self.send_header("Content-Range", f"bytes {start}-{whole - 1}/{whole}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.cuts.pop(0)] if self.server.cuts else body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_a_file_arrives_whole_with_progress(server: Server, tmp_path: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    place = download(server.address, tmp_path / "a" / "f.txt", SHA256, lambda *now: seen.append(now))
    assert place.read_bytes() == CONTENT
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert [path.name for path in place.parent.iterdir()] == ["f.txt"]


def test_a_broken_download_goes_on_by_itself(server: Server, tmp_path: Path) -> None:
    server.cuts = [300_000]
    assert download(server.address, tmp_path / "f.txt", SHA256).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=300000-"]


def test_a_second_call_goes_on_where_the_first_gave_up(server: Server, tmp_path: Path) -> None:
    server.cuts = [200_000, 100_000, 0]
    with pytest.raises(UserError, match=r"broken off after 300000 bytes.*put the file at"):
        download(server.address, tmp_path / "f.txt", SHA256)
    assert [path.name for path in tmp_path.iterdir()] == ["f.txt.part"]
    assert download(server.address, tmp_path / "f.txt", SHA256).read_bytes() == CONTENT
    assert server.asked[-1] == "bytes=300000-"


def test_a_server_that_ignores_range_sends_all_again(server: Server, tmp_path: Path) -> None:
    server.cuts, server.ranges = [300_000], False
    assert download(server.address, tmp_path / "f.txt", SHA256).read_bytes() == CONTENT


@pytest.mark.parametrize("stale", [b"x" * 1000, b"x" * len(CONTENT), b"x" * (len(CONTENT) + 5)])
def test_a_part_of_another_file_does_no_harm(server: Server, tmp_path: Path, stale: bytes) -> None:
    (tmp_path / "f.txt.part").write_bytes(stale)
    assert download(server.address, tmp_path / "f.txt", SHA256).read_bytes() == CONTENT


def test_a_wrong_checksum_leaves_nothing(server: Server, tmp_path: Path) -> None:
    server.content = CONTENT[:-1] + b"!"
    with pytest.raises(UserError, match="wrong checksum"):
        download(server.address, tmp_path / "f.txt", SHA256)
    assert list(tmp_path.iterdir()) == []


def test_gzip_is_unpacked_and_the_content_checked(server: Server, tmp_path: Path) -> None:
    server.content = gzip.compress(CONTENT)
    assert download(server.address + ".gz", tmp_path / "f.txt", SHA256).read_bytes() == CONTENT
    server.content = server.content[:-20]
    with pytest.raises(UserError, match="wrong checksum"):
        download(server.address + ".gz", tmp_path / "g.txt", SHA256)


def test_refusals_name_address_and_place(server: Server, tmp_path: Path) -> None:
    server.status = 404
    with pytest.raises(UserError, match=rf"{server.address} \(the server answers 404.*put the file at .*f\.txt"):
        download(server.address, tmp_path / "f.txt", SHA256)


def test_no_connection(server: Server, tmp_path: Path) -> None:
    server.server_close()
    server.shutdown()
    with pytest.raises(UserError, match="no connection"):
        download(server.address, tmp_path / "f.txt", SHA256)
