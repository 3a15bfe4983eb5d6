"""A run that was stopped and resumed ends with the same bytes as one that was not."""

import os
import signal
from pathlib import Path

import pytest

from elman.errors import Interrupted
from elman.train import loop as loop_module
from tests.tasks.resuming import Killed, assert_resumes_exactly, assert_same_runs, disturb
from tests.tasks.runs import prose, trainer, write_names

LINES = ("data.unit=line", "data.label_column=label", "batch.size=8")
CASES = {
    "regular windows": ("batch.bptt=regular",),
    "random windows": ("batch.bptt=random",),
    "adam and a moving average": ("train.optimizer=adam", "train.average=ema"),
    "sgd and triggered averaging": (
        "train.optimizer=sgd",
        "train.lr=30",
        "train.schedule=plateau",
        "train.average=triggered",
        "train.average_patience=1",
        "train.evaluate_every=3",
    ),
    "accumulation": ("train.accumulate=3",),
    "adagrad, by value": ("train.optimizer=adagrad", "train.clip_value=0.01"),
    "sampled softmax, dropouts": (
        "text.kind=words",
        "model.softmax=sampled",
        "model.samples=8",
        "model.dropout=0.3",
        "model.layers=2",
        "model.input_dropout=0.2",
        "model.output_dropout=0.2",
        "model.embedding_dropout=0.1",
        "model.weight_dropout=0.2",
    ),
    "lstm, tied, learned state": ("model.cell=lstm", "model.tied=true", "model.learned_state=true"),
    "lines with labels": LINES,
    "both directions": ("model.direction=both",),
    "both directions of lines": ("model.direction=both", *LINES),
    "window model": ("model.kind=window",),
}
STEPS = 14


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


@pytest.mark.parametrize("case", CASES)
def test_resumed_equals_uninterrupted(tmp_path: Path, case: str) -> None:
    text = write_names(tmp_path / "n.csv") if LINES[0] in CASES[case] else tmp_path / "t.txt"
    if text.suffix == ".txt":
        text.write_text(prose())
    settings = ("train.evaluate_every=5", *CASES[case], f"train.steps={STEPS}", "train.checkpoint_seconds=0")
    assert_resumes_exactly(tmp_path, lambda folder: trainer(text, folder, *settings), stops=(3, 4, 9))


def test_a_signal_stops_between_updates_and_the_run_goes_on(tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text(prose())
    settings = ("train.steps=12", "train.evaluate_every=100", "train.log_every=5")
    trainer(text, tmp_path / "whole", *settings).run()
    run = trainer(text, tmp_path / "cut", *settings)
    update = run._update

    def signalled() -> tuple[float, float]:
        if run.step == 6:
            os.kill(os.getpid(), signal.SIGTERM)
        return update()

    run._update = signalled  # type: ignore[method-assign]
    with pytest.raises(Interrupted, match="stopped at step 7"):
        run.run()
    disturb()
    trainer(text, tmp_path / "cut", *settings).run(resume=True)
    assert_same_runs(tmp_path)


def test_a_killed_evaluation_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the saving of a better model and the checkpoint lies a moment in which a run can die."""
    text = tmp_path / "t.txt"
    text.write_text(prose())
    settings = ("train.steps=12", "train.evaluate_every=4", "train.checkpoint_seconds=1000")
    trainer(text, tmp_path / "whole", *settings).run()
    run = trainer(text, tmp_path / "cut", *settings)
    react, seen = run._react, []

    def killed(found: tuple[float, float], best: bool) -> None:
        seen.append(found)
        if len(seen) == 2:
            raise Killed
        react(found, best)

    run._react = killed  # type: ignore[method-assign]
    with pytest.raises(Killed):
        run.run()
    trainer(text, tmp_path / "cut", *settings).run(resume=True)
    assert_same_runs(tmp_path)
