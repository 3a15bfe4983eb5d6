"""The rest of the tour: surnames and dates in many languages, made on the spot."""

from pathlib import Path

import pytest

from elman.cli.demo import DATES, NAMES, sort_surnames, translate_dates


def test_surnames_are_sorted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("faker")
    small = ["train.steps=4", "train.threads=1", "model.hidden=8", "baseline.ngrams=false"]
    sort_surnames(tmp_path / "surnames", small)
    shown = capsys.readouterr().out
    assert all(name in shown for name in NAMES)
    assert "most frequent class" in shown
    assert (tmp_path / "surnames" / "confusion.png").exists()


def test_dates_are_translated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("babel")
    small = ["train.steps=2", "train.threads=1", "model.hidden=8", "search.beam=1", "search.length_extra=1"]
    small += ["search.length_factor=0.2", "report.baselines=false"]
    translate_dates(tmp_path / "dates", small)
    shown = capsys.readouterr().out
    assert all(date in shown for date in DATES)
    assert (tmp_path / "dates" / "alignment.png").read_bytes().startswith(b"\x89PNG")
