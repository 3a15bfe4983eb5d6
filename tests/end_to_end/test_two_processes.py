"""Two processes in one folder: the second is refused, and a process that was killed is in nobody's way."""

import signal
from pathlib import Path

import pytest

from elman.tasks.lock import LOCK, fcntl
from elman.train.checkpoint import load_checkpoint
from tests.cli.invoke import invoke
from tests.end_to_end.processes import finish, source_text, start
from tests.end_to_end.test_kill_and_resume import command, wait_for

pytestmark = pytest.mark.skipif(fcntl is None, reason="there are no locks here")


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    text, out = source_text(tmp_path / "source.txt", 30_000), tmp_path / "run"
    first = start(*command(text, out, 100_000))
    try:
        wait_for(first, out / "checkpoint" / "state.safetensors")
        for option in ("--resume", "--force"):
            code, _, error = invoke(*command(text, out, 100_000), option)
            assert code == 2, error
            assert f"process {first.pid} on " in error
            assert "--out" in error
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
    assert (out / LOCK).exists()  # what a kill leaves behind means nothing
    step = load_checkpoint(out / "checkpoint" / "state.safetensors")["step"]
    assert step > 0
    text_of = out / "recipe.toml"
    text_of.write_text(text_of.read_text().replace("steps = 100000\n", f"steps = {step + 1}\n"))
    code, _, error = invoke("train", "lm", "--out", str(out), "--resume")
    assert code == 0, error
    assert not (out / LOCK).exists()


def test_two_that_begin_at_once(tmp_path: Path) -> None:
    text, out = source_text(tmp_path / "source.txt", 30_000), tmp_path / "run"
    both = [start(*command(text, out, 40)) for _ in range(2)]
    found = [finish(process) for process in both]
    codes = sorted(code for code, _, _ in found)
    assert codes == [0, 2], found
    refused = next(error for code, _, error in found if code == 2)
    assert "is at work in" in refused or "is not empty" in refused  # the first may be done when the second looks
    assert (out / "metrics.json").exists()


def test_a_comparison_under_way_is_left_alone(tmp_path: Path) -> None:
    text, out = source_text(tmp_path / "source.txt", 30_000), tmp_path / "out"
    recipe = tmp_path / "small.toml"
    recipe.write_text(f'task = "lm"\n[data]\ntrain = ["{text}"]\n[train]\nthreads = 1\n')
    settings = ["-s", "model.hidden=16", "-s", "train.steps=100000", "-s", "train.checkpoint_seconds=0"]
    arguments = ["compare", str(recipe), "--vary", "model.cell=rnn,gru", "--seeds", "1", "--out", str(out), *settings]
    first = start(*arguments)
    try:
        state = out / "runs" / "cell=rnn,seed=1" / "checkpoint" / "state.safetensors"
        wait_for(first, state)
        for option in ([], ["--force"]):
            code, _, error = invoke(*arguments, *option)
            assert code == 2, error
            assert f"process {first.pid} on " in error
        code, _, error = invoke("train", "lm", "--out", str(out / "runs" / "cell=rnn,seed=1"), "--resume")
        assert code == 2, error
        assert f"process {first.pid} on " in error
        assert state.exists()
        assert first.poll() is None
    finally:
        first.send_signal(signal.SIGKILL)
        first.communicate()
