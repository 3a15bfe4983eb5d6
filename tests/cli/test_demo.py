"""The tour's second half: surnames by language, made on the spot."""

from pathlib import Path

import pytest

from elman.cli.demo import NAMES, sort_surnames


def test_surnames_are_sorted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("faker")
    small = ["train.steps=4", "train.threads=1", "model.hidden=8", "baseline.ngrams=false"]
    sort_surnames(tmp_path / "surnames", small)
    shown = capsys.readouterr().out
    assert all(name in shown for name in NAMES)
    assert "most frequent class" in shown
    assert (tmp_path / "surnames" / "confusion.png").exists()
