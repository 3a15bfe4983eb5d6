"""`elman predict` and the other commands on a classifier: records in, answers out, in order."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.invoke import invoke
from tests.end_to_end.processes import environment
from tests.tasks.classify_runs import SMALL, names, write_table

OVERRIDES = [part for setting in SMALL for part in ("-s", setting)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of names, and a classifier trained on it."""
    folder = tmp_path_factory.mktemp("predict")
    table = write_table(folder / "names.csv")
    test = write_table(folder / "test.csv", names(30))
    more = ("--test", str(test), "-s", "data.dev_fraction=0")
    code, shown, error = invoke(
        "train", "classify", "--train", str(table), *more, "-o", str(folder / "run"), *OVERRIDES
    )
    assert code == 0, error
    assert "most frequent class" in shown
    assert "expected calibration error" in shown
    assert "the label is column 'language' (guessed)" in error
    assert "30 of the 30 test texts stand in training too" in error
    assert f"elman predict {folder / 'run'}" in shown
    return folder


def test_one_line_in_one_line_out(folder: Path) -> None:
    (folder / "new.txt").write_text("".join(f"{name}\n" for name, _ in names(20)))
    code, out, error = invoke("predict", str(folder / "run"), str(folder / "new.txt"))
    assert code == 0, error
    labels = [line.split("\t")[0] for line in out.splitlines()]
    assert len(labels) == 20
    assert sum(found == label for found, (_, label) in zip(labels, names(20), strict=True)) >= 18


def test_a_table_as_json(folder: Path) -> None:
    code, out, error = invoke("predict", str(folder / "run"), str(folder / "test.csv"), "--json", "--window", "7")
    assert code == 0, error
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["text"] for record in records] == [name for name, _ in names(30)]
    assert [record["line"] for record in records] == list(range(2, 32))


def test_bad_lines_end_it_or_are_skipped(folder: Path) -> None:
    (folder / "bad.txt").write_bytes(b"grimulfa\nol\xff\n\nolaina\n")
    code, out, error = invoke("predict", str(folder / "run"), str(folder / "bad.txt"))
    assert code == 2
    assert f"{folder / 'bad.txt'}:2 is not utf-8" in error
    code, out, error = invoke("predict", str(folder / "run"), str(folder / "bad.txt"), "--on-error", "skip")
    assert code == 0, error
    assert len(out.splitlines()) == 2
    told = error.strip().splitlines()
    assert len(told) == 3
    assert "bad.txt:2 is not utf-8" in told[0]
    assert "bad.txt:3 has an empty text" in told[1]
    assert told[2] == "2 lines skipped"


def test_standard_input_in_constant_memory(folder: Path) -> None:
    """More text than is held at a time goes through a pipe, in order."""
    texts = [name for name, _ in names(50)] * 40
    command = [sys.executable, "-m", "elman.cli.main", "predict", str(folder / "run"), "--window", "100", "--json"]
    done = subprocess.run(
        command, input="\n".join(texts), capture_output=True, text=True, env=environment(), check=True
    )
    assert [json.loads(line)["text"] for line in done.stdout.splitlines()] == texts


def test_evaluate_agrees_with_training_to_the_last_digit(folder: Path) -> None:
    code, out, error = invoke("evaluate", str(folder / "run"), str(folder / "test.csv"), "--json")
    assert code == 0, error
    scores = json.loads(out)
    kept = json.loads((folder / "run" / "metrics.json").read_text())
    assert scores[str(folder / "test.csv")] == kept["test"]
    code, out, error = invoke("evaluate", str(folder / "run"), str(folder / "test.csv"))
    assert code == 0, error
    assert "most frequent class" in out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("predict", "{run}", "{folder}/nowhere.txt"), "no such file"),
        (("predict", "{run}", "{folder}/test.csv", "--on-error", "ignore"), "--on-error is fail or skip"),
        (("predict", "{run}", "{folder}/test.csv", "--column", "nme"), "did you mean 'name'"),
        (("predict", "{run}", "{folder}/test.csv", "--format", "xml"), "there is no format 'xml'"),
        (("predict", "{folder}", "{folder}/test.csv"), "is not a model folder"),
        (("evaluate", "{run}", "{folder}/other.csv"), "has the label 'east', which no training text has"),
        (("evaluate", "{run}", "{folder}/test.csv", "--tokens"), "is no language model"),
    ],
)
def test_mistakes_are_one_sentence(folder: Path, arguments: tuple[str, ...], sentence: str) -> None:
    write_table(folder / "other.csv", [("grim", "east")])
    code, out, error = invoke(*(part.format(run=folder / "run", folder=folder) for part in arguments))
    assert (code, out) == (2, "")
    assert sentence in error
    assert len(error.strip().splitlines()) == 1


def test_a_language_model_predicts_what_comes_next(tmp_path: Path) -> None:
    text = tmp_path / "t.txt"
    text.write_text("the cat sat on the mat\n" * 20)
    small = ("-s", "model.hidden=4", "-s", "model.layers=1", "-s", "train.steps=1", "-s", "baseline.order=0")
    assert invoke("train", "lm", "--train", str(text), "-o", str(tmp_path / "lm"), *small)[0] == 0
    code, out, error = invoke("predict", str(tmp_path / "lm"), str(text), "--top", "2")
    assert code == 0, error
    assert [line.split("\t")[0] for line in out.splitlines()] == [str(n) for n in range(1, 21) for _ in range(2)]


def test_a_text_a_folder_and_a_pattern(folder: Path, tmp_path: Path) -> None:
    run = str(folder / "run")
    _, alone, _ = invoke("predict", run, "grimulfa")
    assert alone.startswith("north\t")
    _, other, _ = invoke("predict", run, "olaettie")
    for name, text in (("a.txt", "grimulfa\n"), ("b.txt", "olaettie\n")):
        (tmp_path / name).write_text(text)
    for given in ((str(tmp_path),), (str(tmp_path / "*.txt"),), (str(tmp_path / "a.txt"), str(tmp_path / "b.txt"))):
        code, out, error = invoke("predict", run, *given)
        assert (code, out) == (0, alone + other), error
    code, _, error = invoke("predict", run, str(tmp_path / "c.txt"))
    assert code == 2 and "no such file" in error


def test_other_fields_of_a_record_are_kept(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.jsonl").write_text('{"id": 7, "text": "grimulfa", "tags": ["x"]}\n')
    code, out, error = invoke("predict", str(folder / "run"), str(tmp_path / "new.jsonl"), "--json")
    assert code == 0, error
    record = json.loads(out)
    assert (record["id"], record["tags"], record["text"], record["label"]) == (7, ["x"], "grimulfa", "north")


def test_options_are_those_of_the_models_task(folder: Path) -> None:
    code, shown, _ = invoke("predict", str(folder / "run"), "--help")
    assert code == 0 and "--json" in shown and "--beam" not in shown
    code, out, error = invoke("predict", str(folder / "run"), "grimulfa", "--beam", "3")
    assert (code, out) == (2, "")
    assert "--beam is an option of the tasks 'translate', 'caption'" in error
    assert "for 'classify': leave it out" in error


def test_the_backend_is_chosen_by_an_option(folder: Path) -> None:
    outputs = [invoke("predict", str(folder / "run"), "grimulfa", "--backend", name) for name in ("torch", "auto")]
    assert outputs[0][:2] == outputs[1][:2] == (0, outputs[0][1])
    code, _, error = invoke("predict", str(folder / "run"), "grimulfa", "--backend", "gpu")
    assert code == 2 and "backend is auto, compiled or torch, not 'gpu'" in error


def test_an_empty_text_is_no_folder(folder: Path) -> None:
    code, out, error = invoke("predict", str(folder / "run"), "")
    assert (code, out) == (2, "") and "text 1 of 1 is empty: give it at least one character" in error


def test_records_of_several_files_say_of_which_they_are(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("grimulfa\n")
    (tmp_path / "b.csv").write_text("text,label\nolaina,north\n")
    code, out, error = invoke("predict", str(folder / "run"), str(tmp_path), "--json")
    assert code == 0, error
    assert [json.loads(line)["file"] for line in out.splitlines()] == [str(tmp_path / "a.txt"), str(tmp_path / "b.csv")]
    assert "file" not in json.loads(invoke("predict", str(folder / "run"), str(tmp_path / "a.txt"), "--json")[1])


def test_other_columns_are_kept_and_the_given_label_is_not_lost(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("id,text,label\n7,olaina,here\n")
    code, out, error = invoke("predict", str(folder / "run"), str(tmp_path / "new.csv"), "--json")
    assert code == 0, error
    record = json.loads(out)
    assert record["id"] == "7" and record["given_label"] == "here" and record["label"] != "here"


def test_what_is_no_text_in_a_folder_is_left_out_and_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("grimulfa\n")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    code, out, error = invoke("predict", str(folder / "run"), str(tmp_path))
    assert code == 0 and len(out.splitlines()) == 1
    assert error == f"{tmp_path / 'picture.png'} is left out: not text, as it seems\n"
    code, _, error = invoke("predict", str(folder / "run"), str(tmp_path / "picture.png"))
    assert code == 2 and "looks like a binary file, not text" in error
    (tmp_path / "a.txt").unlink()
    code, _, error = invoke("predict", str(folder / "run"), str(tmp_path))
    assert code == 2 and "holds no text files" in error


def test_a_classifier_answers_without_pytorch_and_other_tasks(folder: Path) -> None:
    code = """
import sys
from elman.cli.main import run
sys.argv = ["elman", "predict", sys.argv[1], "grimulfa"]
try:
    run()
except SystemExit as end:
    assert not end.code
slow = ["torch", "matplotlib", "sacrebleu", "elman.lab", "elman.inspect", "elman.draw", "elman.generated"]
slow += [f"elman.tasks.{task}" for task in ("language", "tag", "translate", "series", "training")]
found = [name for name in slow if name in sys.modules]
assert not found, found
"""
    command = [sys.executable, "-c", code, str(folder / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    assert done.returncode == 0, done.stderr
    assert "\t" in done.stdout


@pytest.mark.parametrize("name", ["new.CSV", "book.xlsx", "page.HTML", "a.parquet", "what?", "no*.txt"])
def test_what_looks_like_a_file_that_is_not_there_is_said_to_be_none(folder: Path, name: str) -> None:
    code, _, error = invoke("predict", str(folder / "run"), name)
    assert code == 2 and "(a text with such a name is given by a pipe)" in " ".join(error.split())


def test_a_file_may_be_called_as_standard_input_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "-").write_text("olaina\n")
    file, pipe = (invoke("predict", "run", name, stdin="grimulfa\nolaina\n")[1] for name in ("./-", "-"))
    assert len(file.splitlines()) == 1 and len(pipe.splitlines()) == 2
