"""Texts with classes in every way they are written, what is said of wrong ones, and splits of them."""

import gzip
import json
import subprocess
import sys
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.records import (
    BadLines,
    Files,
    LabelledReader,
    LabelledText,
    check_classes,
    check_known,
    iterate_texts,
    overlap,
    seen,
    stratified_folds,
    stratified_split,
)
from elman.records.places import Place


def write(place: Path, content: str | bytes) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


def pairs(files: Files[LabelledText]) -> list[tuple[str, tuple[str, ...]]]:
    return [(record.text, record.labels) for record in files.records()]


@pytest.mark.parametrize(
    ("name", "content", "options", "guess"),
    [
        ("a.csv", "text,label\nfine,good\ndull,bad\n", {}, "column 'text', the label is column 'label'"),
        ("a.csv", "fine,good\ndull,bad\n", {"text": 1, "label": 2}, ""),
        ("a.csv", "label,text\ngood,fine\nbad,dull\n", {"text": 2, "label": 1}, ""),
        ("a.csv", "x,stars,Review\n1,good,fine\n2,bad,dull\n", {"label": "stars"}, "column 'Review'"),
        ("a.tsv", "good\tfine\nbad\tdull\n", {"text": 2}, "the label is column 1"),
        ("a.csv", "stars,review\ngood,fine\nbad,dull\n", {}, "the label is column 'stars'"),
        (
            "a.jsonl",
            '{"review": "fine", "id": 1, "class": "good"}\n{"review": "dull", "class": "bad"}\n',
            {},
            "'class'",
        ),
        ("a.jsonl", '{"a": "fine", "b": "good"}\n{"a": "dull", "b": "bad"}\n', {"text": "a", "label": "b"}, ""),
        ("a.csv.gz", gzip.compress(b"text,label\nfine,good\ndull,bad\n", mtime=0), {}, "column 'text'"),
        ("a.txt", "good fine\nbad\tdull\n", {"format": "lines"}, ""),
        ("a.dat", "fine\tgood\ndull\tbad\n", {"format": "tsv", "text": 1, "label": 2}, ""),
    ],
)
def test_columns_are_found_and_guesses_are_told(tmp_path: Path, name: str, content, options: dict, guess: str) -> None:
    files = LabelledReader(**options).files(write(tmp_path / name, content))
    assert pairs(files) == [("fine", ("good",)), ("dull", ("bad",))]
    assert guess in files.guess
    assert bool(guess) == bool(files.guess)


def test_the_column_with_few_values_is_the_label(tmp_path: Path) -> None:
    rows = "".join(f"{'AB'[i % 2]},word {i}\n" for i in range(50))
    assert pairs(LabelledReader().files(write(tmp_path / "a.csv", rows)))[1] == ("word 1", ("B",))


def test_several_labels(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", "text,labels\none,x| y|x\ntwo,\n")
    assert pairs(LabelledReader(separator="|").files(table)) == [("one", ("x", "y")), ("two", ())]
    lists = write(tmp_path / "a.jsonl", '{"text": "one", "labels": ["x", 3]}\n{"text": "two", "labels": []}\n')
    assert pairs(LabelledReader().files(lists)) == [("one", ("x", "3")), ("two", ())]


def test_a_folder_a_class_and_a_file_a_class(tmp_path: Path) -> None:
    write(tmp_path / "a" / "good" / "1.txt", "two\nlines\n")
    write(tmp_path / "a" / "bad" / "deep" / "2", "dull")
    write(tmp_path / "a" / ".git" / "3.txt", "no")
    assert pairs(LabelledReader().files(tmp_path / "a")) == [("dull", ("bad",)), ("two\nlines", ("good",))]
    write(tmp_path / "b" / "rt.neg", "dull \n\nweak\n")
    write(tmp_path / "b" / "rt.pos", "fine\n")
    found = LabelledReader().files(tmp_path / "b")
    assert pairs(found) == [("dull", ("neg",)), ("weak", ("neg",)), ("fine", ("pos",))]
    assert [record.where.line for record in found.records()] == [1, 3, 1]
    write(tmp_path / "c" / "German.txt", "Adler\n")
    write(tmp_path / "c" / "Czech.txt", "Adsit\n")
    assert pairs(LabelledReader().files(tmp_path / "c")) == [("Adsit", ("Czech",)), ("Adler", ("German",))]


def test_the_parts_of_a_label_and_the_grades_of_trees(tmp_path: Path) -> None:
    questions = write(tmp_path / "q.label", "NUM:dist How far ?\nHUM:ind Who na\xefve ?\n".encode("latin-1"))
    options = {"encoding": "latin-1"}
    assert pairs(LabelledReader(**options).files(questions))[1] == ("Who naïve ?", ("HUM:ind",))
    assert pairs(LabelledReader(classes="coarse", **options).files(questions))[0] == ("How far ?", ("NUM",))
    trees = write(tmp_path / "t.txt", "(3 (2 It) (4 works))\n(2 (2 So) (2 so))\n(0 (2 No) (0 good))\n")
    assert pairs(LabelledReader().files(trees))[1] == ("So so", ("2",))
    assert pairs(LabelledReader(classes="binary").files(trees)) == [
        ("It works", ("positive",)),
        ("No good", ("negative",)),
    ]


def test_phrases_follow_the_sentences_and_stand_where_they_do(tmp_path: Path) -> None:
    trees = write(tmp_path / "t.txt", "(3 (2 It) (4 (2 works) (2 well)))\n(2 (2 So) (1 so))\n")
    found = list(LabelledReader(phrases=True).files(trees))
    assert [(record.text, record.labels[0]) for record in found if record.whole] == [
        ("It works well", "3"),
        ("So so", "2"),
    ]
    phrases = [
        (record.text, record.labels[0], record.where.line) for record in found if not record.whole and record.where
    ]
    assert phrases == [
        ("It", "2", 1),
        ("works well", "4", 1),
        ("works", "2", 1),
        ("well", "2", 1),
        ("So", "2", 2),
        ("so", "1", 2),
    ]
    graded = pairs(LabelledReader(phrases=True, classes="binary").files(trees))
    assert graded == [("It works well", ("positive",)), ("works well", ("positive",)), ("so", ("negative",))]


@pytest.mark.parametrize(
    ("name", "content", "options", "message"),
    [
        ("a.csv", "text,label\na,x\n", {"phrases": True}, r"data\.phrases=true is for sentiment trees"),
        ("a.csv", "text,lable\na,x\n", {"label": "label"}, r"a\.csv:1 has no column called 'label'.*'lable'"),
        ("a.csv", "a,b\n", {"label": 3, "text": 1}, "no column 3"),
        ("a.csv", "a,b,c\nd,e,f\n", {}, r"a\.csv:1 has 3 columns \(a, b, c\): say which"),
        ("a.csv", "text,stars,place\na,b,c\n", {}, "the columns text, stars, place: say which"),
        ("a.csv", "word\n", {}, r"has 1 column \(word\): say which"),
        ("a.csv", "a,b\n", {"text": 1, "label": 1}, "the same column"),
        ("a.csv", "text,label\na,x\nb\n", {}, r"a\.csv:3 has 1 columns where the first row has 2"),
        ("a.csv", "text,label\na,x\n ,y\n", {}, r"a\.csv:3 has an empty text"),
        ("a.csv", "text,label\na,x\nb,\n", {}, r"a\.csv:3 has an empty label"),
        ("a.csv", "text,label\n", {}, "holds no texts with labels"),
        ("a.jsonl", '{"text": "a", "label": "x"}\n{"text": "b"}\n', {}, r"a\.jsonl:2 has no field 'label'"),
        ("a.jsonl", '{"text": "a", "label": [{}]}\n', {}, r"a\.jsonl:1 has a label that is no word"),
        ("a.jsonl", '{"a": 1, "b": 2, "c": 3}\n', {}, "fields a, b, c: say which"),
        ("a.jsonl", "\n", {}, "holds no objects"),
        ("a.txt", "just words here\n", {}, "does not show its labels: say -s data.format=lines"),
        ("a.txt", "A:b c\nA:b\n", {"format": "lines"}, r"a\.txt:2 has an empty text"),
        ("a.txt", "(2 (2 a)\n", {"format": "trees"}, r"a\.txt:1 ends with 1 bracket still open"),
        ("a.txt", "(9 (2 a))\n", {"classes": "binary"}, r"a\.txt:1 has the label '9'"),
        ("a.csv", "text,label\na,x\n", {"classes": "binary"}, "classes=binary is for sentiment trees"),
        ("a.csv", "text,label\na,x\n", {"classes": "corse"}, "did you mean 'coarse'"),
        ("a.csv", "text,label\na,x\n", {"format": "tree"}, "did you mean 'trees'"),
        ("a.txt", "A:b c\n", {"text": 2}, "has no columns"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, name: str, content: str, options: dict, message: str) -> None:
    with pytest.raises(UserError, match=message):
        LabelledReader(**options).files(write(tmp_path / name, content)).read()


def test_empty_classes_and_missing_files(tmp_path: Path) -> None:
    write(tmp_path / "a" / "good" / "1.txt", "fine")
    (tmp_path / "a" / "bad").mkdir()
    with pytest.raises(UserError, match="the class 'bad' is empty"):
        LabelledReader().files(tmp_path / "a").read()
    with pytest.raises(UserError, match="no such file"):
        LabelledReader().files(tmp_path / "absent.csv")
    (tmp_path / "b").mkdir()
    with pytest.raises(UserError, match="is empty"):
        LabelledReader().files(tmp_path / "b")
    mixed = [write(tmp_path / "a.csv", "a,b\n"), write(tmp_path / "a.tsv", "a\tb\n")]
    with pytest.raises(UserError, match="written in different ways"):
        LabelledReader().files(mixed)


def test_bad_lines_are_skipped_counted_and_named(tmp_path: Path) -> None:
    content = b'text,label\none,x\ntwo\n,y\nf\xffour,y\nfi"v"e,x\n"si"x,y\nseven,y\n'
    told: list[str] = []
    bad = BadLines("skip", told.append)
    records = list(LabelledReader().files(write(tmp_path / "a.csv", content)).records(bad))
    assert [(record.text, record.where.line) for record in records] == [
        ("one", 2),
        ('fi"v"e', 6),
        ("seven", 8),
    ]
    assert bad.count == 4
    assert [line.split(" ")[0].rpartition(":")[2] for line in told] == ["3", "4", "5", "7"]
    with pytest.raises(UserError, match="on_error is 'fail' or 'skip'"):
        BadLines("ignore")


def test_texts_to_predict(tmp_path: Path) -> None:
    lines = write(tmp_path / "a.txt", "one\n\nthree\n")
    with pytest.raises(UserError, match=r"a\.txt:2 has an empty text"):
        list(iterate_texts(lines))
    table = write(tmp_path / "a.csv", "id,review\n1,one\n2,\n3,three\n")
    objects = write(tmp_path / "a.jsonl", '{"text": "one"}\nno\n{"text": "three"}\n')
    for place in (lines, table, objects):
        bad = BadLines("skip")
        assert [record.text for record in iterate_texts(place, bad=bad)] == ["one", "three"]
        assert bad.count == 1
    assert [record.text for record in iterate_texts(table, text="id")] == ["1", "2", "3"]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    place = write(tmp_path / "a.csv", "text,label\n" + "a line of some words,x\n" * 200_000)
    files = LabelledReader().files(place)
    tracemalloc.start()
    try:
        count = sum(1 for _ in files.records())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == 200_000
    assert peak < 5e6


@pytest.mark.parametrize(
    ("counts", "texts", "message"),
    [
        ({}, 3, "has no labels"),
        ({"a": 3}, 3, "one class only"),
        ({"a": 3, "b": 0}, 3, "no text of the class 'b'"),
        ({str(n / 7): 2 for n in range(30)}, 60, "looks like a quantity"),
        ({str(n): 1 for n in range(1900, 2000)}, 100, "looks like a quantity"),
    ],
)
def test_labels_that_are_no_classes(counts: dict[str, int], texts: int, message: str) -> None:
    with pytest.raises(UserError, match=message):
        check_classes(counts, texts, "train.csv")


@pytest.mark.parametrize(
    "counts",
    [{"1": 5, "2": 5, "3": 5}, {str(n): 40 for n in range(50)}, {"1.5": 9, "2.5": 9}, {f"c{n}": 1 for n in range(99)}],
)
def test_numbers_may_be_classes(counts: dict[str, int]) -> None:
    check_classes(counts, sum(counts.values()), "train.csv")


def test_one_of_several_labels_may_be_the_only_one() -> None:
    check_classes({"urgent": 4}, 9, "train.csv")


@given(
    labels=st.lists(st.sampled_from("abcd"), min_size=2, max_size=200),
    fraction=st.floats(0.05, 0.6),
    seed=st.integers(0, 5),
)
def test_a_split_keeps_the_shares(labels: list[str], fraction: float, seed: int) -> None:
    kept, held = stratified_split(labels, fraction, seed)
    assert sorted(kept + held) == list(range(len(labels)))
    for label, count in Counter(labels).items():
        among = sum(labels[index] == label for index in held)
        assert abs(among - fraction * count) <= 1
        assert among < count
    assert abs(len(held) - fraction * len(labels)) <= 4


def test_splits_are_the_same_in_every_process_and_differ_by_seed() -> None:
    code = (
        "import json; from elman.records.classes import stratified_split, stratified_folds;"
        "labels = ['x', 'y', 'z'] * 30;"
        "print(json.dumps([stratified_split(labels, 0.2, 3), stratified_folds(labels, 10, 3)]))"
    )
    labels = ["x", "y", "z"] * 30
    here = [list(stratified_split(labels, 0.2, 3)), stratified_folds(labels, 10, 3)]
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": "7"})
    assert json.loads(there.stdout) == here
    assert stratified_split(labels, 0.2, 4)[1] != here[0][1]
    for wrong in (0.0, 1.0):
        with pytest.raises(UserError, match="between 0 and 1"):
            stratified_split(labels, wrong)


def test_folds_cover_everything_evenly() -> None:
    labels = ["a"] * 53 + ["b"] * 47
    folds = stratified_folds(labels, 10, seed=1)
    assert sorted(index for fold in folds for index in fold) == list(range(100))
    assert {len(fold) for fold in folds} == {10}
    assert all(4 <= sum(labels[index] == "a" for index in fold) <= 6 for fold in folds)
    with pytest.raises(UserError, match="cannot be cut into 101 folds"):
        stratified_folds(labels, 101)


def test_what_stands_in_training_too() -> None:
    assert seen(["a", "b", "b"], ["b", "c", "b"]) == [True, False, True]
    assert overlap([("a", "x")], [("a", "y"), ("a", "x")]) == 1


@pytest.mark.data
@pytest.mark.parametrize(
    ("path", "options", "texts", "classes"),
    [
        ("trec/TREC.train", {"encoding": "latin-1", "classes": "coarse"}, 5452, 6),
        ("trec/TREC.train", {"encoding": "latin-1"}, 5452, 50),
        ("trec/TREC.test", {"classes": "coarse"}, 500, 6),
        ("sst-trees/train.txt", {}, 8544, 5),
        ("sst-trees/test.txt", {"classes": "binary"}, 1821, 2),
        ("sentence-polarity", {}, 10_662, 2),
        ("names/names_test.csv", {}, 6700, 18),
    ],
)
def test_published_sizes(data_dir: Path, path: str, options: dict, texts: int, classes: int) -> None:
    records = LabelledReader(**options).files(data_dir / path).read()
    counts = Counter(label for record in records for label in record.labels)
    assert (len(records), len(counts)) == (texts, classes)
    check_classes(counts, texts, path)


@pytest.mark.data
def test_names_that_stand_in_both_splits(data_dir: Path) -> None:
    train, test = (
        [
            (record.text, record.labels)
            for record in LabelledReader().files(data_dir / "names" / f"names_{split}.csv").records()
        ]
        for split in ("train", "test")
    )
    assert overlap(train, test) / len(test) == pytest.approx(0.115, abs=0.0005)


TICKETS = "I was charged twice for it,{0}\nThe screen stays black today,technical\n" * 20


@pytest.mark.parametrize("options", [{}, {"text": 1, "label": 2}])
def test_a_header_of_names_that_are_not_usual_is_no_record(tmp_path: Path, options: dict) -> None:
    files = LabelledReader(**options).files(write(tmp_path / "a.csv", "subject,queue\n" + TICKETS.format("billing")))
    assert Counter(record.labels for record in files.records()) == {("billing",): 20, ("technical",): 20}
    assert options or "'subject', the label is column 'queue'" in files.guess


def test_a_first_record_with_a_rare_label_is_no_header(tmp_path: Path) -> None:
    names = "Ada,Rare\n" + "Smith,English\nMüller,German\nSato,Japanese\n" * 20 + "Rossi,Italian\n"
    for content, first in ((TICKETS.format("billing"), "billing"), (names, "Rare")):
        files = LabelledReader().files(write(tmp_path / "b.csv", content))
        assert pairs(files)[0][1] == (first,)


def test_columns_that_cannot_be_told_are_shown(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"a.csv:1 has 4 columns \(id, opened, subject, queue\): say which are meant"):
        LabelledReader().files(write(tmp_path / "a.csv", "id,opened,subject,queue\n1,2024-01-02,It broke,technical\n"))


def test_a_header_that_is_read_as_a_record_is_told_how_to_say_so() -> None:
    record = LabelledText("subject", ("queue",), Place(Path("dev.csv"), 1))
    told = r"dev.csv:1 has the label 'queue'.*where this is a header, say -s data.label_column=queue"
    with pytest.raises(UserError, match=told):
        check_known([record], ["billing", "technical"])
    with pytest.raises(UserError) as other:
        check_known([LabelledText("sad", ("sad",), Place(Path("dev.txt"), 1))], ["joy"])
    assert "header" not in str(other.value)
