"""Whether a command that worked did what it was asked: what it wrote is whole, and every record has its answer."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import elman
from elman.errors import ElmanError
from tests.fuzz.case import Command

if TYPE_CHECKING:
    from tests.fuzz.contract import Ending


def unanswered(command: Command, ending: "Ending", folder: Path) -> Iterator[str]:
    """What is missing from an answer."""
    name, *arguments = command.arguments
    if "--help" in arguments:
        return
    if name in ("train", "export"):
        yield from _not_whole(folder / _option(arguments, "--out"))
    elif name == "predict":
        yield from _not_predicted(arguments, ending.out, folder)
    elif name in ("evaluate", "rerank", "generate") and not ending.out:
        yield "it answered nothing"


def _option(arguments: list[str], option: str) -> str:
    """The last value that an option was given."""
    last = max(number for number, argument in enumerate(arguments) if argument == option)
    return arguments[last + 1]


def _not_whole(folder: Path) -> Iterator[str]:
    try:
        elman.load(folder)
    except ElmanError as error:
        yield f"what it wrote cannot be loaded: {error}"


def _not_predicted(arguments: list[str], out: str, folder: Path) -> Iterator[str]:
    """`predict`: lines of JSON are JSON; of the small text file each line has an answer."""
    if "--json" in arguments:
        for line in out.splitlines():
            json.loads(line)
    records = folder / "in.txt"
    if str(records) in arguments and "--json" not in arguments and "--n-best" not in arguments:
        given, answers = len(records.read_text().splitlines()), len(out.splitlines())
        if answers < given:
            yield f"{given} lines had {answers} answers"
