"""Runs that are killed on the spot and taken up again."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from elman.train.log import read_log
from elman.train.loop import Trainer


class Killed(BaseException):
    """Ends the run on the spot, as a kill does."""


def assert_resumes_exactly(folder: Path, trainer: Callable[[Path], Trainer], stops: Sequence[int] = (3, 7)) -> None:
    """Train once without a break, and once killed at some updates: the same losses and the same bytes."""
    trainer(folder / "whole").run()
    for number, stop in enumerate(stops):
        cut = trainer(folder / "cut")
        update = cut._update

        def killed(cut: Any = cut, update: Any = update, stop: int = stop) -> Any:
            if cut.step == stop:
                raise Killed
            return update()

        cut._update = killed  # type: ignore[method-assign]
        with pytest.raises(Killed):
            cut.run(resume=number > 0)
        disturb()
    trainer(folder / "cut").run(resume=True)
    assert_same_runs(folder)


def assert_same_runs(folder: Path) -> None:
    """The runs `whole` and `cut` have the same losses and the same bytes."""
    assert losses(folder / "cut") == losses(folder / "whole")
    whole, cut = (folder / name / "model.safetensors" for name in ("whole", "cut"))
    assert whole.read_bytes() == cut.read_bytes()


def losses(folder: Path) -> list[dict[str, Any]]:
    """What a run wrote to its log, but for the time that it took."""
    return [{k: v for k, v in record.items() if k != "seconds"} for record in read_log(folder / "log.jsonl")]


def disturb() -> None:
    """What another process would find: other random states."""
    torch.manual_seed(int.from_bytes(os.urandom(4), "little"))
