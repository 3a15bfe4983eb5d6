"""What a classifier says, that its folder keeps it to the last digit, and what it streams."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from elman.errors import UserError
from elman.records.lines import BadLines
from elman.tasks import evaluate, load, task_of
from elman.tasks.classify import TextClassifier
from elman.tasks.predict import PredictOptions
from tests.tasks.classify_runs import names, run, write_table

TEXTS = [name for name, _ in names(40)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("classifier")
    write_table(folder / "names.csv")
    run(folder / "names.csv", folder / "run")
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> TextClassifier:
    return TextClassifier.load(folder / "run")


def test_it_has_learnt_what_there_is_to_learn(model: TextClassifier) -> None:
    assert model.predict("grimulfa").label == "north"
    assert model.predict("olaettie").label == "south"
    found = model.predict(TEXTS)
    right = [prediction.label == label for prediction, (_, label) in zip(found, names(40), strict=True)]
    assert np.mean(right) > 0.95


def test_probabilities_sum_to_one_and_name_every_class(model: TextClassifier) -> None:
    found = model.predict("torvika")
    assert list(found.probabilities) == ["north", "south", "west"]
    assert sum(found.probabilities.values()) == pytest.approx(1)
    assert found.labels == (found.label,)
    assert found.probability == found.probabilities[found.label]


def test_a_text_has_the_same_answer_alone_and_among_others(model: TextClassifier) -> None:
    together = model.probabilities(TEXTS)
    assert model.probabilities([]).shape == (0, len(model.labels))
    alone = np.concatenate([model.probabilities([text]) for text in TEXTS])
    assert np.allclose(together, alone, atol=1e-6)


def test_an_unknown_character_and_a_long_text_are_read(model: TextClassifier) -> None:
    assert model.predict("ж").label in model.labels
    assert model.predict("ola" * 5000).label == "south"


def test_an_empty_text_is_refused(model: TextClassifier) -> None:
    with pytest.raises(UserError, match="text 2 of 2 is empty"):
        model.predict(["ola", " "])


def test_load_gives_the_model_of_the_task(folder: Path) -> None:
    found = load(folder / "run")
    assert isinstance(found, TextClassifier)
    assert task_of(found) == "classify"


def test_saved_again_it_says_the_same_to_the_last_digit(folder: Path, model: TextClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "copy")
    assert np.array_equal(TextClassifier.load(tmp_path / "copy").probabilities(TEXTS), model.probabilities(TEXTS))


def test_the_scores_are_those_that_training_reported(folder: Path) -> None:
    report = json.loads((folder / "run" / "metrics.json").read_text())
    dev = report["dev"]
    assert dev["texts"] == 12
    assert dev["accuracy"] > report["baselines"]["most frequent class"]["dev"]["accuracy"]
    found = evaluate(folder / "run", folder / "names.csv", baselines=False)
    assert found[str(folder / "names.csv")]["accuracy"] > 0.95


def test_a_damaged_folder_is_one_sentence(folder: Path, model: TextClassifier, tmp_path: Path) -> None:
    model.save(tmp_path / "bad")
    config = json.loads((tmp_path / "bad" / "config.json").read_text())
    del config["labels"]
    (tmp_path / "bad" / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"config\.json is damaged"):
        TextClassifier.load(tmp_path / "bad")


# Streams


def lines_of(model: TextClassifier, lines: list[str], **options: object) -> list[str]:
    return list(model.predict_lines(lines, PredictOptions(**options)))  # type: ignore[arg-type]


def test_a_line_for_each_text_in_order(model: TextClassifier) -> None:
    found = lines_of(model, TEXTS, window=7)
    assert [line.split("\t")[0] for line in found] == [prediction.label for prediction in model.predict(TEXTS)]


def test_json_lines_have_the_text_and_its_line(model: TextClassifier) -> None:
    first, second = map(json.loads, lines_of(model, ["id,name", "1,torvika", "2,olaina"], format="csv", as_json=True))
    assert (first["line"], first["text"], second["line"]) == (2, "torvika", 3)
    assert list(first["probabilities"].values()) == sorted(first["probabilities"].values(), reverse=True)
    assert next(iter(first["probabilities"])) == first["label"]


@pytest.mark.parametrize(
    ("format", "lines", "column"),
    [
        ("jsonl", ['{"id": 3, "title": "torvika"}'], None),
        ("jsonl", ['{"a": "torvika", "text": "olaina"}'], "a"),
        ("tsv", ["olaina\ttorvika"], "2"),
        ("csv", ["x,y", "olaina,torvika"], "y"),
        ("txt", ["torvika"], None),
    ],
)
def test_texts_in_tables_and_objects(model: TextClassifier, format: str, lines: list[str], column: str | None) -> None:
    (found,) = lines_of(model, lines, format=format, column=column, as_json=True)
    assert json.loads(found)["text"] == "torvika"


def test_bad_lines_are_skipped_and_told(model: TextClassifier) -> None:
    told: list[str] = []
    bad = BadLines("skip", told.append)
    lines = ["id,name", "1,torvika", "2", "3,", "4,olaina"]
    found = lines_of(model, lines, format="csv", bad=bad, where=Path("new.csv"))
    assert len(found) == 2
    assert [line.split(" ")[0] for line in told] == ["new.csv:3", "new.csv:4"]


def test_a_bad_line_ends_it_after_those_before(model: TextClassifier) -> None:
    stream = model.predict_lines(["torvika", "", "olaina"], PredictOptions(where=Path("new.txt")))
    assert next(stream).startswith("north")
    with pytest.raises(UserError, match=r"new\.txt:2 has an empty text"):
        next(stream)


def test_a_column_needs_a_table(model: TextClassifier) -> None:
    with pytest.raises(UserError, match="has no columns"):
        lines_of(model, ["torvika"], column="2")


# Several labels a text


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> TextClassifier:
    folder = tmp_path_factory.mktemp("several")
    rows = [
        {
            "text": f"{'sun' * (i % 2)} {'rain' * (i // 2 % 2)} and more",
            "label": ["dry"] * (i % 2) + ["wet"] * (i // 2 % 2),
        }
        for i in range(80)
    ]
    (folder / "sky.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run(folder / "sky.jsonl", folder / "run", "train.steps=80", "text.kind=words")


def test_several_labels_each_have_a_yes_or_no(several: TextClassifier) -> None:
    assert several.several
    found = several.predict(["sun rain and more", "sun and more", "and more"])
    assert [prediction.labels for prediction in found] == [("dry", "wet"), ("dry",), ()]
    line = next(several.predict_lines(["sun rain and more"], PredictOptions()))
    assert [part.split("=")[0] for part in line.split("\t")] == ["dry", "wet"]


def test_scoring_leaves_no_trace_in_a_network_that_trains(model: TextClassifier) -> None:
    model.network.train()
    torch.manual_seed(3)
    first = model.scores(model.vocabulary.encode(["torvika"]))
    assert model.network.training
    model.network.eval()
    assert np.array_equal(first, model.scores(model.vocabulary.encode(["torvika"])))
