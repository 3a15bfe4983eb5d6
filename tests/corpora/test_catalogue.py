"""Corpora by name."""

import ast
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from elman.corpora import CATALOGUE, CorpusFile, catalogue, export, info, locate
from elman.errors import UserError
from elman.records import TextFiles

TOY = b"toy text\nin two lines\n"


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A catalogue entry `toy` of one file, an empty cache, and a data folder that holds it."""
    file = CorpusFile("toy.txt", len(TOY), hashlib.sha256(TOY).hexdigest())
    entry = replace(CATALOGUE["sonnets"], name="toy", files=(file,), splits={"train": ("toy.txt",)})
    monkeypatch.setitem(CATALOGUE, "toy", entry)
    monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ELMAN_DATA", raising=False)
    (tmp_path / "data" / "toy").mkdir(parents=True)
    (tmp_path / "data" / "toy" / "toy.txt").write_bytes(TOY)
    return tmp_path


def test_entries_are_consistent() -> None:
    for name, entry in CATALOGUE.items():
        assert entry.name == name
        assert "train" in entry.splits
        assert {file for files in entry.splits.values() for file in files} == {file.name for file in entry.files}
        assert all(len(file.sha256) == 64 for file in entry.files)
        assert all(file.address is None or file.address.startswith("https://") for file in entry.files)


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean 'wikitext2'"):
        locate("wikitext-2")


def test_places_are_tried_in_order(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate("toy", toy / "data") == {"train": [toy / "data" / "toy" / "toy.txt"]}
    monkeypatch.setenv("ELMAN_DATA", str(toy / "data"))
    assert locate("toy") == {"train": [toy / "data" / "toy" / "toy.txt"]}
    monkeypatch.delenv("ELMAN_DATA")
    (toy / "data").rename(toy / "corpora")
    (toy / "cache").mkdir()
    (toy / "corpora").rename(toy / "cache" / "corpora")
    assert locate("toy") == {"train": [toy / "cache" / "corpora" / "toy" / "toy.txt"]}


def test_without_an_address_the_user_is_told_where_the_file_goes(toy: Path) -> None:
    with pytest.raises(UserError, match=r"put toy\.txt .* at .*toy\.txt"):
        locate("toy")


def test_what_is_nowhere_is_downloaded(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = CATALOGUE["toy"]
    there = replace(entry, files=(replace(entry.files[0], address="https://example.org/toy.txt"),))
    monkeypatch.setitem(CATALOGUE, "toy", there)
    asked = []

    def fetch(address: str, target: Path, sha256: str, progress: object) -> Path:
        asked.append(address)
        target.parent.mkdir(parents=True)
        target.write_bytes(TOY)
        return target

    monkeypatch.setattr(catalogue, "download", fetch)
    assert locate("toy")["train"][0].read_bytes() == TOY
    assert locate("toy") == {"train": [toy / "cache" / "corpora" / "toy" / "toy.txt"]}
    assert asked == ["https://example.org/toy.txt"]


def test_another_file_under_the_same_name_is_refused(toy: Path) -> None:
    (toy / "data" / "toy" / "toy.txt").write_bytes(TOY + b"more")
    with pytest.raises(UserError, match="is not the toy that Elman knows"):
        locate("toy", toy / "data")


def test_export_and_info(toy: Path) -> None:
    assert info("toy")["here"] is False
    facts = info("toy", toy / "data")
    assert facts["here"] is True
    assert facts["splits"]["train"]["characters"] == len(TOY)
    assert facts["splits"]["train"]["lines"] == 2
    assert export("toy", toy / "out", toy / "data") == [toy / "out" / "toy.txt"]
    assert (toy / "out" / "toy.txt").read_bytes() == TOY


def test_python_is_built_in() -> None:
    files = locate("python")["train"]
    assert files == locate("python")["train"]
    size = sum(path.stat().st_size for path in files)
    assert 2_000_000 < size <= 8_000_000
    parts = {part for path in files for part in path.parts[-3:]}
    assert not parts & {"test", "tests", "idlelib", "site-packages"}
    assert TextFiles(files).survey().characters <= size
    ast.parse(files[0].read_text(encoding="utf-8"))


def test_python_is_exported_with_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [path for path in locate("python")["train"] if path.parent.name in ("json", "email")]
    monkeypatch.setattr(catalogue, "python_sources", lambda: files)
    written = export("python", tmp_path)
    assert tmp_path / "json" / "decoder.py" in written
    assert len(written) == len(set(written)) == len(files)
    assert [path.read_bytes() for path in written] == [path.read_bytes() for path in files]


@pytest.mark.data
@pytest.mark.parametrize("name", [name for name, entry in CATALOGUE.items() if entry.files])
def test_checksums_are_those_of_the_corpora(name: str, data_dir: Path) -> None:
    for files in locate(name, data_dir).values():
        for path in files:
            (known,) = (file for file in CATALOGUE[name].files if file.name.rstrip("/") == path.name)
            content = b"".join(file.read_bytes() for file in catalogue.files_of(path))
            assert hashlib.sha256(content).hexdigest() == known.sha256


def test_a_corpus_may_be_folders(toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in ("good/1.txt", "good/2.txt", "bad/1.txt"):
        (toy / "data" / "toy" / place).parent.mkdir(exist_ok=True)
        (toy / "data" / "toy" / place).write_text(f"{place}\n")
    files = tuple(CorpusFile(name, size, "") for name, size in (("bad/", 10), ("good/", 22)))
    entry = replace(CATALOGUE["toy"], files=files, splits={"train": ("bad/", "good/")})
    monkeypatch.setitem(CATALOGUE, "toy", entry)
    data = toy / "data"
    assert locate("toy", data) == {"train": [data / "toy" / "bad", data / "toy" / "good"]}
    known = info("toy", data)["splits"]["train"]
    assert known["bytes"] == 32 and len(known["files"]) == 3
    assert [path.relative_to(toy) for path in export("toy", toy / "out", data)] == [
        Path("out/bad/1.txt"), Path("out/good/1.txt"), Path("out/good/2.txt")
    ]  # fmt: skip
    with pytest.raises(UserError, match=r"has no address to download from: put bad/ \(10 bytes"):
        locate("toy")
    (data / "toy" / "good" / "2.txt").unlink()
    with pytest.raises(UserError, match=r"good is not the toy that Elman knows \(11 bytes, not 22\)"):
        locate("toy", data)


def test_an_export_leaves_other_files_alone(toy: Path) -> None:
    out = toy / "out"
    assert export("toy", out, toy / "data") == export("toy", out, toy / "data") == [out / "toy.txt"]
    (out / "toy.txt").write_text("another corpus'")
    with pytest.raises(UserError, match=r"toy\.txt is there already, and is not that of toy: name another folder"):
        export("toy", out, toy / "data")
    assert (out / "toy.txt").read_text() == "another corpus'"
