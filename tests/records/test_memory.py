"""Data in memory: tuples, mappings, data frames, data sets, iterators; refused by the sentences that files are."""

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from elman.errors import UserError
from elman.records import (
    LabelledReader,
    LabelledText,
    Pair,
    PairReader,
    Place,
    RecordError,
    RecordReader,
    Sentence,
    TaggedReader,
)


class Frame:
    """What a data frame of pandas is known by."""

    def __init__(self, **columns: list[Any]) -> None:
        self._columns = columns
        self.columns = list(columns)

    def to_dict(self) -> dict[str, list[Any]]:
        return self._columns

    def itertuples(self, index: bool = True, name: str | None = "Pandas") -> Iterator[tuple[Any, ...]]:
        assert not index and name is None
        return zip(*self._columns.values(), strict=True)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)


class Rows:
    """What a data frame of polars is known by."""

    def __iter__(self) -> Iterator[list[str]]:
        return iter([["fine", "dull"], ["good", "bad"]])

    def iter_rows(self, named: bool = False) -> Iterator[dict[str, str]]:
        assert named
        return iter([{"text": text, "label": label} for text, label in ROWS])


class DataSet:
    """What a data set of Hugging Face is known by."""

    def __init__(self, *rows: dict[str, Any]) -> None:
        self.rows, self.column_names = rows, list(rows[0])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


ROWS = [("fine", "good"), ("dull", "bad")]
TEXTS = [("fine", ("good",)), ("dull", ("bad",))]


@pytest.mark.parametrize(
    ("data", "options"),
    [
        (ROWS, {}),
        (iter(ROWS), {}),
        ([list(row) for row in ROWS], {}),
        ([("fine", ["good"]), ("dull", ("bad",))], {}),
        ([{"id": 1, "review": text, "class": label} for text, label in ROWS], {}),
        (({"body": text, "kind": label} for text, label in ROWS), {"text": "body"}),
        (Frame(id=[1, 2], text=["fine", "dull"], label=["good", "bad"]), {}),
        (Rows(), {}),
        (Frame(stars=["good", "bad"], id=[1, 2], review=["fine", "dull"]), {"label": "stars"}),
        (DataSet(*({"sentence": text, "label": label} for text, label in ROWS)), {}),
        ([LabelledText("fine", ("good",)), {"text": "dull", "label": "bad"}], {}),
    ],
)
def test_texts_with_labels(data: Any, options: dict[str, Any]) -> None:
    assert [(record.text, record.labels) for record in LabelledReader(**options).objects(data)] == TEXTS


def test_the_column_with_few_values_is_the_label() -> None:
    frame = Frame(a=["x", "y"] * 20, b=[f"word {number}" for number in range(40)])
    assert next(LabelledReader().objects(frame)).labels == ("x",)


def test_places_are_numbers_of_records() -> None:
    assert [str(record.where) for record in LabelledReader().objects(ROWS, "dev")] == [
        "record 1 of dev",
        "record 2 of dev",
    ]


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ({"text": " ", "label": "x"}, "has an empty text: write one, or remove the line"),
        ({"text": "a", "label": ""}, "has an empty label: write one, or remove the line"),
        ({"text": None, "label": "x"}, "has no text in field 'text': write a string"),
        ({"text": "a", "label": None}, "has no text in field 'label': write a string"),
        ({"text": "a"}, "has no field 'label': known are: text"),
        ({"text": "a", "label": [["x"]]}, "has a label that is no word in field 'label': write a list of strings"),
    ],
)
def test_memory_and_files_refuse_the_same(tmp_path: Path, item: dict[str, Any], sentence: str) -> None:
    good = {"text": "one", "label": "x"}
    place = tmp_path / "a.jsonl"
    place.write_text(json.dumps(good) + "\n" + json.dumps(item) + "\n")
    with pytest.raises(UserError) as of_memory:
        list(LabelledReader().objects([good, item]))
    with pytest.raises(UserError) as of_file:
        list(LabelledReader().files(place))
    assert str(of_memory.value) == f"record 2 of train {sentence}"
    assert str(of_file.value) == f"{place}:2 {sentence}"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([("a", "x"), ("b",)], r"record 2 of train is no \(text, label\)"),
        ([("a", "x"), "b"], r"record 2 of train is no \(text, label\)"),
        ([(3, "x")], "record 1 of train has a int as its text"),
        (Frame(text=["a", float("nan")], label=["x", "y"]), "record 2 of train has no text in field 'text'"),
        (Frame(a=["a"], b=["x"], c=["y"]), "record 1 of train has the fields a, b, c: say which are meant"),
        (Frame(text=["a"], lable=["x"], c=["y"]), "record 1 of train has the fields text, lable, c"),
        ("train.csv", "train is a str: give a list of records"),
        ({"text": ["a", "b"], "label": ["x"]}, "train has 2 cells in 'text' and 1 in 'label': give columns of one"),
        ({"text": "a", "label": "x"}, "train is a mapping whose 'text' is no list: give a list for each column"),
        (7, "train is a int: give"),
        (np.array(5.0), "train is a ndarray: give"),
        ([("a", "x"), ("b", "y\ud800")], "record 2 of train has half a surrogate pair, which is no character"),
        (pd.DataFrame([["a", "b", "x"]], columns=["text", "text", "label"]), "train has two columns called 'text'"),
    ],
)
def test_what_is_no_labelled_text(data: Any, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        list(LabelledReader().objects(data))


def test_rows_of_an_array_are_records() -> None:
    records = LabelledReader().objects(np.array([["good", "a"], ["bad", "b"]]))
    assert [(record.text, record.labels) for record in records] == [("good", ("a",)), ("bad", ("b",))]


def test_numbers_are_labels() -> None:
    assert next(LabelledReader().objects(DataSet({"text": "a", "label": 3}))).labels == ("3",)


def test_pairs() -> None:
    expected = [("Go.", "Va !")]
    for data in (
        [("Go.", "Va !")],
        [{"en": "Go.", "fr": "Va !"}],
        Frame(source=["Go."], target=["Va !"]),
        [Pair(*expected[0])],
    ):
        assert [(pair.source, pair.target) for pair in PairReader().objects(data)] == expected
    assert next(PairReader(source="fr").objects([{"en": "Go.", "fr": "Va !"}])).target == "Go."
    with pytest.raises(UserError, match=r"record 1 of dev is no \(source, target\)"):
        list(PairReader().objects([("Go.",)], "dev"))


def test_tagged_sentences() -> None:
    tokens, tags = ["Ada", "sings"], ["B-PER", "O"]
    for data in (
        [(tokens, tags)],
        [{"tokens": tokens, "tags": tags}],
        Frame(tokens=[tuple(tokens)], tags=[tags]),
        [Sentence(("Ada", "sings"), ("B-PER", "O"))],
    ):
        (sentence,) = TaggedReader().objects(data)
        assert (sentence.tokens, sentence.tags) == (tuple(tokens), tuple(tags))
    assert next(TaggedReader(token="words").objects([{"words": tokens, "tags": tags}])).tokens == ("Ada", "sings")
    with pytest.raises(UserError, match="record 2 of train has 2 tokens and 1 tags"):
        list(TaggedReader().objects([(tokens, tags), (tokens, tags[:1])]))
    with pytest.raises(UserError, match="record 1 of train has no list of strings in field 'tags'"):
        list(TaggedReader().objects([(tokens, [0, 1])]))


def test_texts_of_their_own() -> None:
    data = ["one", ("two", "x"), {"text": "three"}]
    assert [(record.text, record.label) for record in RecordReader(guess_label=True).objects(data)] == [
        ("one", None),
        ("two", "x"),
        ("three", None),
    ]


def test_a_mistake_goes_from_one_process_to_another() -> None:
    with pytest.raises(RecordError) as caught:
        list(LabelledReader().objects([("a",)]))
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.where) == (str(caught.value), Place("train", 1))
