"""A translator from two parallel files to translations on the command line."""

import json
from pathlib import Path

import pytest

import elman
from tests.cli.invoke import invoke
from tests.tasks.translate_runs import SMALL, sentences

SETTINGS = [part for setting in (*SMALL, "text.kind=words") for part in ("-s", setting)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, pairs in {"train": sentences(120), "test": sentences(20, seed=5)}.items():
        (folder / f"{name}.de").write_text("".join(f"{pair.source}\n" for pair in pairs))
        (folder / f"{name}.en").write_text("".join(f"{pair.target}\n" for pair in pairs))
    return folder


def command(files: Path, out: Path, *settings: str) -> list[str]:
    data = [part for s in ("train", "test") for side in ("de", "en") for part in (f"--{s}", str(files / f"{s}.{side}"))]
    return ["train", "translate", *data, "--out", str(out), *SETTINGS, *(p for s in settings for p in ("-s", s))]


def test_trained_evaluated_and_used(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, shown, error = invoke(*command(files, out, "train.epochs=20", "batch.tokens=64"))
    assert code == 0, error
    assert "nearest training pair" in shown and "BLEU nrefs:1" in shown and "elman predict" in shown
    trained = json.loads((out / "metrics.json").read_text())["test"]
    assert trained["exact_match"] > 0.9 and trained["bleu"] > 90

    two = [str(files / "test.de"), str(files / "test.en")]
    code, shown, error = invoke("evaluate", str(out), *two, "--json")
    assert code == 0, error
    assert json.loads(shown)[" ".join(two)] == trained
    code, shown, error = invoke("predict", str(out), two[0])
    assert code == 0, error
    right = (files / "test.en").read_text().splitlines()
    said = shown.splitlines()
    assert sum(one == other for one, other in zip(said, right, strict=True)) == trained["exact_match"] * len(right)
    assert said == [one.text for one in elman.load(out).predict((files / "test.de").read_text().splitlines())]
    assert "elman explain run" in (out / "README.md").read_text()


def test_files_of_different_length_end_it_before_anything_is_written(files: Path, tmp_path: Path) -> None:
    (tmp_path / "short.en").write_text("the dog\n")
    data = ["--train", str(files / "train.de"), "--train", str(tmp_path / "short.en")]
    code, _, error = invoke("train", "translate", *data, "--out", str(tmp_path / "run"))
    assert code == 2
    assert "is longer than" in error and "by 119 lines (120 and 1)" in error
    assert len(error.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()
