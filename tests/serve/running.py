"""A service in a process of its own, on a free port of this machine."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

ROOT = Path(__file__).parents[2]


class Running:
    """`elman serve` with some arguments, from its start to its end."""

    def __init__(self, *arguments: str, wait: bool = True, seconds: float = 120, **environment: str) -> None:
        line = [sys.executable, "-m", "elman", "serve", *arguments, "--port", "0"]
        self.process = subprocess.Popen(
            line,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        self.said: list[str] = []
        self.out: list[str] = []
        self.readers = [
            threading.Thread(target=self._read, args=(stream, lines), daemon=True)
            for stream, lines in ((self.process.stdout, self.out), (self.process.stderr, self.said))
        ]
        for reader in self.readers:
            reader.start()
        self.url = ""
        if wait:
            self.wait_for_address(seconds)
        self.http = httpx.Client(base_url=self.url, timeout=60)
        """Connections that are kept: to make a client takes longer than to be answered."""

    def _read(self, stream: Any, lines: list[str]) -> None:
        lines.extend([]) if stream is None else [lines.append(line.rstrip("\n")) for line in stream]

    def wait_for_address(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.out and (found := re.match(r"(http://\S+) serves ", self.out[0])):
                self.url = found[1]
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise AssertionError(f"the service did not start: {self.out} {self.said}")

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, **options)

    def post(self, path: str, **body: Any) -> httpx.Response:
        return self._again(lambda: self.http.post(path, json=body))

    def _again(self, ask: Callable[[], httpx.Response]) -> httpx.Response:
        try:
            return ask()
        except httpx.TransportError:  # a connection that was kept, to a worker that is no more
            return ask()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a figure of /metrics over all that have these labels."""
        total = 0.0
        for line in self._again(lambda: self.http.get("/metrics")).text.splitlines():
            wanted = all(f'{key}="{value}"' in line for key, value in labels.items())
            if wanted and re.match(rf"{name}(?:{{| )", line):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def end(self, number: int = signal.SIGTERM, seconds: float = 60) -> int:
        """Tell it to end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        for reader in self.readers:
            reader.join(5)
        return code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: TracebackType | None) -> None:
        self.http.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


def eventually(check: Any, seconds: float = 30.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.02)


def events(response: httpx.Response) -> Iterator[str]:
    """The data of server-sent events."""
    for line in response.iter_lines():
        if line.startswith("data: "):
            yield line.removeprefix("data: ")
