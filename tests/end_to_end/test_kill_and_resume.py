"""A run killed at any moment and resumed ends with the same bytes as one that was never interrupted."""

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from elman.train.log import read_log
from tests.cli.invoke import invoke
from tests.end_to_end.processes import finish, source_text, start

SETTINGS = (
    "model.layers=2",
    "model.hidden=48",
    "model.embedding=16",
    "model.dropout=0.1",
    "batch.size=8",
    "batch.steps=24",
    "batch.bptt=random",
    "train.average=ema",
    "train.evaluate_every=60",
    "train.log_every=7",
    "train.checkpoint_seconds=0.3",
    "train.threads=1",
    "baseline.order=0",
)


def command(text: Path, out: Path, steps: int = 300) -> list[str]:
    overrides = [part for setting in (*SETTINGS, f"train.steps={steps}") for part in ("-s", setting)]
    return ["train", "lm", "--train", str(text), "--out", str(out), *overrides]


def losses(folder: Path) -> list[tuple[str, int, float | str]]:
    """Those of every record of the log, and what was written as a sample."""
    records = read_log(folder / "log.jsonl")
    return [(record["kind"], record["step"], record.get("loss", record.get("text"))) for record in records]


def wait_for(process: "subprocess.Popen[str]", path: Path, seconds: float = 300) -> None:
    """Until the file is there, or the process is gone."""
    limit = time.monotonic() + seconds
    while not path.exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.02)


def kill_at_random(arguments: list[str], out: Path, kills: int, seed: int) -> int:
    """Start and kill so many times, at random moments of the training; returns how many kills hit a living run."""
    generator = random.Random(seed)
    hits = 0
    for number in range(kills):
        process = start(*arguments, *(["--resume"] if number else []))
        # Imports take seconds in which there is nothing to lose: the log is rewound when training begins.
        before = (out / "log.jsonl").stat().st_mtime_ns if (out / "log.jsonl").exists() else 0
        while process.poll() is None:
            log = out / "log.jsonl"
            if log.exists() and log.stat().st_mtime_ns != before:
                break
            time.sleep(0.01)
        time.sleep(generator.uniform(0.0, 0.8))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            hits += 1
        process.communicate()
    return hits


def check(tmp_path: Path, kills: int, seed: int, steps: int) -> int:
    text = source_text(tmp_path / "source.txt")
    code, _, error = invoke(*command(text, tmp_path / "whole", steps))
    assert code == 0, error
    arguments = command(text, tmp_path / "cut", steps)
    hits = kill_at_random(arguments, tmp_path / "cut", kills, seed)
    code, _, error = finish(start(*arguments, "--resume"))
    assert code == 0, error
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    whole, cut = (tmp_path / name / "model.safetensors" for name in ("whole", "cut"))
    assert whole.read_bytes() == cut.read_bytes()
    return hits


def test_killed_a_few_times(tmp_path: Path) -> None:
    assert check(tmp_path, kills=3, seed=1, steps=300) == 3


@pytest.mark.slow
def test_killed_twenty_times(tmp_path: Path) -> None:
    assert check(tmp_path, kills=20, seed=2, steps=2000) >= 15


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_says_how_to_go_on(tmp_path: Path, number: signal.Signals) -> None:
    text, out = source_text(tmp_path / "source.txt", 30_000), tmp_path / "run"
    process = start(*command(text, out))
    wait_for(process, out / "checkpoint" / "state.safetensors")
    process.send_signal(number)
    code, _, error = finish(process)
    last = error.strip().splitlines()[-1]
    assert code == 130, error
    assert "Traceback" not in error
    assert "everything is saved" in last
    assert f"elman train lm --out {out} --resume" in last
    code, shown, error = invoke("train", "lm", "--out", str(out), "--resume")
    assert code == 0, error
    assert "the model is in" in shown
    assert max(record["step"] for record in read_log(out / "log.jsonl")) == 300
