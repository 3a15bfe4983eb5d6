"""Dates in many languages."""

import re
import sys
from datetime import date
from pathlib import Path

import pytest

from elman.corpora import export, info, locate
from elman.errors import UserError
from elman.generated import dates
from elman.generated.dates import Wording, date_pairs, date_parts, wordings
from elman.records import PairReader, read_pairs

pytest.importorskip("babel")

DAY = date(2026, 11, 6)


def test_wordings_of_many_languages_each_with_the_whole_date() -> None:
    texts = {wording: wording.write(DAY) for wording in wordings()}
    assert len({wording.locale for wording in texts}) >= 50
    for wording, text in texts.items():
        assert "2026" in text, wording
        assert re.search(r"(?<!\d)0?6(?!\d)", text), wording
    assert texts[Wording("fr", "EEEE d MMMM y")] == "vendredi 6 novembre 2026"
    assert texts[Wording("ja", "y年M月d日")] == "2026年11月6日"
    assert texts[Wording("en_US", "MMMM d, y")] == "November 6, 2026"


def test_no_text_is_two_dates() -> None:
    """Every day of the first dozen of every month in every wording: no text comes twice for different days."""
    days = [date(2026, month, day) for month in range(1, 13) for day in (1, 2, 3, 10, 11, 12)]
    meaning: dict[str, date] = {}
    for wording in wordings():
        for day in days:
            assert meaning.setdefault(wording.write(day), day) == day, wording


def test_figures_that_are_read_in_two_ways_are_left_out() -> None:
    texts = {wording.write(DAY) for wording in wordings()}
    assert not any(re.fullmatch(r"\d+/\d+/\d{4}", text) for text in texts)
    assert {"6.11.2026", "2026-11-06", "2026/11/6"} <= texts


def test_the_seed_decides_and_no_text_comes_twice() -> None:
    pairs = date_pairs(500, seed=1)
    assert pairs == date_pairs(500, seed=1) != date_pairs(500, seed=2)
    assert len({pair.source for pair in pairs}) == 500
    assert pairs[:100] == date_pairs(100, seed=1)
    with pytest.raises(UserError, match="cannot be made"):
        date_pairs(-1)


def test_no_held_out_date_stands_in_training() -> None:
    parts = date_parts(2000)
    train, test = ({pair.target for pair in parts[part]} for part in ("train", "test"))
    assert not train & test
    assert len(parts["test"]) > 100


def test_the_corpus_is_files_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    files = locate("dates")
    assert read_pairs(PairReader().files(files["test"])).pairs == date_parts()["test"]
    assert info("dates")["here"] is True
    assert [path.name for path in export("dates", tmp_path / "out")] == ["train.tsv", "dev.tsv", "test.tsv"]


def test_without_babel_the_user_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "babel"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(UserError, match=r"pip install elman\[demo\]"):
        dates._locale("de")
