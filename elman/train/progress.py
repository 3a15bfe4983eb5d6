"""Telling the user how a run goes: a live bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

PLAIN_SECONDS = 10.0  # off a terminal, at most one line in so many seconds


class Reporter:
    """Shows the steps and evaluations of one run."""

    def __init__(self, console: Console | None = None, *, quiet: bool = False) -> None:
        self.console = console or Console(stderr=True, quiet=quiet)
        self.callbacks: list[Callable[[dict[str, Any]], object]] = []
        """Each is called with every record of the log."""
        self._started = self._last_line = time.monotonic()
        self._bar: Progress | None = None

    def __enter__(self) -> "Reporter":
        if self.console.is_terminal:
            self._bar = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f} %"),
                TextColumn("{task.fields[figures]}"),
                TimeRemainingColumn(compact=True, elapsed_when_finished=True),
                console=self.console,
                transient=True,
            )
            self._task = self._bar.add_task("training", total=1.0, figures="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, step: int, fraction: float, loss: float, speed: str, seconds_left: float) -> None:
        """A few updates were made; `loss` is their mean."""
        figures = f"step {step}  loss {loss:.3f}  {speed}"
        if self._bar is not None:
            self._bar.update(self._task, completed=fraction, figures=figures)
        elif time.monotonic() - self._last_line >= PLAIN_SECONDS:
            self._last_line = time.monotonic()
            self.say(f"{fraction:4.0%}  {figures}  {duration(seconds_left)} left")

    def evaluation(self, step: int, scores: dict[str, float], best: bool) -> None:
        """The held-out part was scored."""
        shown = "  ".join(f"{name.replace('_', ' ')} {value:.4g}" for name, value in scores.items() if name != "tokens")
        self.say(f"step {step}  held out: {shown}{'  (best so far)' if best else ''}")

    def sample(self, step: int, text: str) -> None:
        """What the model writes by now."""
        self.say(f"step {step}  writes: {' / '.join(text.strip().splitlines())}")

    def busy(self, doing: str) -> AbstractContextManager[object]:
        """While inside, a terminal shows what is being done."""
        return self.console.status(doing) if self.console.is_terminal else nullcontext()

    def say(self, line: str) -> None:
        """One line of text."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    >>> duration(42), duration(3725)
    ('42 s', '1 h 02 min')
    >>> duration(125)
    '2 min 05 s'
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
