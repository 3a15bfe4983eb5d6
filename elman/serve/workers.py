"""`--workers N`: several processes that answer at one port, and a parent that starts a dead one again.

The models are loaded once, by the parent, and the workers are forked: the weights, as they are packed for the kernels,
are then the same memory for all of them. All workers accept connections of one socket, so that none is lost with a
worker that dies but those that it was answering. Where the parent dies, by whatever signal, its workers come to their
end as if they had been told to.
"""

import logging
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Callable

from elman.errors import UserError

log = logging.getLogger("elman.serve")

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Names, in the environment, where workers keep their figures, so that each can tell those of all."""
SHORTEST = 1.0
"""Seconds: a worker that lived less is not started again before they are over."""


def share_metrics() -> str:
    """A folder in which workers keep their figures for each other; before the library that counts is imported."""
    folder = tempfile.mkdtemp(prefix="elman-metrics-")
    os.environ[FOLDER] = folder
    return folder


class Workers:
    """The parent of some processes that all do the same; `work` is what a worker does, and gives its exit code."""

    def __init__(self, count: int, work: Callable[[], int]) -> None:
        if not hasattr(os, "fork"):
            raise UserError("this system cannot fork processes: leave --workers out")
        self.count, self.work = count, work
        self.started: dict[int, float] = {}
        """When each of the workers that live was started, by its process id."""
        self.ending = False
        self.alive, self._held = os.pipe()
        """What can be read from once the parent is no more: it alone holds the other end."""

    def run(self) -> int:
        """Keep the workers alive until SIGTERM or an interrupt, and then wait for them; the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: self.end())
        for _ in range(self.count):
            self._start()
        code = 0
        while self.started:
            code = max(code, self._wait())
        _forget_all()
        return code

    def end(self) -> None:
        """Tell the workers to end; told twice, they end at once."""
        self.ending = True
        for pid in list(self.started):
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                continue

    def _start(self) -> None:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for number in (signal.SIGTERM, signal.SIGINT):
                    signal.signal(number, signal.SIG_DFL)
                os.close(self._held)
                threading.Thread(target=self._end_with_parent, name="end with the parent", daemon=True).start()
                code = self.work()
            finally:
                os._exit(code)
        self.started[pid] = time.monotonic()

    def _end_with_parent(self) -> None:
        """In a worker: end it as SIGTERM does when its parent is no more."""
        os.read(self.alive, 1)
        log.error("the process that started the workers is no more: worker %d ends", os.getpid())
        _forget_all()
        os.kill(os.getpid(), signal.SIGTERM)

    def _wait(self) -> int:
        """Wait for a worker to end, and start another where it should not have; its exit code where it should."""
        pid, status = os.waitpid(-1, 0)
        since = self.started.pop(pid, None)
        if since is None:
            return 0
        _forget(pid)
        code = os.waitstatus_to_exitcode(status)
        if self.ending:
            return max(code, 0)
        ended = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        log.error("worker %d ended %s: another one is started", pid, ended)
        if time.monotonic() - since < SHORTEST:
            time.sleep(SHORTEST)
        if not self.ending:
            self._start()
        return 0


def _forget_all() -> None:
    """Remove the workers' figures."""
    if (folder := os.environ.get(FOLDER)) is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _forget(pid: int) -> None:
    """Leave what a dead worker had under way out of the figures."""
    from prometheus_client.multiprocess import mark_process_dead

    if FOLDER in os.environ:
        mark_process_dead(pid)  # type: ignore[no-untyped-call]
