"""A tagger's run that was stopped and resumed ends with the same bytes as one that was not."""

from pathlib import Path

import pytest

from elman.errors import UserError
from elman.train import loop as loop_module
from tests.tasks.resuming import assert_resumes_exactly
from tests.tasks.tag_runs import run, sentences, trainer, write

STEPS = 13


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


@pytest.mark.parametrize(
    "settings",
    [
        ("model.crf=true", "train.average=ema", "batch.made_up=0.3", "batch.swapped=0.3", "batch.with_spans=2"),
        ("model.cell=lstm", "model.layers=2", "model.dropout=0.3", "model.weight_dropout=0.1", "model.locked=false"),
    ],
)
def test_resumed_equals_uninterrupted(tmp_path: Path, settings: tuple[str, ...]) -> None:
    path = write(tmp_path / "a.conll")
    settings = (*settings, f"train.steps={STEPS}", "train.evaluate_every=4", "train.checkpoint_seconds=0")
    assert_resumes_exactly(tmp_path, lambda folder: trainer(path, folder, *settings))


def test_other_data_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.conll")
    run(path, tmp_path / "run", "train.steps=3")
    write(path, sentences(60, seed=5))
    with pytest.raises(UserError, match=r"have changed|does not fit"):
        run(path, tmp_path / "run", "train.steps=3", resume=True)
