import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elman.errors import RunError, UserError
from elman.train.log import RunLog, draw_curves, read_log


def test_records_come_back_and_half_a_line_is_left_out(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.add("train", 1, loss=2.123456789012, lr=0.1)
    log.add("dev", 1, loss=2.0)
    with log.path.open("a") as file:
        file.write('{"kind": "train", "st')
    records = read_log(log.path)
    assert [record["kind"] for record in records] == ["train", "dev"]
    assert records[0]["loss"] == pytest.approx(2.123456789, abs=1e-6)


def test_rewinding_drops_what_came_after(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    for step in range(1, 6):
        log.add("train", step, loss=float(step))
    log.rewind(3)
    assert [record["step"] for record in read_log(log.path)] == [1, 2, 3]


def test_curves_are_drawn_even_of_an_empty_log(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.rewind(0)
    draw_curves(tmp_path)
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    log.add("train", 1, loss=2.0, lr=0.1)
    log.add("dev", 1, loss=2.0)
    empty = (tmp_path / "curves.png").stat().st_size
    draw_curves(tmp_path)
    assert (tmp_path / "curves.png").stat().st_size != empty


def test_a_log_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").mkdir()
    with pytest.raises(RunError, match=r"could not write .*log\.jsonl"):
        RunLog(tmp_path).add("train", 1, loss=1.0)


def test_tensorboard_gets_the_same_records(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    log = RunLog(tmp_path, ["tensorboard"])
    log.rewind(0)
    log.add("dev", 1, loss=2.0)
    log.close()
    assert list((tmp_path / "tensorboard").glob("events*"))


def test_callbacks_get_every_record(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    RunLog(tmp_path, callbacks=[seen.append]).add("dev", 3, loss=2.0)
    assert seen == read_log(tmp_path / "log.jsonl") == [{"kind": "dev", "step": 3, "loss": 2.0}]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_trackers_get_every_record(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    run = SimpleNamespace(log=lambda figures, step: calls.append((figures, step)), finish=lambda: calls.append("end"))
    wandb = SimpleNamespace(init=lambda **options: run)
    mlflow = SimpleNamespace(start_run=lambda **options: None, log_metrics=run.log, end_run=run.finish)
    monkeypatch.setitem(sys.modules, name, {"wandb": wandb, "mlflow": mlflow}[name])
    log = RunLog(tmp_path, [name])
    log.rewind(0)
    log.add("train", 1, loss=2.0, lr=0.5)
    log.close()
    assert calls == [({"train/loss": 2.0, "train/lr": 0.5}, 1), "end"]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_tracker_that_is_not_installed_is_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UserError, match=rf"train\.{name} needs {name}: pip install 'elman\[{name}\]'"):
        RunLog(tmp_path, [name]).rewind(0)
