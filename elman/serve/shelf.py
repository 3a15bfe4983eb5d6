"""The models of the service by name: how they are loaded, found, and replaced while requests are answered."""

import logging
import re
import time
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from elman.errors import UserError, nearest
from elman.serve.batcher import Batcher
from elman.serve.errors import Refused
from elman.serve.generation import Generator
from elman.serve.limits import Limits
from elman.serve.metrics import Metrics
from elman.tasks import load
from elman.tasks.folder import Config, member_folders, read_config
from elman.tasks.language import LanguageModel

log = logging.getLogger("elman.serve")

NAME = re.compile(r"[\w.+-]{1,100}")
Signature = tuple[tuple[str, int, int], ...]
FILES = ("config.json", "tokenizer.json", "model.safetensors", "lexicon.json")


def named_folders(given: list[str]) -> dict[str, Path]:
    """Model folders by name: `runs/mine` is called mine, `poet=runs/mine` is called poet.

    >>> {name: str(folder) for name, folder in named_folders(["runs/mine", "poet=runs/other"]).items()}
    {'mine': 'runs/mine', 'poet': 'runs/other'}
    >>> named_folders(["runs/mine", "old/mine"])
    Traceback (most recent call last):
    elman.errors.UserError: runs/mine and old/mine would both be called 'mine': name one as in NAME=old/mine
    """
    found: dict[str, Path] = {}
    for one in given:
        name, equals, folder = one.partition("=")
        if not equals or not NAME.fullmatch(name):
            name, folder = "", one
        path = Path(folder)
        name = name or path.name or path.absolute().name
        if not NAME.fullmatch(name):
            raise UserError(f"{name!r} cannot be the name of a model: give it one, as in NAME={folder}")
        if name in found:
            raise UserError(f"{found[name]} and {path} would both be called {name!r}: name one as in NAME={path}")
        found[name] = path
    return found


def signature(folder: Path) -> Signature:
    """What tells that the files of a model have changed: their sizes and times."""
    found = []
    for path in _files(folder):
        try:
            stat = path.stat()
        except OSError:
            continue
        found.append((str(path.relative_to(folder)), stat.st_size, stat.st_mtime_ns))
    return tuple(found)


def _files(folder: Path) -> Iterator[Path]:
    """Those that a model consists of, and those of the others of its ensemble."""
    for place in (folder, *member_folders(folder)):
        yield from (place / name for name in FILES)


def fingerprint(folder: Path) -> str:
    """Sixteen letters and digits that differ for models that differ."""
    digest = blake2b(digest_size=8)
    for path in _files(folder):
        if path.exists():
            with path.open("rb") as file:
                while block := file.read(2**20):
                    digest.update(block)
    return digest.hexdigest()


class Served:
    """A loaded model with its queue and, where it writes, its batch of texts."""

    def __init__(self, name: str, folder: Path, limits: Limits, metrics: Metrics) -> None:
        self.name, self.folder, self.limits, self.metrics = name, folder, limits, metrics
        for _ in range(10):
            self.signature = signature(folder)
            self.model: Any = load(folder)
            self.fingerprint = fingerprint(folder)
            if signature(folder) == self.signature:  # else it was being written meanwhile
                break
            time.sleep(0.2)
        else:
            raise UserError(f"{folder} does not stop changing: wait until it is written")
        self.compiled = _compiled(self.model)
        self.task: str = self.model.task
        self.loaded = int(time.time())
        self.card: dict[str, Any] | None = None
        """What `/v1/models` says of it, once that was asked."""
        self._batcher: Batcher | None = None
        self._generator: Generator | None = None

    # Threads are made when they are first needed: a process that is forked has none of them.

    @property
    def batcher(self) -> Batcher:
        """Where its predictions are computed."""
        if self._batcher is None:
            self._batcher = Batcher(self.name, self.limits, self.metrics)
        return self._batcher

    @property
    def generator(self) -> Generator:
        """Where it writes."""
        if self._generator is None:
            assert isinstance(self.model, LanguageModel)
            self._generator = Generator(self.name, self.model, self.limits, self.metrics)
        return self._generator

    @property
    def full(self) -> bool:
        """Whether as many requests wait for it as may."""
        return self._batcher is not None and self._batcher.full

    @property
    def writes_enough(self) -> bool:
        """Whether it writes as many texts as it may."""
        return self._generator is not None and self._generator.rows >= self.limits.max_streams

    def close(self) -> None:
        """End its threads, once what was taken on is done."""
        for one in (self._batcher, self._generator):
            if one is not None:
                one.close()

    def join(self, seconds: float) -> None:
        """Wait for the end of its threads, so long for each."""
        for one in (self._batcher, self._generator):
            if one is not None:
                one.join(seconds)


def _compiled(model: Any) -> bool:
    """Make the compiled runtime of a model, so that no request waits for it; whether there is one."""
    try:
        return None not in [one._runtime() for one in model.members]
    except NotImplementedError:  # one that answers without
        return False


class Shelf:
    """The models of the service."""

    def __init__(self, folders: Mapping[str, Path | str], limits: Limits, metrics: Metrics) -> None:
        self.folders = {name: Path(folder) for name, folder in folders.items()}
        self.limits, self.metrics = limits, metrics
        self.served: dict[str, Served] = {}
        for folder in self.folders.values():  # a wrong one is told at once
            read_config(folder, Config)

    def load(self) -> None:
        """Load every model that is not there yet."""
        for name in self.folders:
            if name not in self.served:
                self.replace(name)

    def replace(self, name: str) -> None:
        """Load a model anew and put it in the place of the old one, whose requests are still answered."""
        try:
            served = Served(name, self.folders[name], self.limits, self.metrics)
        except Exception:
            self.metrics.loads.labels(name, "failed").inc()
            raise
        before = self.served.get(name)
        self.served = {each: served if each == name else self.served[each] for each in self._order(name)}
        self.metrics.loads.labels(name, "loaded").inc()
        if before is not None:
            before.close()

    def _order(self, name: str) -> list[str]:
        return [each for each in self.folders if each == name or each in self.served]

    def changed(self) -> Iterator[str]:
        """The names of models whose folders hold something else by now."""
        for name, served in list(self.served.items()):
            if signature(served.folder) != served.signature:
                yield name

    def find(self, name: str | None, *tasks: str) -> Served:
        """A model by its name, or the only one for the task; refused where there is none."""
        if name is not None:
            served = self.served.get(name)
            if served is None:
                near = nearest(name, self.served)
                raise Refused(404, f"there is no model {name!r}: {near}", code="model_not_found", param="model")
            if tasks and served.task not in tasks:
                message = f"{name!r} is a model for '{served.task}', and this path is for '{' or '.join(tasks)}'"
                raise Refused(400, f"{message}: ask /v1/predict, which is for all models", param="model")
            return served
        fitting = [served for served in self.served.values() if not tasks or served.task in tasks]
        if len(fitting) == 1:
            return fitting[0]
        if not fitting:
            raise Refused(404, f"no model for '{' or '.join(tasks)}' is loaded", code="model_not_found", param="model")
        names = ", ".join(repr(served.name) for served in fitting)
        raise Refused(400, f"there are several models for this, {names}: say which with 'model'", param="model")
