"""What the paths share: the models, the limits, the figures, and whether requests are taken on."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from elman.serve.batcher import Batcher
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics
from elman.serve.shelf import Served, Shelf
from elman.serve.training import Trainer

log = logging.getLogger("elman.serve")


TASK_OF = {
    "/v1/completions": "lm",
    "/v1/next": "lm",
    "/v1/classify": "classify",
    "/v1/tag": "tag",
    "/v1/translate": "translate",
    "/translate": "translate",
}
"""The paths that are for one task only."""
PATIENCE = 1.0
"""Seconds that are waited for a thread at the end."""
WAITING = "as many requests are waiting as may"
WRITING = "the service writes as many texts as it may, and has no room for more"


class Service:
    """The state of one process of the service."""

    def __init__(
        self,
        shelf: Shelf,
        *,
        api_key: str | None = None,
        origins: tuple[str, ...] = (),
        runs: Path | None = None,
        training: Trainer | None = None,
        languages: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self.shelf, self.limits, self.metrics = shelf, shelf.limits, shelf.metrics
        self.api_key, self.origins, self.runs, self.languages = api_key, origins, runs, dict(languages or {})
        self.training = training
        self.experiments: set[Callable[[], None]] = set()
        """Experiments of the course that are under way, each by what ends it."""
        self.ready = self.draining = False
        self.active = 0
        """Requests that are being answered."""
        self.idle = asyncio.Event()
        self._examiner: Batcher | None = None

    @classmethod
    def loading(cls, folders: Mapping[str, Path | str], limits: Limits | None = None, **options: object) -> Self:
        """A service whose models are loaded: what a program that has a server of its own needs."""
        service = cls(Shelf(folders, limits or Limits(), Metrics()), **options)  # type: ignore[arg-type]
        service.shelf.load()
        service.ready = True
        return service

    @property
    def examiner(self) -> Batcher:
        """Where explanations are computed, one after the other: they take long, and predictions must not wait."""
        if self._examiner is None:
            self._examiner = Batcher("explain", self.limits, self.metrics)
        return self._examiner

    def full(self, path: str) -> str | None:
        """Why no model that a path may be for has room, if that is so: such a request need not even be read."""
        if path == "/v1/explain":
            return WAITING if self._examiner is not None and self._examiner.full else None
        fitting = [served for served in self.shelf.served.values() if served.task == TASK_OF.get(path)]
        if path == "/v1/completions":
            return WRITING if fitting and all(served.writes_enough for served in fitting) else None
        return WAITING if fitting and all(served.full for served in fitting) else None

    def begin(self) -> None:
        """Count a request that is taken on."""
        self.active += 1
        self.idle.clear()

    def end(self) -> None:
        """Count a request that is answered."""
        self.active -= 1
        if not self.active:
            self.idle.set()

    async def drain(self) -> bool:
        """Take no more requests, and wait for those that run; whether all of them ended in time."""
        self.draining = True
        for end in list(self.experiments):  # they take minutes, and can be run again
            end()
        if not self.active:
            return True
        try:
            async with asyncio.timeout(self.limits.drain_seconds):
                await self.idle.wait()
        except TimeoutError:
            log.warning("%d requests are cut off: they took longer than the end allows", self.active)
            return False
        return True

    def close(self) -> None:
        """End all threads, once what was taken on is done."""
        ending: list[Served | Batcher] = [*self.shelf.served.values()]
        if self._examiner is not None:
            ending.append(self._examiner)
        for one in ending:
            one.close()
        for one in ending:
            one.join(PATIENCE)
        if self.training is not None:
            self.training.close()
