"""Records from tables, JSON lines and plain lines, and what is said of wrong ones."""

import gzip
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.records import Place, Record, RecordReader, read_records
from elman.records.places import RecordError
from elman.records.records import Part, RecordFiles


def pairs(records: list[Record]) -> list[tuple[str, str | None]]:
    return [(record.text, record.label) for record in records]


def read(tmp_path: Path, name: str, content: str | bytes, **options) -> list[Record]:
    place = tmp_path / name
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_records(place, **options)


def test_a_table_without_header(tmp_path: Path) -> None:
    records = read(tmp_path, "n.csv", '"Adsit","Czech"\r\n"O\'Neil, Jr.","Irish"\r\n')
    assert pairs(records) == [("Adsit", "Czech"), ("O'Neil, Jr.", "Irish")]
    assert records[1].where == Place(tmp_path / "n.csv", 2)


def test_columns_by_name_and_by_number(tmp_path: Path) -> None:
    table = "id\tlabel\ttext\n1\tgood\tnice film\n"
    assert pairs(read(tmp_path, "a.tsv", table)) == [("nice film", "good")]
    assert pairs(read(tmp_path, "a.tsv", table, text="text", label="id")) == [("nice film", "1")]
    assert pairs(read(tmp_path, "a.tsv", "1\tgood\tnice\n", text=3, label=2)) == [("nice", "good")]
    assert pairs(read(tmp_path, "a.csv", "one,two,three\n")) == [("one", None)]


def test_a_quoted_field_may_hold_a_line_end(tmp_path: Path) -> None:
    records = read(tmp_path, "a.csv", 'text,label\n"two\nlines",x\nb,y\n')
    assert pairs(records) == [("two\nlines", "x"), ("b", "y")]
    assert records[1].where.line == 4


def test_json_lines(tmp_path: Path) -> None:
    content = '{"text": "é", "label": 3}\n\n{"text": "b", "label": "x"}\n'
    assert pairs(read(tmp_path, "a.jsonl", content)) == [("é", "3"), ("b", "x")]
    assert pairs(read(tmp_path, "a.jsonl", '{"q": "a", "k": "b"}', text="q", label="k")) == [("a", "b")]


def test_plain_lines_also_packed(tmp_path: Path) -> None:
    assert pairs(read(tmp_path, "a.txt.gz", gzip.compress(b"one, two\r\n\nthree"))) == [
        ("one, two", None),
        ("three", None),
    ]
    assert pairs(read(tmp_path, "a.txt", b"na\xefve\n", encoding="latin-1")) == [("naïve", None)]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "a,b\nc\n", {}, r"a\.csv:2 has 1 columns where the first row has 2"),
        ("a.csv", "text,label\na,b\nc,d,e\n", {}, r"a\.csv:3 has 3 columns"),
        ("a.csv", "text,lable\na,b\n", {"label": "label", "text": "text"}, r"no column called 'label'.*'lable'"),
        ("a.csv", "a,b\n", {"text": 3}, r"has 2 columns, so there is no column 3"),
        ("a.csv", "a,b\n", {"text": 0}, r"no column 0"),
        ("a.csv", 'a,"b\n', {}, r"a\.csv:1 cannot be read as a table"),
        ("a.jsonl", '{"text": "a"}\n{"text": \n', {}, r"a\.jsonl:2 is not JSON"),
        ("a.jsonl", "[1]\n", {}, r"a\.jsonl:1 is not a JSON object"),
        ("a.jsonl", '{"txt": "a"}\n', {}, r"a\.jsonl:1 has no field 'text': did you mean 'txt'"),
        ("a.jsonl", '{"text": ["a"]}\n', {}, r"a\.jsonl:1 has no text in field 'text'"),
        ("a.txt", "\n\n", {}, r"a\.txt holds no records"),
        ("a.csv", "text,label\n", {}, r"a\.csv holds no records"),
        ("a.csv", b"a,b\nc,\xff\n", {}, r"a\.csv:2 is not utf-8"),
        ("a.txt", "a\nb\n", {"label": 2}, r"a\.txt has plain lines without labels"),
    ],
)
def test_wrong_records_are_one_sentence(tmp_path: Path, name: str, content, options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, name, content, **options)


def test_a_missing_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        read_records(tmp_path / "absent.csv")


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", "a,x\n"), ("a.csv", "text,label\na,x\n"), ("a.jsonl", '{"text": "a", "label": null}')],
)
def test_labels_that_nobody_asked_for_are_not_read(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    assert pairs(list(RecordReader().files(tmp_path / name))) == [("a", None)]


def test_a_folder_of_records(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.txt").write_text("one\n\ntwo\n")
    (tmp_path / "deep" / "a.ndjson").write_text('{"text": "three"}\n')
    (tmp_path / "picture.png").write_bytes(b"\0")
    files = RecordFiles(tmp_path)
    assert [record.text for record in files.records()] == ["one", "two", "three"]
    facts = files.facts()
    assert (facts.count, facts.characters, facts.labels) == (3, 14, [])


def test_a_draw_takes_exactly_as_many_as_asked(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{i}\n" for i in range(50)))
    files = RecordFiles(tmp_path / "a.txt")
    for held in (1, 5, 49):
        for seed in range(20):
            inside, outside = (
                [record.text for record in files.records(Part(held, seed, which))] for which in (True, False)
            )
            assert (len(inside), len(outside)) == (held, 50 - held)
            assert sorted(inside + outside, key=int) == [str(i) for i in range(50)]
            assert inside == [record.text for record in files.records(Part(held, seed, True))]


def test_no_records(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,label\n")
    with pytest.raises(UserError, match=r"a\.csv holds no records"):
        RecordFiles(tmp_path / "a.csv").facts()


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_what_separates_columns_is_seen(tmp_path: Path, mark: str) -> None:
    table = f'text{mark}label\nlate, again{mark}bad\n"a{mark}b"{mark}good\n'
    assert pairs(read(tmp_path, "a.csv", table)) == [("late, again", "bad"), (f"a{mark}b", "good")]


def test_marks_within_texts_separate_nothing(tmp_path: Path) -> None:
    assert pairs(read(tmp_path, "a.csv", "late; again,bad\nfine,good\n")) == [("late; again", "bad"), ("fine", "good")]
    assert pairs(read(tmp_path, "a.csv", "late; again\nfine\nwell\n"))[0] == ("late; again", None)


def test_texts_of_their_own_to_predict_for() -> None:
    for lines, where in (
        (["one", "two"], "a.txt"),
        (["id,text", "1,one", "2,two"], "a.csv"),
    ):
        assert [record.text for record in RecordReader().lines(lines, Path(where))] == ["one", "two"]
    with pytest.raises(RecordError, match="has 2 columns: say which is the text"):
        list(RecordReader().lines(["one,x", "two,y"], Path("a.csv")))
