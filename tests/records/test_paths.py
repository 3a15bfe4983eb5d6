"""The files that are named: patterns, folders, standard input; and formats that show in what they hold."""

import io
import json
import sys
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.records import BadLines, LabelledReader, PairReader, RecordReader, TaggedReader, TextFiles, expand
from elman.records.lines import StreamLines


def given(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


def test_patterns_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.csv", "a.csv", "c.txt", ".hidden", "deep/d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")

    def names(*paths: str) -> list[str]:
        return [path.name for path in expand([str(tmp_path / path) for path in paths])]

    assert names("*.csv") == ["a.csv", "b.csv"]
    assert names("c.txt", "**/*.csv") == ["c.txt", "a.csv", "b.csv", "d.csv"]
    assert names("") == ["a.csv", "b.csv", "c.txt", "d.csv"]
    (tmp_path / "odd[1].csv").write_text("x")
    assert names("odd[1].csv") == ["odd[1].csv"]
    with pytest.raises(UserError, match=r"no file matches .*\*\.tsv: check the pattern"):
        names("*.tsv")
    with pytest.raises(UserError, match="no such file"):
        names("absent.csv")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").write_text("x")
    assert [[path.is_absolute() for path in expand(name)] for name in ("-", "./-")] == [[False], [True]]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match=r"the folder .*empty holds no files"):
        names("empty")


def test_patterns_name_training_files(tmp_path: Path) -> None:
    for number in (2, 1):
        (tmp_path / f"{number}.csv").write_text(f"text,label\ntext {number},a\n")
    files = LabelledReader().files(tmp_path / "*.csv")
    assert [record.text for record in files] == ["text 1", "text 2"]


def test_standard_input_is_read_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    given(monkeypatch, b"text;label\none;a\n\ntwo;b\n")
    files = LabelledReader().files("-")
    for _ in range(2):
        assert [(record.text, str(record.where)) for record in files] == [("one", "-:2"), ("two", "-:4")]
    given(monkeypatch, b'{"en": "Go.", "fr": "Va !"}\n')
    assert [pair.target for pair in PairReader().files("-")] == ["Va !"]
    given(monkeypatch, b"Ada B-PER\n\nYes O\n")
    assert len(TaggedReader().files("-").read()) == 2
    given(monkeypatch, b"one\ntwo\n")
    assert [record.text for record in RecordReader().files("-")] == ["one", "two"]
    given(monkeypatch, b"a text")
    assert TextFiles("-").survey().characters == 6
    given(monkeypatch, b"")
    with pytest.raises(UserError, match="standard input is empty"):
        TextFiles("-")
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="standard input is closed"):
        LabelledReader().files("-")


def test_an_array_of_json_objects(tmp_path: Path) -> None:
    rows = [{"text": "one", "label": "a"}, {"text": "two", "label": "b"}]
    place = tmp_path / "a.json"
    for text in (json.dumps(rows), json.dumps(rows, indent=2), "\n".join(map(json.dumps, rows))):
        place.write_text(text)
        assert [(record.text, record.labels) for record in LabelledReader().files(place)] == [
            ("one", ("a",)),
            ("two", ("b",)),
        ]
    place.write_text(json.dumps([*rows, {"text": "", "label": "b"}]))
    with pytest.raises(UserError, match=r"record 3 of .*a\.json has an empty text"):
        list(LabelledReader().files(place))
    questions = LabelledReader().lines(['[{"id": 1, "text": "one"},', '{"id": 2, "text": "two"}]'], Path("new.json"))
    assert [(record.text, record.fields) for record in questions] == [("one", {"id": 1}), ("two", {"id": 2})]
    place.write_text('[{"tokens": ["Yes"], "tags": ["O"]}]')
    assert TaggedReader().files(place).read()[0].tags == ("O",)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{\n  "data": []\n}', "is no array of JSON objects, and has no object a line"),
        ("just words", "is no array of JSON objects"),
        ('[{"text": "a"', "begins as an array of JSON objects, and is not JSON"),
        ("[1]", r"record 1 of .*a\.json is not a JSON object"),
    ],
)
def test_json_that_is_something_else(tmp_path: Path, text: str, sentence: str) -> None:
    place = tmp_path / "a.json"
    place.write_text(text)
    with pytest.raises(UserError, match=sentence):
        LabelledReader().files(place)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl"])
def test_a_cell_of_megabytes(tmp_path: Path, name: str) -> None:
    text = "long " * 500_000
    place = tmp_path / name
    mark = "," if name == "a.csv" else "\t"
    place.write_text(
        json.dumps({"text": text, "label": "a"}) if name == "a.jsonl" else f'text{mark}label\n"{text}"{mark}a\n'
    )
    assert next(LabelledReader().files(place).records()).text == text.strip()


@pytest.mark.parametrize("format", ["txt", "csv", "jsonl"])
def test_lines_that_are_live_are_not_read_ahead(format: str) -> None:
    """Each record comes before the next line is asked for."""
    lines = {
        "txt": ["one", "two"],
        "csv": ["id;text", "1;one", "2;two"],
        "jsonl": ['{"text": "one"}', '{"text": "two"}'],
    }
    read: list[str] = []

    def source():
        for line in lines[format]:
            read.append(line)
            yield line

    records = LabelledReader().lines(source(), Path("-"), format=format, live=True)
    assert next(records).text == "one"
    assert len(read) == len(lines[format]) - 1


def test_lines_at_hand_are_known() -> None:
    class Pipe:
        """Gives what was written at once, however little that is."""

        pieces = iter([b"one\ntwo\nthr", b"ee\n", b"four"])

        def read1(self, size: int) -> bytes:
            return next(self.pieces, b"")

        read = read1

    lines = StreamLines(Pipe(), Path("-"))  # type: ignore[arg-type]
    assert [(line, lines.more()) for line in lines] == [
        ("one", True),
        ("two", False),
        ("three", False),
        ("four", False),
    ]


def test_a_bad_line_of_a_stream_comes_after_those_before_it() -> None:
    told: list[str] = []
    lines = StreamLines(io.BytesIO(b"one\n\xff\nthree\n"), Path("-"), bad=BadLines("skip", told.append))
    assert list(lines) == ["one", "", "three"]
    assert told == ["-:2 is not utf-8 (byte 0xff): mend the line"]
    lines = StreamLines(io.BytesIO(b"one\n\xff\n"), Path("-"))
    assert next(lines) == "one"
    with pytest.raises(UserError, match="-:2 is not utf-8"):
        next(lines)
