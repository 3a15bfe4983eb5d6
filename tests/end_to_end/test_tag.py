"""A tagger from files to marked text on the command line, killed on the way."""

import json
import signal
import time
from pathlib import Path

import pytest

import elman
from tests.cli.invoke import invoke
from tests.end_to_end.processes import finish, start
from tests.tasks.tag_runs import SMALL, sentences, write

SETTINGS = [part for setting in (*SMALL, "model.crf=true") for part in ("-s", setting)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    write(folder / "train.conll", sentences(80))
    write(folder / "test.conll", sentences(20, seed=5))
    return folder


def command(files: Path, out: Path, *settings: str) -> list[str]:
    data = ["--train", str(files / "train.conll"), "--test", str(files / "test.conll")]
    return ["train", "tag", *data, "--out", str(out), *SETTINGS, *(part for s in settings for part in ("-s", s))]


def test_trained_evaluated_and_used(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, shown, error = invoke(*command(files, out, "train.epochs=12"))
    assert code == 0, error
    assert "most frequent tag per word" in shown and "span F1" in shown and "elman predict" in shown
    trained = json.loads((out / "metrics.json").read_text())["test"]
    assert trained["spans"]["f1"] > 0.9

    test = str(files / "test.conll")
    code, shown, error = finish(start("evaluate", str(out), test, "--json"))
    assert code == 0, error
    assert json.loads(shown)[test] == trained
    code, shown, error = invoke("evaluate", str(out), test)
    assert code == 0, error
    assert "PER" in shown and "confusion" in shown

    text = tmp_path / "new.txt"
    text.write_text("Ada went to Paris!\nGrace Emmy went to Rome.\n")
    code, shown, error = invoke("predict", str(out), str(text), "--json")
    assert code == 0, error
    found = [json.loads(line) for line in shown.splitlines()]
    assert [span["text"] for record in found for span in record["spans"]] == ["Ada", "Paris", "Grace Emmy", "Rome"]
    assert [record["tags"] for record in found] == [
        list(tagging.tags) for tagging in elman.load(out).predict(text.read_text().splitlines())
    ]
    code, shown, error = invoke("predict", str(out), str(text))
    assert shown.splitlines()[:3] == ["Ada\tB-PER", "went\tO", "to\tO"]


def test_killed_and_resumed_ends_with_the_same_bytes(files: Path, tmp_path: Path) -> None:
    settings = ("train.steps=120", "train.evaluate_every=40", "train.checkpoint_seconds=0", "train.average=ema")
    code, _, error = invoke(*command(files, tmp_path / "whole", *settings))
    assert code == 0, error
    process = start(*command(files, tmp_path / "cut", *settings))
    while process.poll() is None and not (tmp_path / "cut" / "checkpoint" / "state.safetensors").exists():
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    code, _, error = invoke("train", "tag", "--out", str(tmp_path / "cut"), "--resume")
    assert code == 0, error
    for name in ("model.safetensors", "tokenizer.json", "lexicon.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    whole, cut = (json.loads((tmp_path / name / "metrics.json").read_text()) for name in ("whole", "cut"))
    assert whole["test"] == cut["test"]


def test_the_same_lines_in_python(files: Path, tmp_path: Path) -> None:
    model = elman.fit(
        "tag",
        out=tmp_path / "run",
        train=files / "train.conll",
        test=files / "test.conll",
        settings=[*SMALL, "train.steps=3"],
    )
    found = elman.evaluate(tmp_path / "run", files / "test.conll")
    assert model.report["test"] == found[str(files / "test.conll")]


def test_a_mistake_is_one_sentence(files: Path, tmp_path: Path) -> None:
    code, _, error = invoke(*command(files, tmp_path / "run", "data.tag_column=5"))
    assert code == 2
    assert "has 2 columns, so there is no column 5" in error
    assert "Traceback" not in error
    assert not (tmp_path / "run").exists()
