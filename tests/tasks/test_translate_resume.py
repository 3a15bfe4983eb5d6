"""A translator's run that was stopped and resumed ends with the same bytes as one that was not."""

from pathlib import Path

import pytest

from elman.errors import UserError
from elman.train import loop as loop_module
from tests.tasks.resuming import assert_resumes_exactly
from tests.tasks.translate_runs import run, strings, trainer, write

STEPS = 13


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


@pytest.mark.parametrize(
    "settings",
    [
        ("train.average=ema", "model.input_dropout=0.2", "model.token_dropout=0.1", "loss.smoothing=0.1"),
        ("loss.teacher_forcing=0.9", "loss.teacher_forcing_end=0.2", "model.decoder=bahdanau", "model.cell=lstm"),
        ("loss.teacher_forcing=0.5", "model.decoder=luong-feeding", "model.layers=2", "model.dropout=0.3"),
        ("text.bos=true", "model.decoder=tutorial-attention", "model.attention=fixed-length", "model.tied=none"),
    ],
)
def test_resumed_equals_uninterrupted(tmp_path: Path, settings: tuple[str, ...]) -> None:
    path = write(tmp_path / "a.tsv")
    settings = (*settings, f"train.steps={STEPS}", "train.evaluate_every=4", "train.checkpoint_seconds=0")
    assert_resumes_exactly(tmp_path, lambda folder: trainer(path, folder, *settings))


def test_other_data_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv")
    run(path, tmp_path / "run", "train.steps=3")
    write(path, strings(seed=5))
    with pytest.raises(UserError, match=r"have changed|does not fit"):
        run(path, tmp_path / "run", "train.steps=3", resume=True)
