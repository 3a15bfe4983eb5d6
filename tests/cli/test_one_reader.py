"""What training refuses of a record, `elman predict` refuses too, with the same sentence and place."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.invoke import invoke
from tests.cli.models import small, train_all
from tests.end_to_end.processes import environment


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_all(tmp_path_factory.mktemp("models"))


CONLLU = "1\tAda\t_\tX\t_\t_\t0\troot\t_\t_\n2\tsings\t_\tY\t_\t_\t1\tx\t_\t_\n\n"
BAD = [  # task, how the file ends, its bytes; the record that is wrong comes last
    ("classify", ".csv", b"text,label\none,a\ntwo,b\nthree\n"),
    ("classify", ".csv", b"text,label\none,a\ntwo,b\n,a\n"),
    ("classify", ".csv", b"text,label\none,a\ntwo,b\n \t,a\n"),
    ("classify", ".csv", b'text,label\none,a\ntwo,b\n"three"x,a\n'),
    ("classify", ".csv", b"text,label\none,a\ntwo,b\nthr\xffee,a\n"),
    ("classify", ".csv", b"text,label\none,a\ntwo,b\nthr\0ee,a\n"),
    ("classify", ".tsv", b"text\tlabel\none\ta\ntwo\tb\nthree\ta\tb\n"),
    ("classify", ".jsonl", b'{"text": "one", "label": "a"}\n{"text": null, "label": "b"}\n'),
    ("classify", ".jsonl", b'{"text": "one", "label": "a"}\n{"text": ["x"], "label": "b"}\n'),
    ("classify", ".jsonl", b'{"text": "one", "label": "a"}\n{"txt": "two", "label": "b"}\n'),
    ("classify", ".jsonl", b'{"text": "one", "label": "a"}\n{"text": "\\ud800", "label": "b"}\n'),
    ("classify", ".jsonl", b'{"text": "one", "label": "a"}\n["two", "b"]\n'),
    ("classify", ".jsonl", b'{"text": "one", "label": "a"}\n{"text": "two"\n'),
    ("translate", ".tsv", b"source\ttarget\nab\tba\ncd\n"),
    ("translate", ".csv", b'source,target\nab,ba\n"cd,dc\n'),
    ("translate", ".jsonl", b'{"source": "ab", "target": "ba"}\n{"source": {}, "target": "dc"}\n'),
    ("translate", ".jsonl", b'{"source": "ab", "target": "ba"}\n{"source": "\\udc00", "target": "dc"}\n'),
    ("translate", ".jsonl", b'{"source": "ab", "target": "ba"}\n{"target": "dc"}\n'),
    ("translate", ".tsv", b"source\ttarget\nab\tba\nc\xe9\td\n"),
    ("tag", ".conll", b"Ada B-PER\nsings O\n\nAlan B-PER x\n"),
    ("tag", ".conll", b"Ada B-PER\nsings O\n\nAlan\n"),
    ("tag", ".conll", b"Ada B-PER\nsings O\n\nAl\xe9n B-PER\n"),
    ("tag", ".conllu", CONLLU.encode() + b"Ada\tX\n"),
    ("tag", ".conllu", CONLLU.encode() + b"1\tAda\tX\n"),
    ("tag", ".jsonl", b'{"tokens": ["Ada"], "tags": ["O"]}\n{"tokens": [], "tags": []}\n'),
    ("tag", ".jsonl", b'{"tokens": ["Ada"], "tags": ["O"]}\n{"tokens": ["a", ""], "tags": ["O", "O"]}\n'),
    ("tag", ".jsonl", b'{"tokens": ["Ada"], "tags": ["O"]}\n{"tokens": ["a", 1], "tags": ["O", "O"]}\n'),
    ("tag", ".jsonl", b'{"tokens": ["Ada"], "tags": ["O"]}\n{"tokens": ["\\ud83d"], "tags": ["O"]}\n'),
]


def without_option(sentence: str) -> str:
    """What is to be typed differs: training has settings, prediction has options."""
    return re.sub(r"(-s data\.encoding=|--encoding )", "ENCODING ", sentence)


@pytest.mark.parametrize(("task", "ending", "content"), BAD)
def test_prediction_refuses_what_training_refuses(
    tmp_path: Path, models: Path, task: str, ending: str, content: bytes
) -> None:
    file = tmp_path / f"new{ending}"
    file.write_bytes(content)
    code, _, refused = invoke("train", task, "--train", str(file), "--out", str(tmp_path / "run"), *small(task))
    assert code == 2, refused
    code, _, error = invoke("predict", str(models / task), str(file))
    assert code == 2, error
    assert without_option(error) == without_option(refused)
    assert str(file) in error


@pytest.mark.parametrize(("task", "ending", "content"), BAD)
def test_a_bad_record_can_be_skipped(tmp_path: Path, models: Path, task: str, ending: str, content: bytes) -> None:
    file = tmp_path / f"new{ending}"
    file.write_bytes(content)
    code, out, error = invoke("predict", str(models / task), str(file), "--on-error", "skip")
    assert code == 0, error
    assert "1 line skipped" in error
    assert out


@pytest.mark.parametrize("content", [b"ab\nc\xe9\n", b"ab\nc\0d\n", b"ab\n\n"])
@pytest.mark.parametrize("task", ["classify", "tag", "translate"])
def test_a_pipe_is_read_as_a_file_is(tmp_path: Path, models: Path, task: str, content: bytes) -> None:
    (tmp_path / "new.txt").write_bytes(content)
    _, _, of_file = invoke("predict", str(models / task), str(tmp_path / "new.txt"))
    code, _, of_pipe = invoke("predict", str(models / task), stdin=content)
    assert code == 2
    assert of_pipe.replace("elman: -", f"elman: {tmp_path / 'new.txt'}") == of_file


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "latin-1"])
def test_a_pipe_in_another_encoding(models: Path, encoding: str) -> None:
    options = ("--encoding", encoding, "--json")
    code, out, error = invoke("predict", str(models / "classify"), *options, stdin="Zoë\r\nolaina\n".encode(encoding))
    assert code == 0, error
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["Zoë", "olaina"]


def test_a_pipe_is_answered_line_by_line(models: Path) -> None:
    """What was read is answered before the bad line is met."""
    command = [sys.executable, "-m", "elman.cli.main", "predict", str(models / "classify"), "--window", "1"]
    done = subprocess.run(command, input=b"grim\nolaina\n\xff\n", capture_output=True, env=environment(), check=False)
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 2


# Documents


def test_marks_of_documents_are_passed_through(tmp_path: Path, models: Path) -> None:
    lines = ["-DOCSTART- -X- O", "", "Ada x O", "sings x O", "", "-DOCSTART- -X- O", "", "Yes x O", ""]
    file = tmp_path / "eng.conll"
    file.write_text("\n".join(lines) + "\n")
    code, out, error = invoke("predict", str(models / "tag"), str(file))
    assert code == 0, error
    assert [line.split("\t")[0] for line in out.splitlines()] == [
        line if line.startswith("-DOC") else line.split(" ")[0] for line in lines
    ]
    code, out, error = invoke("predict", str(models / "tag"), str(file), "--json")
    assert code == 0, error
    assert [json.loads(line)["tokens"] for line in out.splitlines()] == [["Ada", "sings"], ["Yes"]]


@pytest.mark.parametrize("name", ["eng.testb", "test.txt", "test"])
def test_columns_that_begin_with_a_mark_need_no_ending(tmp_path: Path, models: Path, name: str) -> None:
    (tmp_path / name).write_text("-DOCSTART- -X- O\n\nAda NNP O\nsings VBZ O\n")
    code, out, error = invoke("predict", str(models / "tag"), str(tmp_path / name), "--json")
    assert code == 0, error
    assert [json.loads(line)["tokens"] for line in out.splitlines()] == [["Ada", "sings"]]


# Columns


def test_the_column_that_the_model_learned_from_is_read(tmp_path: Path) -> None:
    table = tmp_path / "mine.csv"
    table.write_text("body,kind\n" + "good day,a\nbad day,b\n" * 10)
    columns = ("-s", "data.text_column=body", "-s", "data.label_column=kind")
    out = tmp_path / "run"
    code, _, error = invoke("train", "classify", "--train", str(table), "--out", str(out), *small("classify"), *columns)
    assert code == 0, error
    (tmp_path / "new.csv").write_text("id,body\n1,good\n2,bad\n")
    code, shown, error = invoke("predict", str(out), str(tmp_path / "new.csv"), "--json")
    assert code == 0, error
    assert [json.loads(line)["text"] for line in shown.splitlines()] == ["good", "bad"]


def test_comments_are_left_out_as_in_training(tmp_path: Path) -> None:
    file, out = tmp_path / "mine.conll", tmp_path / "run"
    file.write_text("# one\nAda B-PER\nsings O\n\n# two\nAlan B-PER\ncounts O\n\n" * 5)
    more = ("-s", "data.comments=true")
    code, _, error = invoke("train", "tag", "--train", str(file), "--out", str(out), *small("tag"), *more)
    assert code == 0, error
    code, shown, error = invoke("predict", str(out), str(file))
    assert code == 0, error
    assert "#" not in shown


def test_a_table_of_pairs_is_read_as_in_training(tmp_path: Path, models: Path) -> None:
    """A header of languages is none of the texts; in a .tsv of pairs a quotation mark is a character."""
    (tmp_path / "new.tsv").write_text('de\ten\nab\tba\n"c\tc"\n')
    code, out, error = invoke("predict", str(models / "translate"), str(tmp_path / "new.tsv"), "--json")
    assert code == 0, error
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["ab", '"c']


@pytest.mark.parametrize("task", ["classify", "lm"])
def test_columns_that_do_not_say_what_they_are(tmp_path: Path, models: Path, task: str) -> None:
    (tmp_path / "new.csv").write_text("7,grimulfa,north\n8,olaina,south\n")
    code, _, error = invoke("predict", str(models / task), str(tmp_path / "new.csv"))
    assert code == 2
    assert "new.csv:1 has 3 columns: say which is the text, such as --column 1" in error
    code, out, error = invoke("predict", str(models / task), str(tmp_path / "new.csv"), "--column", "2", "--json")
    assert code == 0, error
    assert [json.loads(line)["text"] for line in out.splitlines()] == ["grimulfa", "olaina"]
