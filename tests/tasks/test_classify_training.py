"""Every kind of network learns, reports and goes on exactly."""

import json
from pathlib import Path

import numpy as np
import pytest

from elman.errors import UserError
from elman.tasks.classify import TextClassifier
from elman.train import loop as loop_module
from tests.tasks.classify_runs import names, run, trainer, write_table
from tests.tasks.resuming import assert_resumes_exactly, losses

CASES = {
    "bytes, last state, one direction": ("text.kind=bytes", "model.pooling=last", "model.bidirectional=false"),
    "sub-words, mean": ("text.kind=bpe", "text.size=280", "model.pooling=mean"),
    "characters, attention, stacked": ("model.pooling=attention", "model.layers=2", "model.cell=lstm"),
    "words and characters": ("text.kind=words", "model.characters=6", "model.token_dropout=0.2", "model.edges=false"),
    "an equation of its own": ("model.cell=mut1", "model.hidden=8"),
    "dropouts, smoothing, weights, average": (
        "model.locked=true",
        "model.weight_dropout=0.1",
        "loss.smoothing=0.1",
        "loss.class_weights=balanced",
        "train.average=ema",
    ),
}


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


@pytest.mark.parametrize("case", CASES)
def test_it_learns_and_a_killed_run_ends_the_same(tmp_path: Path, case: str) -> None:
    table = write_table(tmp_path / "n.csv")
    settings = ("train.checkpoint_seconds=0", "train.evaluate_every=5", *CASES[case])
    assert_resumes_exactly(tmp_path, lambda folder: trainer(table, folder, *settings), stops=(3, 9))
    log = losses(tmp_path / "whole")
    assert log[-1]["loss"] < 0.8 * log[0]["loss"]
    texts = [name for name, _ in names(20)]
    found = [TextClassifier.load(tmp_path / name).probabilities(texts) for name in ("whole", "cut")]
    assert np.array_equal(*found)


def test_a_run_does_not_go_on_with_other_texts(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    run(table, tmp_path / "run", "train.steps=5")
    write_table(table, [*names()[:-1], ("other", "north")])
    with pytest.raises(UserError, match="have changed"):
        run(table, tmp_path / "run", "train.steps=5", resume=True)


def test_the_folder_has_a_report_and_a_picture(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    test = write_table(tmp_path / "t.csv", [*names(10), ("grimtorvika", "north"), ("zzz", "west")])
    run(table, tmp_path / "run", f'data.test=["{test}"]', "data.dev_fraction=0", "baseline.ngrams=true")
    report = json.loads((tmp_path / "run" / "metrics.json").read_text())
    scores = report["test"]
    assert scores["texts"] == 12
    assert scores["unseen"]["texts"] == 2
    assert sum(map(sum, scores["confusion"])) == 12
    assert sum(entry["support"] for entry in scores["classes"].values()) == 12
    assert sum(bin["count"] for bin in scores["calibration"]) == 12
    assert {mistake["right"] for mistake in scores["mistakes"]} <= {"north", "south", "west"}
    assert {"most frequent class", "character n-grams"} >= set(report["baselines"])
    for rival in report["baselines"].values():
        assert set(rival["test"]) == set(scores) - {"loss", "calibration", "calibration_error", "mistakes"}
    assert (tmp_path / "run" / "confusion.png").read_bytes().startswith(b"\x89PNG")
    card = (tmp_path / "run" / "README.md").read_text()
    assert f"{100 * scores['accuracy']:.2f}" in card
    assert "most frequent class" in card
    assert str(tmp_path) not in card


def test_folds_are_trained_once_and_summed_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write_table(tmp_path / "n.csv")
    settings = ("data.folds=3", "train.steps=10")
    run(table, tmp_path / "run", *settings)
    report = json.loads((tmp_path / "run" / "metrics.json").read_text())
    each = [
        json.loads((tmp_path / "run" / "folds" / f"0{fold}" / "metrics.json").read_text())["test"] for fold in (1, 2, 3)
    ]
    assert sum(scores["texts"] for scores in each) == 120
    found = report["cross_validation"]
    assert found["accuracy"]["mean"] == pytest.approx(np.mean([scores["accuracy"] for scores in each]))
    assert "3-fold cross-validation" in (tmp_path / "run" / "README.md").read_text()
    # Whoever goes on finds the folds done: nothing is trained again.
    times = [path.stat().st_mtime_ns for path in sorted((tmp_path / "run" / "folds").glob("*/model.safetensors"))]
    run(table, tmp_path / "run", *settings, resume=True)
    again = [path.stat().st_mtime_ns for path in sorted((tmp_path / "run" / "folds").glob("*/model.safetensors"))]
    assert times == again
