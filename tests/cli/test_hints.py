"""A sentence that names an option names one that can be typed: here it is typed, and works."""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.cli.invoke import invoke
from tests.cli.models import small, train_all

ROWS = [("grim north", "a"), ("sunny south", "b")] * 12
PAIRS = [("abc", "cba"), ("bcd", "dcb"), ("cda", "adc")] * 10
SENTENCES = "Ada\tN\tB-PER\nsings\tV\tO\n\nAlan\tN\tB-PER\ncounts\tV\tO\n\n" * 8
HINT = re.compile(r"-s data\.\w+=[\w.-]+|--(?:column|encoding|format) (?!out\b)[\w-]+")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_all(tmp_path_factory.mktemp("models"))


def table(rows: list[tuple[str, ...]], between: str = ",") -> str:
    return "".join(between.join(row) + "\n" for row in rows)


def jsonl(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    fields = (", ".join(f'"{name}": "{value}"' for name, value in zip(names, row, strict=True)) for row in rows)
    return "".join(f"{{{line}}}\n" for line in fields)


def typed(sentence: str, values: tuple[str, ...]) -> list[str]:
    """What the sentence says to type, with `values` in the places that it leaves open."""
    hints = HINT.findall(sentence)
    assert hints, sentence
    left = iter(values)
    return [part for hint in hints for part in shlex.split(re.sub("NAME", lambda _: next(left), hint))]


NAMES = ("text", "label")
PARALLEL = {"x.fr": table([pair[:1] for pair in PAIRS]), "x.en": table([pair[1:] for pair in PAIRS])}
NUMBERED = [("1", *pair) for pair in PAIRS]
UNUSUAL = [("1", text, label) for text, label in ROWS]
LATIN = "".join(f"{text} é,{label}\n" for text, label in ROWS)
TRAINING = {  # task, the files, settings that provoke the sentence, what is put in the place of NAME
    "columns": ("classify", {"a.csv": "k,l,m\n" + table(UNUSUAL)}, (), ("l", "m")),
    "fields": ("classify", {"a.jsonl": jsonl(("k", "l", "m"), UNUSUAL)}, (), ("l", "m")),
    "the same column": ("classify", {"a.csv": "text,label\n" + table(ROWS)}, ("data.label_column=text",), NAMES),
    "labels that do not show": ("classify", {"a.txt": table([(b, a) for a, b in ROWS], " ")}, (), ()),
    "no columns": ("classify", {"a": "text,label\n" + table(ROWS)}, ("data.text_column=text", "data.format=lines"), ()),
    "latin-1, classify": ("classify", {"a.csv": LATIN.encode("latin-1")}, (), ()),
    "latin-1, lm": ("lm", {"a.txt": ("é " + LATIN).encode("latin-1")}, (), ()),
    "latin-1, lines": ("lm", {"a.txt": LATIN.encode("latin-1")}, ("data.unit=line",), ()),
    "latin-1, tag": ("tag", {"a.conll": SENTENCES.replace("Ada", "Ané").encode("latin-1")}, (), ()),
    "latin-1, translate": ("translate", {"a.tsv": table([("é", "e"), *PAIRS], "\t").encode("latin-1")}, (), ()),
    "utf-16": ("lm", {"a.txt": LATIN.encode("utf-16")}, (), ()),
    "utf-16 without a mark": ("lm", {"a.txt": LATIN.encode("utf-16-le")}, ("data.encoding=utf-16",), ()),
    "sides": ("translate", {"a.csv": "k,l,m\n" + table(NUMBERED)}, ("data.source=m",), ("m", "l")),
    "sides of fields": ("translate", {"a.jsonl": jsonl(("k", "l", "m"), NUMBERED)}, (), ("l", "m")),
    "the same side": ("translate", {"a.csv": table(PAIRS)}, ("data.source=1", "data.target=1"), ("1", "2")),
    "other languages": ("translate", PARALLEL, ("data.source=de", "data.target=en"), ()),
    "one language twice": ("translate", PARALLEL, ("data.source=en", "data.target=en"), ()),
    "no endings": ("translate", dict(zip(("one", "two"), PARALLEL.values(), strict=True)), ("data.source=de",), ()),
    "sounds": ("translate", {"a.dict": "ab AH0 B\nba B AH0\nbab B AE1 B\n" * 9}, ("data.source=word",), ()),
    "no such column": ("tag", {"a.conll": SENTENCES}, ("data.token_column=7",), ()),
    "no such tag": ("tag", {"a.conll": SENTENCES}, ("data.tag_column=7",), ()),
    "no number": ("tag", {"a.conll": SENTENCES}, ("data.token_column=word",), ()),
}  # fmt: skip


@pytest.mark.parametrize("name", TRAINING)
def test_hints_of_training(tmp_path: Path, name: str) -> None:
    task, files, settings, values = TRAINING[name]
    for file, content in files.items():
        (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    data = [part for file in files for part in ("--train", str(tmp_path / file))]
    command = ["train", task, *data, "--out", str(tmp_path / "run"), *small(task)]
    code, _, error = invoke(*command, *(part for setting in settings for part in ("-s", setting)))
    assert code == 2, error
    hint = typed(error, values)
    if name == "utf-16 without a mark":  # two ways out: the first is the right one here
        hint = hint[:2]
    keys = [part.partition("=")[0] for part in hint]
    kept = [part for setting in settings if setting.partition("=")[0] not in keys for part in ("-s", setting)]
    code, _, error = invoke(*command, *kept, *hint)
    assert code == 0, error


PREDICTING = {
    "columns": ("classify", "new.csv", b"7,grim,x\n8,sunny,y\n", (), ()),
    "fields": ("classify", "new.jsonl", b'{"k": "1", "body": "grim"}\n', (), ("body",)),
    "fields of a source": ("translate", "new.jsonl", b'{"k": "1", "l": "ab", "m": "x"}\n', (), ("l",)),
    "no columns": ("classify", "new.txt", b"text\ngrim\n", ("--column", "text"), ()),
    "no such column": ("tag", "new.conll", b"Ada O\n", ("--column", "3"), ()),
    "no number": ("tag", "new.conll", b"Ada O\n", ("--column", "word"), ()),
    "raw text has no columns": ("tag", "new.txt", b"Ada O\n", ("--column", "1"), ()),
    "latin-1": ("classify", "new.csv", "text\nZoé\n".encode("latin-1"), (), ()),
    "latin-1 of a pipe": ("tag", "-", "Zoé\n".encode("latin-1"), (), ()),
    "utf-16": ("classify", "new.txt", "Zoé\n".encode("utf-16"), (), ()),
    "utf-16 of a pipe": ("translate", "-", "abc\n".encode("utf-16"), (), ()),
}


@pytest.mark.parametrize("name", PREDICTING)
def test_hints_of_prediction(tmp_path: Path, models: Path, name: str) -> None:
    task, file, content, options, values = PREDICTING[name]
    if file != "-":
        (tmp_path / file).write_bytes(content)
    command = ("predict", str(models / task), file if file == "-" else str(tmp_path / file))
    code, _, error = invoke(*command, *options, stdin=content)
    assert code == 2, error
    hint = typed(error, values)
    code, out, error = invoke(*command, *(options if hint[0] not in options else ()), *hint, stdin=content)
    assert code == 0, error
    assert out


def test_a_prompt_in_another_encoding(models: Path) -> None:
    command = ("generate", str(models / "lm"), "--prompt", "-", "-n", "1")
    code, _, error = invoke(*command, stdin="thé".encode("latin-1"))
    assert code == 2
    assert "standard input:1 is not utf-8 (byte 0xe9)" in error
    code, out, error = invoke(*command, *typed(error, ()), stdin=b"the cat")
    assert code == 0, error
    assert out.startswith("the cat")


EVALUATED = {
    "classify": ("test.csv", "name,language\nZoé,north\n"),
    "lm": ("test.txt", "the cat sat on a mat\xa0\n"),
    "tag": ("test.conll", "Zoé\tB-PER\nwent\tO\n"),
    "translate": ("test.tsv", "source\ttarget\nabc\tcbé\n"),
}


@pytest.mark.parametrize("task", EVALUATED)
def test_hints_of_evaluation(tmp_path: Path, models: Path, task: str) -> None:
    name, content = EVALUATED[task]
    if task == "classify":
        label = (models / "classify.csv").read_text().splitlines()[1].rpartition(",")[2]
        content = content.replace("north", label)
    (tmp_path / name).write_bytes(content.encode("latin-1"))
    command = ("evaluate", str(models / task), str(tmp_path / name), "--json", "--no-baselines")
    code, _, error = invoke(*command)
    assert code == 2, error
    hint = typed(error, ())
    assert hint == ["-s", "data.encoding=latin-1"]
    code, out, error = invoke(*command, *hint)
    if task == "lm":  # it is read now; that the model has never met a character of it is another matter
        assert "is not utf-8" not in error
        return
    assert code == 0, error
    assert name in out


@pytest.mark.parametrize("setting", ["train.lr=1", "data.train=x", "data.encodng=latin-1", "data.encoding=nothing"])
def test_settings_that_evaluation_does_not_have(models: Path, setting: str) -> None:
    code, out, error = invoke("evaluate", str(models / "tag"), str(models / "tag.conll"), "-s", setting)
    assert (code, out) == (2, "")
    assert len(error.strip().splitlines()) == 1
    assert "encoding" in error


@pytest.mark.parametrize("kind", ["a file", "no permission"])
def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    cache = tmp_path / "cache"
    if kind == "a file":
        cache.write_text("")
    else:
        if os.geteuid() == 0:
            pytest.skip("root may write everywhere")
        cache.mkdir(mode=0o500)
    monkeypatch.setenv("ELMAN_CACHE", str(cache))
    (tmp_path / "a.txt").write_text("the cat sat on the mat\n" * 30)
    for command in (
        ("train", "lm", "--train", str(tmp_path / "a.txt"), "--out", str(tmp_path / "run"), *small("lm")),
        ("data", "get", "numbers"),
    ):
        code, _, error = invoke(*command)
        assert code == 2, error
        last = error.strip().splitlines()[-1]
        assert "set ELMAN_CACHE to a folder that can be written to" in last
        monkeypatch.setenv("ELMAN_CACHE", str(tmp_path / "other"))
        code, _, error = invoke(*command)
        assert code == 0, error
        monkeypatch.setenv("ELMAN_CACHE", str(cache))
