"""`elman.fit` with data in memory, runs that go further or start from a model, and what its model can do."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elman
from elman.errors import UserError
from elman.train.log import read_log

SMALL: dict[str, Any] = {
    "model.hidden": 8,
    "model.embedding": 6,
    "text.kind": "characters",
    "batch.size": 8,
    "train.threads": 1,
    "train.lr": 0.02,
    "baseline.ngrams": False,
}
ROWS = [(text * (1 + i % 3), label) for i in range(20) for text, label in (("ab", "north"), ("xy", "south"))]


def fit(data: Any = ROWS, **options: Any) -> Any:
    """A small classifier."""
    settings = SMALL | {"train.steps": 20} | options.pop("settings", {})
    return elman.fit("classify", train=data, settings=settings, verbose=False, **options)


class Dataset:
    """What a Hugging Face data set looks like from here."""

    column_names = ("text", "label")

    def __iter__(self) -> Iterator[dict[str, str]]:
        return ({"text": text, "label": label} for text, label in ROWS)


def columns() -> dict[str, list[str]]:
    return {"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]}


def frame() -> Any:
    return pytest.importorskip("pandas").DataFrame(ROWS, columns=["text", "label"])


@pytest.mark.parametrize(
    "make",
    [lambda: ROWS, lambda: iter(ROWS), lambda: [{"text": t, "label": c} for t, c in ROWS], columns, Dataset, frame],
    ids=["tuples", "iterator", "dicts", "columns", "data set", "data frame"],
)
def test_data_in_memory_train_as_a_file_does(make: Any, tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in ROWS))
    expected = fit(table)
    found = fit(make())
    for name, array in expected.weights().items():
        assert np.array_equal(array, found.weights()[name])
    assert found.report["dev"] == expected.report["dev"]


def test_held_out_data_in_memory_and_evaluation() -> None:
    model = fit(ROWS[:30], dev=ROWS[30:], test=ROWS[:10])
    assert model.report["dev"]["texts"] == 10 and model.report["test"]["texts"] == 10
    assert elman.evaluate(model, ROWS)["data"]["texts"] == len(ROWS)


@pytest.mark.parametrize(
    ("task", "data", "ask"),
    [
        ("lm", ["the cat sat on the mat"] * 40, lambda model: model.generate("the", length=3)[0]),
        (
            "tag",
            [(["Ada", "sings"], ["B-PER", "O"]), (["She", "ran"], ["O", "O"])] * 8,
            lambda m: m.predict("Ada").tags,
        ),
        ("translate", [("ab", "ba"), ("abc", "cba")] * 12, lambda model: model.predict("ab").text),
        ("series", [{"x": i % 4} for i in range(80)], lambda model: model.predict([0, 1, 2, 3] * 9).mean),
    ],
)
def test_every_task_takes_data_in_memory(task: str, data: Any, ask: Any) -> None:
    settings = {"model.hidden": 4, "train.steps": 2, "train.threads": 1}
    model = elman.fit(task, train=data, settings=settings, verbose=False)
    assert len(ask(model)) > 0
    assert model.report.headline().value is not None


def test_a_wrong_record_is_named() -> None:
    with pytest.raises(UserError, match="record 2 of train"):
        fit([("ab", "north"), ("xy",), *ROWS])


def test_nothing_is_printed_or_kept_without_verbose(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    fit()
    assert capfd.readouterr() == ("", "")


def test_callbacks_see_the_log(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    fit(out=tmp_path / "run", settings={"train.log_every": 1}, callbacks=[seen.append])
    assert seen == read_log(tmp_path / "run" / "log.jsonl")
    assert {record["kind"] for record in seen} == {"train", "dev"}


# Runs that go further


def test_a_finished_run_goes_on_for_more_epochs(tmp_path: Path) -> None:
    steps = {"train.steps": None, "train.log_every": 1}
    fit(out=tmp_path / "run", settings=steps | {"train.epochs": 2})
    before = read_log(tmp_path / "run" / "log.jsonl")
    model = fit(out=tmp_path / "run", settings=steps | {"train.epochs": 4}, resume=True)
    after = read_log(tmp_path / "run" / "log.jsonl")
    assert model.report["run"]["epochs"] == 4
    assert after[: len(before)] == before and len(after) == 2 * len(before)
    assert "epochs = 4" in (tmp_path / "run" / "recipe.toml").read_text()


def test_what_a_run_learns_cannot_be_changed_on_the_way(tmp_path: Path) -> None:
    fit(out=tmp_path / "run")
    with pytest.raises(UserError, match=r"model\.hidden: 8 -> 9"):
        fit(out=tmp_path / "run", settings={"model.hidden": 9}, resume=True)


def test_a_run_starts_from_a_trained_model(tmp_path: Path) -> None:
    first = fit(out=tmp_path / "first", settings={"train.steps": 60})
    second = elman.fit(
        "classify",
        train=ROWS[:8],
        out=tmp_path / "second",
        start=tmp_path / "first",
        settings={
            "train.steps": 1,
            "train.lr": 1e-9,
            "data.dev_fraction": 0.25,
            "batch.size": 4,
            "baseline.ngrams": False,
        },
        verbose=False,
    )
    assert second.config.model == first.config.model and second.labels == first.labels
    for name, array in first.weights().items():
        assert np.allclose(array, second.weights()[name], atol=1e-6)
    assert second.vocabulary.to_json() == first.vocabulary.to_json()


def test_a_start_that_does_not_fit_is_one_sentence(tmp_path: Path) -> None:
    fit(out=tmp_path / "first")
    with pytest.raises(
        UserError, match="record 1 of train has the label 'east', which the model to start from does not"
    ):
        fit([("ab", "east"), *ROWS], start=tmp_path / "first")
    with pytest.raises(UserError, match=r"model\.hidden cannot be changed with --start"):
        fit(start=tmp_path / "first", settings={"model.hidden": 9})
    with pytest.raises(UserError, match="holds a model for the task 'classify', and this needs one for 'tag'"):
        elman.fit("tag", train=[(["a"], ["b"])] * 4, start=tmp_path / "first")


# The model that comes back


@pytest.fixture(scope="module")
def model() -> Any:
    return fit(settings={"train.steps": 60})


def test_predict_takes_whatever_can_be_gone_through(model: Any) -> None:
    assert model.predict("abab").label == "north"
    assert [one.label for one in model.predict(text for text in ("abab", "xyxy"))] == ["north", "south"]
    assert model.predict([]) == []


@pytest.mark.parametrize("copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.deepcopy, copy.copy])
def test_models_are_copied_and_pickled(model: Any, copied: Any) -> None:
    for before in (model, model.to_int8()):
        after = copied(before)
        assert after.predict("abab") == before.predict("abab")
        assert (after.int8 is None) == (before.int8 is None)


def test_a_copy_has_weights_of_its_own(model: Any) -> None:
    twin = copy.deepcopy(model)
    before = model.predict("abab")
    for parameter in twin.network.parameters():
        parameter.data.zero_()
    assert model.predict("abab") == before != twin.predict("abab")


def test_a_model_says_what_it_is(model: Any) -> None:
    assert repr(model) == f"TextClassifier(2 classes, 1 x gru 8, characters, {model.parameters:,} parameters)"
    shown = model._repr_html_()
    assert "<b>TextClassifier</b>" in shown and "this model" in shown and "accuracy" in shown


def test_the_backend_is_an_argument(model: Any, tmp_path: Path) -> None:
    model.save(str(tmp_path))
    by_torch, compiled = (elman.load(tmp_path, backend=backend) for backend in ("torch", "compiled"))
    assert by_torch._runtime() is None and compiled._runtime() is not None
    assert by_torch.predict("abab").probability == pytest.approx(compiled.predict("abab").probability, abs=1e-5)
    with pytest.raises(UserError, match="backend is torch"):
        by_torch.runtime()


def test_a_prediction_needs_no_pytorch(model: Any, tmp_path: Path) -> None:
    model.save(tmp_path)
    code = (
        "import elman, sys; print(elman.load(sys.argv[1]).predict('abab').label);"
        "print([name for name in ('torch', 'matplotlib', 'sacrebleu', 'sklearn', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "north\n[]\n"


def test_the_package_shows_what_there_is() -> None:
    assert {"fit", "load", "evaluate", "compare", "nn", "runtime", "tasks"} <= set(dir(elman))
    done = subprocess.run([sys.executable, "-m", "elman", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("elman ")


def test_a_model_to_start_from_is_a_folder() -> None:
    with pytest.raises(UserError, match=r"start is a model itself: save it with model.save\(folder\)"):
        fit(start=fit(settings={"train.steps": 2}))


def test_records_in_memory_are_given_again_to_go_on(tmp_path: Path) -> None:
    fit(out=tmp_path / "run", settings={"train.steps": 2})
    with pytest.raises(UserError, match="records of this run were in memory: give them again"):
        elman.fit("classify", out=tmp_path / "run", resume=True, verbose=False)


def test_a_report_has_the_names_of_files_as_they_were_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = fit(settings={"train.steps": 2})
    (tmp_path / "more.csv").write_text("review,kind\nab,north\nxy,south\n")
    monkeypatch.chdir(tmp_path)
    for name in ("more.csv", "./more.csv", str(tmp_path / "more.csv")):
        report = elman.evaluate(model, name)
        assert report.sets == [name] and 0 <= report[name]["accuracy"] <= 1
    assert "more.csv: the text is column 'review', the label is column 'kind' (guessed)" in report["note"]


def test_columns_in_memory_for_every_task() -> None:
    quick: dict[str, Any] = {"train.steps": 2, "model.hidden": 4, "train.threads": 1}
    words = {"text.kind": "words", "model.embedding": 4}
    given: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "tag": ({"tokens": [["a", "cat"]] * 9, "tags": [["D", "N"]] * 9}, {}),
        "translate": ({"source": ["one two", "two", "one"] * 5, "target": ["1 2", "2", "1"] * 5}, words),
        "lm": ({"text": ["one text", "another"] * 9}, words | {"data.unit": "line"}),
        "series": ({"step": range(60), "x": np.sin(np.arange(60))}, {"data.horizon": 2, "data.context": 4}),
    }
    for task, (columns, settings) in given.items():
        assert elman.fit(task, train=columns, settings=quick | settings, verbose=False).report.sets


def test_the_package_shows_its_doors_and_rooms_alone() -> None:
    assert {"fit", "load", "nn", "tasks"} <= set(dir(elman))
    assert not [name for name in dir(elman) if name.startswith("_") and name != "__version__"]


def test_runs_of_several_threads_are_what_their_seeds_say() -> None:
    def weights(seed: int) -> Any:
        return fit(settings={"train.steps": 6, "train.seed": seed}).weights()

    alone = [weights(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(weights, (1, 2)))
    for one, other in zip(alone, together, strict=True):
        assert all((one[name] == other[name]).all() for name in one)


def test_a_run_leaves_the_callers_generators_alone() -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    fit(settings={"train.steps": 2})
    assert (torch.rand(3) == expected).all()


@pytest.mark.parametrize("task", ["classify", "tag", "translate", "lm", "series"])
def test_nothing_in_memory_is_one_sentence(task: str) -> None:
    with pytest.raises(UserError, match="train is empty: give at least one record"):
        elman.fit(task, train=iter([]), verbose=False)


def test_nothing_to_hold_out_or_to_score_is_one_sentence() -> None:
    model = fit(settings={"train.steps": 2})
    with pytest.raises(UserError, match="dev is empty"):
        elman.fit("classify", train=ROWS, dev=(row for row in ()), verbose=False)
    for nothing in ([], iter([]), {}):
        with pytest.raises(UserError, match="data is empty"):
            elman.evaluate(model, nothing)
    with pytest.raises(UserError, match=r"settings are values by key, .*, not 5"):
        elman.fit("classify", train=ROWS, settings=5, verbose=False)  # type: ignore[arg-type]


@pytest.mark.parametrize("unit", ["stream", "line"])
@pytest.mark.parametrize("wrong", [None, 1.5, {"text": None}])
def test_a_text_of_a_language_model_that_is_none_is_told_of(unit: str, wrong: Any) -> None:
    with pytest.raises(UserError, match="record 2 of train"):
        elman.fit("lm", train=["one", wrong, "two"], settings={"data.unit": unit}, verbose=False)


def test_training_records_in_memory_go_with_files_to_score(tmp_path: Path) -> None:
    """Named files were once passed over without a word, even those that were not there."""
    held_out, test = tmp_path / "dev.csv", tmp_path / "test.csv"
    held_out.write_text("text,label\nab,north\nxy,south\n", encoding="utf-8")
    test.write_text("text,label\nabab,north\nxyxy,south\nxy,south\n", encoding="utf-8")
    report = fit(dev=held_out, test=str(test)).report
    assert report["dev"]["texts"] == 2 and report["test"]["texts"] == 3
    assert fit(dev=ROWS[:4], test=None).report["dev"]["texts"] == 4  # none is as good as not given
    with pytest.raises(UserError, match=r"no such file: .*nowhere\.csv"):
        fit(test=tmp_path / "nowhere.csv")
