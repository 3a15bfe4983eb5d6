"""Reports: sets x systems x metrics as tables, a headline, a summary of folds, a card."""

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from elman.errors import UserError
from elman.tasks import TASKS
from elman.tasks.classify import ClassifyRecipe
from elman.tasks.folds import summary
from elman.tasks.report import Report, card, write_report
from tests.tasks import classify_runs

SCORES = {"loss": 0.4, "accuracy": 0.8, "macro_f1": 0.75, "weighted_f1": 0.7, "texts": 1200}
RUN = {"seconds": 61.0, "steps": 1500, "epochs": 3.25, "texts_per_second": 99.9, "texts": 4000}


def report(task: str = "classify", **value: Any) -> Report:
    return Report(TASKS[task], value)


def rivals(**scores: dict[str, float]) -> dict[str, Any]:
    return {name.replace("_", " "): {"test": each} for name, each in scores.items()}


def test_a_table_has_the_model_first_and_then_the_best_baseline() -> None:
    baselines = rivals(most_frequent={"accuracy": 0.2, "macro_f1": 0.1}, n_grams={"accuracy": 0.7})
    columns, rows = report(test=SCORES, baselines=baselines).table("test")
    assert columns == ["accuracy", "macro F1", "weighted F1"]  # no column that nobody has a score for
    assert rows == [
        ["this model", "80.00 %", "75.00 %", "70.00 %"],
        ["n grams", "70.00 %", "", ""],
        ["most frequent", "20.00 %", "10.00 %", ""],
    ]


def test_where_lower_is_better_the_lowest_is_the_best_baseline() -> None:
    baselines = rivals(unigram={"perplexity": 40.0}, trigram={"perplexity": 12.5})
    _, rows = report("lm", test={"loss": 2.0, "perplexity": 7.389}, baselines=baselines).table("test")
    assert [row[0] for row in rows] == ["this model", "trigram", "unigram"]
    assert rows[0][1:] == ["2.0000", "7.39"]


def test_sets_are_what_has_a_loss_and_baselines_need_not_have_all_of_them() -> None:
    found = report(dev=SCORES, test=SCORES, baselines=rivals(guess={"accuracy": 0.5}), run=RUN, parameters=3)
    assert found.sets == ["dev", "test"]
    assert list(found.systems("dev")) == ["this model"]
    assert list(found.systems("test")) == ["this model", "guess"]
    assert report(test=SCORES).table("test")[1] == [["this model", "80.00 %", "75.00 %", "70.00 %"]]


def test_titles_say_how_large_a_set_is() -> None:
    found = Report(TASKS["classify"], {"test": SCORES, "dev": {"loss": 1.0}, "new.csv": SCORES})
    assert found.title("test") == "test (1,200 texts)"
    assert found.title("dev") == "held out"
    assert found.title("new.csv") == "new.csv (1,200 texts)"


def test_the_headline_is_the_folds_then_the_test_set_then_what_was_held_out() -> None:
    crossed = {"accuracy": {"mean": 0.7, "spread": 0.1}}
    whole = {"dev": SCORES | {"accuracy": 0.6}, "test": SCORES, "cross_validation": crossed}
    names = ("cross-validated accuracy", "test accuracy", "held-out accuracy")
    for name, value, gone in zip(names, (0.7, 0.8, 0.6), ("cross_validation", "test", "dev"), strict=True):
        headline = report(**whole).headline()
        assert (headline.name, headline.value) == (name, value)
        del whole[gone]
    with pytest.raises(UserError, match=r"give the recipe data\.test, or data\.dev_fraction above 0"):
        report(**whole).headline()


def test_folds_are_summed_up_by_what_runs_are_compared_by() -> None:
    each = [
        {"test": {"accuracy": a, "spans": {"f1": f}}, "run": {"seconds": 2.0}, "baselines": rivals(words=b)}
        for a, f, b in (
            (0.9, 0.5, {"accuracy": 0.8, "spans": {"f1": 0.25}}),
            (0.7, 0.3, {"accuracy": 0.6, "spans": {"f1": 0.35}}),
        )
    ]
    found = summary(TASKS["tag"], each)
    assert (found["folds"], found["seconds"]) == (2, 4.0)
    assert found["accuracy"]["mean"] == pytest.approx(0.8)
    assert found["accuracy"]["spread"] == pytest.approx(0.2 / 2**0.5)
    assert found["spans.f1"]["each"] == [0.5, 0.3]
    assert found["baselines"]["words"]["mean"] == pytest.approx(0.3)  # of the spans too, as the headline is
    shown = report("tag", cross_validation=found).crossed().splitlines()
    assert shown == ["2-fold cross-validation: span F1 40.00 ± 14.14 %", "  words 30.00 ± 7.07 %"]


def test_a_card_has_the_facts_the_tables_and_what_to_type(tmp_path: Path) -> None:
    recipe = ClassifyRecipe.model_validate({"data": {"train": ["/home/me/names.csv"]}})
    facts = {"parameters": 12345, "classes": 3, "several": False, "run": RUN, "platform": {"threads": 2}}
    crossed = {"folds": 3, "accuracy": {"mean": 0.8, "spread": 0.02}, "baselines": {}}
    found = report(baselines=rivals(guess={"accuracy": 0.5}), cross_validation=crossed, **facts)
    text = card(tmp_path / "my model", recipe, found, {"confusion.png": "what was taken for what"})
    assert text.startswith("# my model\n\nA classifier of texts into 3 classes, ")
    assert "12,345 parameters" in text
    assert "Trained on `names.csv` (4,000 texts) for 3.2 epochs (1,500 updates) in " in text
    assert "at 100 texts a second, 2 threads" in text
    assert "## Cross-validation\n\n```\n3-fold cross-validation: accuracy 80.00 ± 2.00 %\n```\n" in text
    assert "![what was taken for what](confusion.png)" in text
    assert "elman predict 'my model' FILE" in text and 'elman.load("my model")' in text
    assert "/home/me" not in text and "## Scores" not in text  # nothing was scored


def test_what_is_written_is_what_the_report_holds(tmp_path: Path) -> None:
    facts = {"parameters": 1, "classes": 2, "several": False, "run": RUN}
    found = report(**facts)
    write_report(tmp_path, ClassifyRecipe(), found)
    assert json.loads((tmp_path / "metrics.json").read_text()) == found
    assert found["platform"].keys() == {"elman", "torch", "machine", "threads"}
    assert "Trained on data in memory" in (tmp_path / "README.md").read_text()


def test_a_report_is_copied_and_pickled_with_its_task() -> None:
    found = report(test=SCORES)
    for other in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert other == found and other.table("test") == found.table("test")


def test_a_model_comes_with_its_report(tmp_path: Path) -> None:
    import elman

    table, settings = classify_runs.write_table(tmp_path / "n.csv"), [*classify_runs.SMALL, "train.steps=3"]
    model = elman.fit("classify", out=tmp_path / "run", train=table, settings=settings, verbose=False)
    assert model.report == json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert model.report.headline().value == model.report["dev"]["accuracy"]
    assert "<caption>held out (12 texts)</caption>" in model._repr_html_()
    twin = pickle.loads(pickle.dumps(model))
    assert twin.report == model.report and twin.predict("ola") == model.predict("ola")
