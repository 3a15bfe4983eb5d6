"""`elman predict` for taggers: every way in, every way out, and bad lines."""

import json
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.records.lines import BadLines
from elman.tasks.model import Model
from elman.tasks.predict import PredictOptions
from elman.tasks.tag import TagModel
from tests.tasks.tag_runs import run, write

CONLLU = ["# text = Ada went", "1-2\tAdawent" + "\t_" * 8, "1\tAda" + "\t_" * 8, "2\twent" + "\t_" * 8, ""]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> TagModel:
    folder = tmp_path_factory.mktemp("lines")
    return run(write(folder / "train.conll"), folder / "run", "train.epochs=6")


def printed(model: TagModel, lines: list[str], **options: object) -> list[str]:
    return list(model.predict_lines(lines, PredictOptions(**options)))  # type: ignore[arg-type]


def test_a_tagger_is_what_predict_asks_for(model: TagModel) -> None:
    assert isinstance(model, Model)


def test_raw_text_becomes_columns(model: TagModel) -> None:
    assert printed(model, ["Ada went", "to Oslo"]) == ["Ada\tB-PER", "went\tO", "", "to\tO", "Oslo\tB-LOC", ""]


def test_json_has_offsets_and_spans(model: TagModel) -> None:
    found = json.loads(printed(model, ["Ada went to Oslo."], as_json=True)[0])
    assert found["spans"] == [
        {"type": "PER", "text": "Ada", "start": 0, "end": 3},
        {"type": "LOC", "text": "Oslo", "start": 12, "end": 16},
    ]
    assert found["offsets"][-1] == [16, 17]
    assert found["tags"] == ["B-PER", "O", "O", "B-LOC", "O"]
    assert found["line"] == 1
    record = '{"id": 7, "tokens": ["Ada"], "tags": ["X"]}'
    found = json.loads(printed(model, [record], as_json=True, format="jsonl")[0])
    assert (found["id"], found["given_tags"], found["tags"]) == (7, ["X"], ["B-PER"])


def test_colours_mark_spans_in_the_text_as_it_is(model: TagModel) -> None:
    (line,) = printed(model, ["Ada  went!"], colour=True)
    assert line.endswith("  went!")
    assert line.startswith("\x1b[") and "Ada" in line and "PER" in line
    assert printed(model, ["went"], colour=True) == ["went"]


@pytest.mark.parametrize(
    ("format", "lines"),
    [
        ("conll", ["Ada O", "went O", ""]),
        ("conll", ["Ada\tx", "went\tx"]),
        ("conllu", CONLLU),
        ("jsonl", ['{"tokens": ["Ada", "went"]}']),
        ("jsonl", ['{"text": "Ada went"}']),
        ("txt", ["Ada went"]),
    ],
)
def test_every_format_holds_the_same_sentence(model: TagModel, format: str, lines: list[str]) -> None:
    assert printed(model, lines, format=format) == ["Ada\tB-PER", "went\tO", ""]


def test_the_order_stays_whatever_the_lengths(model: TagModel) -> None:
    lines = [" ".join(["Ada"] * (1 + number * 7 % 11)) for number in range(40)]
    found = [json.loads(line)["text"] for line in printed(model, lines, as_json=True, window=7)]
    assert found == lines


@pytest.mark.parametrize(
    ("format", "lines", "sentence"),
    [
        ("txt", ["Ada", " "], r"new\.txt:2 has no tokens"),
        ("conll", ["Ada x", "", "went"], r"new\.txt:3 has 1 columns where 2 belong"),
        ("jsonl", ['{"tokens": ["Ada"]}', "{"], r"new\.txt:2 is not JSON"),
        ("jsonl", ['{"text": "Ada"}', '{"txt": "Ada"}'], r"new\.txt:2 has no field 'tokens' or 'text'"),
        ("jsonl", ['{"text": "Ada"}', '{"tokens": [1]}'], r"new\.txt:2 has no list of strings in field 'tokens'"),
        ("jsonl", ['{"text": "Ada"}', '{"tokens": []}'], r"new\.txt:2 is a sentence without tokens"),
    ],
)
def test_a_bad_line_is_fatal_or_skipped(model: TagModel, format: str, lines: list[str], sentence: str) -> None:
    column = "2" if format == "conll" else None
    options = {"format": format, "where": Path("new.txt"), "column": column}
    with pytest.raises(UserError, match=sentence):
        printed(model, lines, **options)
    told: list[str] = []
    assert len(printed(model, lines, **options, bad=BadLines("skip", told.append), as_json=True)) == 1
    assert len(told) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"format": "conl"}, "did you mean 'conll'"),
        ({"column": "2"}, "has no columns"),
        ({"format": "conll", "column": "0"}, "numbers from 1"),
    ],
)
def test_options_that_mean_nothing_are_refused(model: TagModel, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        printed(model, ["Ada"], **options)


def test_a_format_that_is_said_holds(model: TagModel) -> None:
    lines = ["-DOCSTART- -X- O", "", "Ada O"]
    assert "-DOCSTART-\t" not in "\n".join(printed(model, lines, where=Path("a.txt")))
    assert printed(model, ["-DOCSTART- went"], where=Path("a.txt"), format="txt")[0].startswith("-\t")
