"""A disk that is full for real: the limit of a file's size stands in for it."""

from pathlib import Path

import pytest

from elman.train.checkpoint import load_checkpoint
from tests.cli.invoke import invoke
from tests.end_to_end.processes import finish, source_text, start

resource = pytest.importorskip("resource")

# A write beyond the limit fails as on a full disk, once the signal that would end the process is ignored.
LIMIT = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))
"""
SETTINGS = (
    "model.hidden=128",
    "model.layers=1",
    "batch.size=4",
    "batch.steps=16",
    "train.steps=40",
    "train.evaluate_every=20",
    "train.threads=1",
    "baseline.order=0",
)


def command(text: Path, out: Path) -> list[str]:
    overrides = [part for setting in SETTINGS for part in ("-s", setting)]
    return ["train", "lm", "--train", str(text), "--out", str(out), *overrides]


def test_a_checkpoint_that_does_not_fit_leaves_the_one_before(tmp_path: Path) -> None:
    text, out = source_text(tmp_path / "text.txt", 25_000), tmp_path / "run"
    path = out / "checkpoint" / "state.safetensors"
    code, _, error = invoke(*command(text, out), "-s", "train.steps=10")
    assert code == 0, error
    good = load_checkpoint(path)
    size = path.stat().st_size // 2
    # The same run with more room to go: its next checkpoint is twice what may be written.
    (out / "recipe.toml").write_text((out / "recipe.toml").read_text().replace("steps = 10\n", "steps = 40\n"))
    limited = start("train", "lm", "--out", str(out), "--resume", before=LIMIT.format(size=size))
    code, _, error = finish(limited)
    assert code == 1, error
    assert "Traceback" not in error
    assert error.strip().splitlines()[-1].startswith(f"elman: could not write {path}")
    assert load_checkpoint(path)["step"] == good["step"] == 10
    assert [file.name for file in path.parent.iterdir()] == ["state.safetensors"]
    code, _, error = invoke("train", "lm", "--out", str(out), "--resume")
    assert code == 0, error
    assert load_checkpoint(path)["step"] == 40
