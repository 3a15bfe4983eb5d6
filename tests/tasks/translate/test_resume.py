"""A translator's run that was stopped and resumed ends with the same bytes as one that was not."""

from pathlib import Path
from typing import Any

import pytest
import torch

from elman.errors import UserError
from elman.train import loop as loop_module
from elman.train.log import read_log
from tests.tasks.translate.runs import run, strings, trainer, write

STEPS = 13


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


class Killed(BaseException):
    """Ends the run on the spot, as a kill does."""


def losses(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if k != "seconds"} for record in read_log(folder / "log.jsonl")]


@pytest.mark.parametrize(
    "settings",
    [
        ("train.average=ema", "model.input_dropout=0.2", "model.token_dropout=0.1", "loss.smoothing=0.1"),
        ("loss.teacher_forcing=0.9", "loss.teacher_forcing_end=0.2", "model.decoder=bahdanau", "model.cell=lstm"),
        ("loss.teacher_forcing=0.5", "model.decoder=luong-feeding", "model.layers=2", "model.dropout=0.3"),
    ],
)
def test_resumed_equals_uninterrupted(tmp_path: Path, settings: tuple[str, ...]) -> None:
    path = write(tmp_path / "a.tsv")
    settings = (*settings, f"train.steps={STEPS}", "train.evaluate_every=4", "train.checkpoint_seconds=0")
    trainer(path, tmp_path / "whole", *settings).run()
    for stop in (3, 7):
        cut = trainer(path, tmp_path / "cut", *settings)
        update = cut._update

        def killed(cut: Any = cut, update: Any = update, stop: int = stop) -> Any:
            if cut.step == stop:
                raise Killed
            return update()

        cut._update = killed  # type: ignore[method-assign]
        with pytest.raises(Killed):
            cut.run(resume=stop > 3)
        torch.manual_seed(stop)  # another process has other random states
    trainer(path, tmp_path / "cut", *settings).run(resume=True)
    assert losses(tmp_path / "cut") == losses(tmp_path / "whole")
    whole, again = (tmp_path / name / "model.safetensors" for name in ("whole", "cut"))
    assert whole.read_bytes() == again.read_bytes()


def test_other_data_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv")
    run(path, tmp_path / "run", "train.steps=3")
    write(path, strings(seed=5))
    with pytest.raises(UserError, match=r"have changed|does not fit"):
        run(path, tmp_path / "run", "train.steps=3", resume=True)
