"""Surnames by language."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from elman.corpora import export, info, locate
from elman.errors import UserError
from elman.generated.surnames import surname_lists, surnames
from elman.records import LabelledReader, check_classes, overlap

pytest.importorskip("faker")


def test_many_languages_and_no_name_twice_in_one() -> None:
    lists = surname_lists()
    assert len(lists) >= 18
    for language, names in lists.items():
        assert len(names) == len(set(names)) >= 40, language
        assert all(name == name.strip() and name for name in names)
    assert "Sato" in lists["Japanese"]
    assert "Chen" in lists["Chinese"]
    assert not any(name.isascii() for name in lists["Greek"])


def test_no_test_name_stands_in_train_and_every_language_is_in_both() -> None:
    parts = surnames()
    train, test = parts["train"], parts["test"]
    assert overlap([record.text for record in train], [record.text for record in test]) == 0
    assert {record.labels for record in train} == {record.labels for record in test}
    assert 0.2 < len(test) / len(train + test) < 0.3


def test_the_seed_decides() -> None:
    assert surnames(1) == surnames(1)
    assert {record.text for record in surnames(1)["test"]} != {record.text for record in surnames(2)["test"]}


def test_the_corpus_is_files_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    files = locate("surnames")
    assert files == locate("surnames")
    records = list(LabelledReader().files(files["test"]).records())
    assert [(record.text, record.labels) for record in records] == [(r.text, r.labels) for r in surnames()["test"]]
    check_classes(Counter(label for record in records for label in record.labels), len(records), "surnames")
    assert info("surnames")["splits"]["test"]["lines"] == len(records) + 1
    assert [path.name for path in export("surnames", tmp_path / "out")] == ["train.csv", "test.csv"]


def test_without_faker_the_user_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "faker"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "faker", None)
    with pytest.raises(UserError, match=r"pip install -U elman\[demo\]"):
        surname_lists()
