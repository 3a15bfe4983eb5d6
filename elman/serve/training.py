"""Runs that are started from the page: `elman train` in processes of its own."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from elman.errors import INTERRUPTED
from elman.serve.errors import Refused
from elman.tasks import TASKS
from elman.tasks.recipes import find_recipe, recipe_names
from elman.train.recipe import read_toml

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
SETTING = re.compile(r"[a-z_]+(\.[a-z_0-9]+)+=[^\0\n]*")
OUTSIDE = re.compile(r"[/\\~]|\.\.")
MOST_FILES = 1000


class Trainer:
    """Starts, stops and resumes runs below the folder `runs`; they read files of the folder `data` and no others."""

    def __init__(self, runs: Path, data: Path, most: int = 1) -> None:
        self.runs, self.data, self.most = runs.resolve(), data.resolve(), most
        self._environment = dict(os.environ)  # before the service takes fewer threads than a run may
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._starting = threading.Lock()
        """Held from the look whether a run can be started until it is: requests come in several threads."""
        self._closed = False

    def files(self) -> list[str]:
        """The files to train on, by name."""
        found = sorted(path for path in self.data.rglob("*") if path.is_file() and not path.name.startswith("."))
        return [path.relative_to(self.data).as_posix() for path in found[:MOST_FILES]]

    def recipes(self) -> list[dict[str, str]]:
        """The recipes that come with Elman, with the task of each."""
        return [{"name": name, "task": str(read_toml(find_recipe(name)).get("task"))} for name in recipe_names()]

    def start(self, name: str, task: str, recipe: str | None, train: Sequence[str], settings: Sequence[str]) -> None:
        """Begin a run; what cannot be is refused before it is."""
        if not NAME.fullmatch(name):
            raise Refused(
                400, f"{name!r} cannot be the name of a run: letters, digits, points and dashes", param="name"
            )
        if task not in TASKS:
            raise Refused(400, f"there is no task {task!r}: {', '.join(TASKS)}", param="task")
        if recipe is not None and recipe not in recipe_names():
            raise Refused(400, f"there is no recipe {recipe!r}", param="recipe")
        known = set(self.files())
        for file in train:
            if file not in known:
                raise Refused(400, f"there is no file {file!r} in the folder of data", param="train")
        for setting in settings:
            _, _, value = setting.partition("=")
            if not SETTING.fullmatch(setting) or OUTSIDE.search(value):
                raise Refused(
                    400, f"{setting!r} is no setting such as train.epochs=3, or names a file", param="settings"
                )
        files = [part for file in train for part in ("--train", file)]
        with self._starting:
            if (self.runs / name).exists() or self.is_running(name):
                raise Refused(409, f"there is a run {name!r} already: give another name", param="name")
            self._run(name, [task, *([recipe] if recipe else []), *files, *(p for s in settings for p in ("-s", s))])

    def resume(self, name: str, task: str) -> None:
        """Go on with a run that was stopped."""
        with self._starting:
            if self.is_running(name):
                raise Refused(409, f"the run {name!r} is under way")
            self._run(name, [task, "--resume"])

    def stop(self, name: str) -> None:
        """Stop a run that was started here; it saves what it has."""
        if not self.is_running(name):
            raise Refused(409, f"the run {name!r} was not started here, or is not under way")
        self._processes[name].send_signal(signal.SIGTERM)

    def is_running(self, name: str) -> bool:
        """Whether a run that was started here is under way."""
        process = self._processes.get(name)
        return process is not None and process.poll() is None

    def failures(self) -> dict[str, str]:
        """The runs that were started here and failed, each with the last line that it has said."""
        ended = {name: process.poll() for name, process in list(self._processes.items())}  # another thread starts runs
        fine = (None, 0, INTERRUPTED, -signal.SIGTERM)  # stopped after an update, or before the first one
        return {name: self._last_words(name) for name, code in ended.items() if code not in fine}

    def _last_words(self, name: str) -> str:
        try:
            lines = self._said(name).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            lines = []
        return lines[-1] if lines else "it ended without a word"

    def close(self) -> None:
        """Stop all runs that were started here."""
        with self._starting:
            self._closed = True
            for name in self._processes:
                if self.is_running(name):
                    self.stop(name)
        for process in self._processes.values():
            process.wait()

    def _said(self, name: str) -> Path:
        return self.runs / f".{name.replace('/', '.')}.out"

    def _run(self, name: str, arguments: Sequence[str]) -> None:
        if self._closed:
            raise Refused(503, "the service is ending: start the run when it is there again")
        if sum(map(self.is_running, self._processes)) >= self.most:
            raise Refused(429, f"{self.most} run is under way: stop it first", headers={"Retry-After": "60"})
        self.runs.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "elman", "train", *arguments, "--out", str(self.runs / name)]
        with self._said(name).open("wb") as said:
            self._processes[name] = subprocess.Popen(
                command, cwd=self.data, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=self._environment
            )
