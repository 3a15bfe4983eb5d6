"""From files to splits: what is guessed, held out, weighted, and what is refused in one sentence."""

import json
from collections import Counter
from pathlib import Path

import pytest

import elman
from elman.errors import UserError
from elman.records.labelled import LabelledText
from elman.tasks import TASKS, recipes
from elman.tasks.classify import ClassifyRecipe, DataSettings, class_weights
from elman.tasks.ensemble import MembersSection
from elman.tasks.task import Data
from tests.tasks.classify_runs import names, recipe, run, write_table
from tests.tasks.runs import open_task


def data_of(train: Path, **settings: object) -> DataSettings:
    return DataSettings.model_validate({"train": [str(train)], **settings})


def open_data(data: DataSettings, seed: int, said: list[str] | None = None) -> Data[LabelledText]:
    recipe = ClassifyRecipe(data=data, train=MembersSection(seed=seed))
    return open_task("classify", recipe, said)  # type: ignore[no-any-return]


def test_a_part_is_held_out_class_by_class_and_always_the_same(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    first, again = open_data(data_of(table), seed=3), open_data(data_of(table), seed=3)
    assert (len(first.train), len(first.dev), first.test) == (108, 12, [])
    assert first == again
    assert {row.where for row in first.train}.isdisjoint(row.where for row in first.dev)
    assert set(Counter(record.labels for record in first.dev)) == {("north",), ("south",), ("west",)}
    assert open_data(data_of(table), seed=4).dev != first.dev


def test_a_test_part_too_and_nothing_at_all(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    both = open_data(data_of(table, test_fraction=0.2), seed=1)
    assert (len(both.train), len(both.dev), len(both.test)) == (84, 12, 24)
    none = open_data(data_of(table, dev_fraction=0), seed=1)
    assert (len(none.train), none.dev, none.test) == (120, [], [])


def test_guessed_columns_and_common_texts_are_said(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    test = write_table(tmp_path / "t.csv", [*names(2), ("grimtora", "north")])
    said: list[str] = []
    open_data(data_of(table, test=[str(test)], dev_fraction=0), seed=1, said=said)
    assert "the text is column 'name', the label is column 'language' (guessed)" in said[0]
    assert "2 of the 3 test texts stand in training too" in said[-1]


def test_some_of_the_labels_are_drawn_by_the_seed_and_fewer_are_among_more(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    whole = open_data(data_of(table), seed=3)
    ten, fifty, every = (open_data(data_of(table, labels=count), seed=3) for count in (10, 50, 108))
    assert (len(ten.train), len(fifty.train)) == (10, 50)
    assert {row.where for row in ten.train} < {row.where for row in fifty.train} < {row.where for row in whole.train}
    assert ten.dev == fifty.dev == whole.dev
    assert every == whole
    assert ten.facts["labels"] == ["north", "south", "west"]  # all classes there are
    assert open_data(data_of(table, labels=10, dev=[str(table)]), seed=4).train != ten.train
    with pytest.raises(UserError, match=r"data\.labels = 109, and there are 108 training texts: give fewer, or 0"):
        open_data(data_of(table, labels=109), seed=3)
    with pytest.raises(UserError, match=r"the 1 training texts of data\.labels have one class only"):
        open_data(data_of(table, labels=1), seed=3)


def test_folds_cover_every_text_once(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    parts = [open_data(data_of(table, folds=4, fold=fold), seed=1) for fold in (1, 2, 3, 4)]
    tested = [record.where for part in parts for record in part.test]
    assert len(tested) == len(set(tested)) == 120
    for part in parts:
        assert {record.where for record in part.test}.isdisjoint(r.where for r in (*part.train, *part.dev))


def test_phrases_of_held_out_sentences_are_not_learned_from(tmp_path: Path) -> None:
    lines = [f"({grade} (2 film{number}) ({grade} (2 is) ({grade} {word})))"
             for number, (grade, word) in enumerate([("0", "bad"), ("4", "good"), ("2", "so-so")] * 10)]  # fmt: skip
    (tmp_path / "t.txt").write_text("\n".join(lines))
    (tmp_path / "e.txt").write_text("(4 (2 a) (4 (2 good) (4 one)))\n")
    data = data_of(tmp_path / "t.txt", format="trees", phrases=True, test=[str(tmp_path / "e.txt")], dev_fraction=0.2)
    found = open_data(data, seed=1)
    held = {record.text.split()[0] for record in found.dev}
    assert len(held) == 6 and all(record.whole for record in (*found.dev, *found.test)) and len(found.test) == 1
    assert not held & {word for record in found.train for word in record.text.split()}
    texts = [(record.text, record.labels) for record in found.train]
    assert len(texts) == len(set(texts)) and ("is good", ("4",)) in texts and ("good", ("4",)) in texts
    assert [record.whole for record in found.train[:24]] == [True] * 24 and not found.train[24].whole
    fold = open_data(data.model_copy(update={"test": (), "folds": 3, "fold": 2}), seed=1)
    assert not {r.text.split()[0] for r in (*fold.dev, *fold.test)} & {w for r in fold.train for w in r.text.split()}


def test_phrases_of_a_class_that_no_sentence_has_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("(0 (2 a) (1 film))\n(1 (0 bad) (3 one))\n" * 4)
    said: list[str] = []
    found = open_data(data_of(tmp_path / "t.txt", format="trees", phrases=True, dev_fraction=0), seed=1, said=said)
    assert found.facts["labels"] == ["0", "1"] and {one.labels for one in found.train} == {("0",), ("1",)}
    assert "warning: 8 of the phrases have a class that no sentence has, and are left out" in said


def test_corpora_are_read_one_behind_the_other_in_one_encoding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    write_table(tmp_path / "one.csv"), write_table(tmp_path / "two.csv")
    monkeypatch.setattr(recipes, "locate", lambda name, data_dir: {"train": [tmp_path / f"{name}.csv"]})
    found = recipes.find_files(DataSettings(corpus=("one", "two")))
    assert found == {"train": [tmp_path / "one.csv", tmp_path / "two.csv"]}
    with pytest.raises(UserError, match=r"data\.corpus names corpora in latin-1 and utf-8: one run reads one encoding"):
        TASKS["classify"].reader(DataSettings(corpus=("trec", "names")))


def test_class_weights(tmp_path: Path) -> None:
    data = open_data(data_of(write_table(tmp_path / "n.csv"), dev_fraction=0), seed=1)
    balanced = class_weights(["balanced"], data)
    counts = Counter(record.labels[0] for record in data.train)
    assert balanced is not None
    assert [
        w * counts[label] for w, label in zip(balanced.tolist(), data.facts["labels"], strict=True)
    ] == pytest.approx([40] * 3)
    named = class_weights(["west=2.5"], data)
    assert named is not None
    assert named.tolist() == [1, 1, 2.5]
    with pytest.raises(UserError, match="did you mean 'west'"):
        class_weights(["wst=2"], data)


def test_weights_change_what_is_learnt(tmp_path: Path) -> None:
    rows = [(f"same{i % 3}", "common" if i % 4 else "rare") for i in range(80)]
    table = write_table(tmp_path / "n.csv", rows)
    plain = run(table, tmp_path / "plain", "data.dev_fraction=0")
    weighted = run(table, tmp_path / "weighted", "data.dev_fraction=0", 'loss.class_weights=["rare=20"]')
    assert plain.predict("same1").label == "common"
    assert weighted.predict("same1").label == "rare"


def refused(path: Path, *settings: str) -> str:
    out = path.parent / "out"
    with pytest.raises(UserError) as caught:
        run(path, out, *settings)
    assert not out.exists()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "settings", "sentence"),
    [
        ("text,label\na,x\nb,x\n", (), "has one class only, 'x'"),
        ("text,label\na,x\n,y\n", (), "data.csv:3 has an empty text"),
        ("text,label\na,x\nb,\n", (), "data.csv:3 has an empty label"),
        ("text,label\na,x\nb,y,z\n", (), "data.csv:3 has 3 columns where the first row has 2"),
        ("text,label\na,x\nb,y\n", ("data.label_column=lable",), "no column called 'lable': did you mean 'label'"),
        ("text,label\n" + "".join(f"t{i},{i / 7:.3f}\n" for i in range(60)), (), "looks like a quantity to predict"),
        ("text,label\na,x\nb,y\n", ("loss.class_weights=x",), "'x' should be \"balanced\", or LABEL=WEIGHT"),
        ("text,label\na,x;y\nb,y\n", ("data.separator=;", "data.several=false"), "data.separator makes several labels"),
        ("text,label\na,x\nb,y\n", ("model.characters=8",), 'it needs text.kind = "words"'),
        ("text,label\na,x\nb,y\n", ("data.folds=9",), "2 texts cannot be cut into 9 folds"),
    ],
)
def test_wrong_input_is_one_sentence(tmp_path: Path, content: str, settings: tuple[str, ...], sentence: str) -> None:
    (tmp_path / "data.csv").write_text(content)
    assert sentence in refused_or_recipe(tmp_path / "data.csv", *settings)


def refused_or_recipe(path: Path, *settings: str) -> str:
    """A mistake in the recipe shows before there is a run."""
    try:
        recipe(path, *settings)
    except UserError as error:
        return str(error)
    return refused(path, *settings)


def test_an_unknown_label_in_test_is_named_with_its_place(tmp_path: Path) -> None:
    table = write_table(tmp_path / "n.csv")
    other = write_table(tmp_path / "t.csv", [("grim", "north"), ("ola", "suoth")])
    sentence = refused(table, f'data.test=["{other}"]')
    assert "t.csv:3 has the label 'suoth', which no training text has: did you mean 'south'?" in sentence


def test_two_labels_where_one_is_asked_for(tmp_path: Path) -> None:
    rows = [{"text": "a", "label": "x"}, {"text": "b", "label": ["x", "y"]}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(value) + "\n" for value in rows))
    assert "d.jsonl:2 has not one label but 'x', 'y'" in refused(tmp_path / "d.jsonl", "data.several=false")


def test_two_labels_for_a_model_that_gives_one(tmp_path: Path) -> None:
    one = elman.fit("classify", train=[("a", "x"), ("b", "y")] * 4, settings=["train.steps=1"], verbose=False)
    one.save(tmp_path / "one")
    two = [{"text": "a", "labels": ["x", "y"]}, {"text": "b", "labels": ["y"]}] * 4
    with pytest.raises(UserError, match="has not one label but 'x', 'y': give it one, or train a model with"):
        elman.fit("classify", train=two, settings={"train.start": str(tmp_path / "one")}, verbose=False)


def test_nothing_to_train_on() -> None:
    with pytest.raises(UserError, match="nothing to train on: give --train FILE"):
        open_data(DataSettings(), seed=1)


def test_a_row_is_a_text_with_its_labels(tmp_path: Path) -> None:
    data = open_data(data_of(write_table(tmp_path / "n.csv", [("a", "x"), ("b", "y"), ("c", "y")])), seed=1)
    assert TASKS["classify"].key(data.train[0]) == ("a", ("x",))
