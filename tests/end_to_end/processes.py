"""Elman in processes of its own, as a user runs it."""

import inspect
import os
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def environment() -> dict[str, str]:
    """One thread, and the tree under test in front."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "COLUMNS": "200"}


def start(*arguments: str, before: str = "") -> "subprocess.Popen[str]":
    """`elman` with some arguments; `before` is Python to run first in the same process."""
    code = f"{before}\nimport sys\nsys.argv[0] = 'elman'\nfrom elman.cli.main import run\nrun()"
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8"
    )


def finish(process: "subprocess.Popen[str]", seconds: float = 600) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, error = process.communicate(timeout=seconds)
    return process.returncode, out, error


def source_text(path: Path, characters: int = 80_000) -> Path:
    """A text that every machine has: source of Python's own library."""
    path.write_text(inspect.getsource(textwrap) + inspect.getsource(inspect)[: characters - 20_000], encoding="utf-8")
    return path
