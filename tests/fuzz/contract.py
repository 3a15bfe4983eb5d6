"""What every wrong input has to end in.

One sentence on standard error that names what to type, exit code 2, no word of Python's, nothing written, nothing
left behind, little memory, little time.
"""

import contextlib
import io
import os
import random
import re
import resource
import signal
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from elman.cli.main import run
from elman.errors import ElmanError
from tests.fuzz.answers import unanswered
from tests.fuzz.case import Call, Case, Command, Place
from tests.fuzz.sentences import complaints
from tests.fuzz.world import World, snapshot

SECONDS = 60
"""Of the processor; ten times as long may pass on a machine that has other work too."""
MEGABYTES = 500
ROOM = 3 << 30
"""Bytes of address space beyond what the process has: a case that asks for more is answered as by a small machine."""


class TookTooLong(BaseException):
    """No `except Exception` may take it for the input's fault."""


@dataclass(frozen=True)
class Ending:
    """How a command ended."""

    code: int
    out: str
    error: str
    megabytes: float = 0.0


def check(case: Case, world: World, folder: Path) -> None:
    """Run a command and hold what happened against the contract."""
    place = Place(world, folder, random.Random(case.name))
    command = case.make(place)
    before, shared = snapshot(folder), world.snapshot()
    ending = run_command(command, folder)
    told = f"elman {' '.join(map(_short, command.arguments))}\n{_short(ending.error, 1500)}\nexit code {ending.code}"
    wrong = [*judge(case, command, ending, folder), *_traces(ending, before, snapshot(folder))]
    if world.snapshot() != shared:
        wrong.append("it changed the models or files that it was to read")
    assert not wrong, "; ".join(wrong) + f"\n{told}"


def judge(case: Case, command: Command, ending: Ending, folder: Path) -> list[str]:
    """What is wrong with an exit code and its sentence."""
    wrong = []
    if ending.megabytes > MEGABYTES and not case.fails:  # who asks for a large model gets one
        wrong.append(f"it took {ending.megabytes:,.0f} MB")
    if ending.code == 0 and not case.refused:
        return [*wrong, *unanswered(command, ending, folder)]
    if case.works:
        return [*wrong, f"exit code {ending.code}, and nothing that is needed was wrong"]
    if ending.code not in ((1, 2) if case.fails else (2,)):
        wrong.append(f"exit code {ending.code}")
    if ending.code == 2 and ending.out and command.arguments[0] != "predict":  # whose output is a stream
        wrong.append(f"standard output has {ending.out[:200]!r}")
    if ending.code in (1, 2):
        wrong += complaints(ending.error, command.arguments, folder)
        wrong += [f"{word!r} is not named" for word in case.mentions if word not in ending.error]
    return wrong


def _traces(ending: Ending, before: dict[str, tuple[int, int]], after: dict[str, tuple[int, int]]) -> list[str]:
    """What is wrong with the files: a refusal leaves all as it was, nothing ever leaves a half-written file."""
    wrong = [f"{name} is left over" for name in after if name.endswith(".tmp")]
    wrong += [f"{name} was changed" for name in before if after.get(name) != before[name] and ending.code == 2]
    if ending.code == 2:
        wrong += [f"{name} was written" for name in list(after.keys() - before.keys())[:3]]
    return wrong


def run_command(command: Command, folder: Path) -> Ending:
    """The command line as the entry point runs it, in this process, with streams that encode as real ones do."""
    out, error = _stream("strict"), _stream("backslashreplace")
    stdin = io.TextIOWrapper(io.BytesIO(command.stdin), encoding="utf-8", errors="strict")
    with (
        patch.object(sys, "argv", ["elman", *command.arguments]),
        patch.object(sys, "stdin", stdin),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", error),
        patch.dict(os.environ, {"COLUMNS": "200"}),
        contextlib.chdir(folder),
        _bounded() as used,
    ):
        try:
            run()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except TookTooLong:
            error.write(f"still running after {SECONDS} seconds\n")
            code = -1
    return Ending(code, _text(out), _text(error), used[0])


def check_call(case: Call, world: World, folder: Path) -> None:
    """A wrong call ends in a sentence: a UserError, or a TypeError or ValueError, and none from the depths."""
    place = Place(world, folder, random.Random(case.name))
    allowed = (ElmanError, TypeError, ValueError, *((RuntimeError, AttributeError) if case.as_torch else ()))
    before = world.snapshot()
    made, ended = None, None
    with contextlib.chdir(folder), warnings.catch_warnings(), _bounded() as used:
        warnings.simplefilter("ignore")
        try:
            made = case.call(place)
        except (Exception, TookTooLong) as error:
            ended = error
    assert world.snapshot() == before, "it changed the models or files that it was to read"
    assert used[0] <= MEGABYTES, f"it took {used[0]:,.0f} MB"
    if ended is None:
        assert not case.refused, f"it was not refused, and answered {_short(repr(made))}"
        (folder / "right").mkdir()
        right = case.like(Place(world, folder / "right", random.Random(case.name)))
        kinds = {type(right), *(map(type, right) if isinstance(right, list) else ())}  # one text has one answer
        assert type(made) in kinds, f"it answered {_short(repr(made))}"
        return
    told = f"{type(ended).__name__}: {ended}"
    assert isinstance(ended, allowed), _short(told, 1500)
    assert str(ended).strip(), f"{told} says nothing"


@contextlib.contextmanager
def _bounded() -> Iterator[list[float]]:
    """End what takes too long, refuse what takes too much; tells how many megabytes the process grew by."""
    used = [0.0]
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")
    if pages.exists():
        size = int(pages.read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, hard))
        with contextlib.suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    timers = {signal.ITIMER_PROF: (signal.SIGPROF, SECONDS), signal.ITIMER_REAL: (signal.SIGALRM, 10 * SECONDS)}
    old = {number: signal.signal(number, _give_up) for number, _ in timers.values()}
    for timer, (_, seconds) in timers.items():
        signal.setitimer(timer, seconds)
    try:
        yield used
    finally:
        for timer in timers:
            signal.setitimer(timer, 0)
        for number, handler in old.items():
            signal.signal(number, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start
        used[0] = grown / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _give_up(number: int, frame: object) -> None:
    raise TookTooLong


def _stream(errors: str) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors=errors, write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    return "" if stream.closed else stream.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]


def _short(text: str, most: int = 120) -> str:
    shown = ascii(re.sub("[\u2500-\u257f]| {9,}", "", text))[1:-1].replace("\\n", "\n")  # without the frame
    return shown if len(shown) <= most else f"{shown[:most]}... ({len(text)} characters)"
