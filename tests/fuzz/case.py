"""What a wrong input is made of."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.world import World


@dataclass(frozen=True)
class Command:
    """A command line, and what is piped into it."""

    arguments: list[str]
    stdin: bytes = b""


@dataclass(frozen=True)
class Case:
    """A command that is wrong, or may be.

    `make` puts what it needs into an empty folder, which the command is run in. Where `refused` is false the command
    may also work: much that is odd is right.
    """

    name: str
    make: Callable[["Place"], Command]
    refused: bool = True
    works: bool = False
    """It has to work, since what is wrong is not needed."""
    mentions: tuple[str, ...] = ()
    """What the sentence has to name."""
    fails: bool = False
    """It asks for a size that may be too large for the machine: the work may also fail, with exit code 1, after it
    has begun, and take much memory."""


@dataclass(frozen=True)
class Call:
    """A call from Python that is wrong, or may be."""

    name: str
    call: Callable[["Place"], object]
    like: Callable[["Place"], object]
    """The same call when it is right: an answer to a wrong one is of the type of its answer."""
    refused: bool = True
    as_torch: bool = False
    """PyTorch's own errors are an answer too, since the layer stands in the place of one of PyTorch's."""


@dataclass(frozen=True)
class Place:
    """Where a case is run: what is there for all to read, a folder of its own, and its own luck."""

    world: World
    folder: Path
    chance: random.Random

    def write(self, name: str, content: bytes | str) -> str:
        """A file in the case's folder."""
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    @property
    def out(self) -> str:
        """A name for what the command writes."""
        return str(self.folder / "out")
