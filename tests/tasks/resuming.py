"""Runs that are killed on the spot and taken up again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from elman.train import Trainer
from elman.train.log import read_log


class Killed(BaseException):
    """Ends the run on the spot, as a kill does."""


def assert_resumes_exactly(folder: Path, trainer: Callable[[Path], Trainer]) -> None:
    """Train once without a break, and once killed before the updates 4 and 8: the same losses and the same bytes."""
    trainer(folder / "whole").run()
    for stop in (3, 7):
        cut = trainer(folder / "cut")
        update = cut._update

        def killed(cut: Any = cut, update: Any = update, stop: int = stop) -> Any:
            if cut.step == stop:
                raise Killed
            return update()

        cut._update = killed  # type: ignore[method-assign]
        with pytest.raises(Killed):
            cut.run(resume=stop > 3)
        torch.manual_seed(stop)  # another process has other random states
    trainer(folder / "cut").run(resume=True)
    assert _losses(folder / "cut") == _losses(folder / "whole")
    whole, again = (folder / name / "model.safetensors" for name in ("whole", "cut"))
    assert whole.read_bytes() == again.read_bytes()


def _losses(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in record.items() if k != "seconds"} for record in read_log(folder / "log.jsonl")]
