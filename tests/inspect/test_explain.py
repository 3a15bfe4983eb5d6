"""`explain` whatever the view: what it takes, what it refuses, and that it leaves a model as it was."""

import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch

import elman
import elman.lab
from elman.errors import UserError
from elman.inspect import explain
from elman.records.treebank import TreeReader
from tests.tasks.tree_runs import SMALL, write_trees

KEPT = Path(__file__).parents[1] / "tasks" / "kept"


@pytest.mark.parametrize("texts", [None, 5, {"a": 1}, pd.DataFrame({"text": ["ulf"]}), [], [None], [" "]])
def test_what_is_no_text_is_refused(texts: Any) -> None:
    with pytest.raises(UserError):
        explain(elman.load(KEPT / "classify"), texts)


def test_what_is_no_model_and_no_view_is_refused() -> None:
    with pytest.raises(UserError, match=r"elman\.load"):
        explain("runs/reviews", "ulf")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="called by its name"):
        explain(elman.load(KEPT / "classify"), "ulf", view=5)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="against"):
        explain(elman.load(KEPT / "lm"), "the cat", "ranks", against="")


def test_a_tagger_takes_ready_tokens() -> None:
    model = elman.load(KEPT / "tag")
    tokens = ["don't", "U.S.A."]
    found = explain(model, [tokens], "marginals")
    assert list(found.data[0].tokens) == tokens and found.to_dict()["texts"][0]["text"] == "don't U.S.A."
    assert list(explain(model, "don't", "marginals").data[0].tokens) != ["don't"]


def test_threads_leave_a_model_that_is_trained_as_it_is() -> None:
    model = elman.load(KEPT / "classify")
    right = explain(model, "ulf", "saliency", method="gradient").to_dict()
    model.network.train()
    same: list[bool] = []

    def work() -> None:
        same.extend(explain(model, "ulf", "saliency", method="gradient").to_dict() == right for _ in range(5))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert same == [True] * 20 and model.network.training
    translator = elman.load(KEPT / "translate")
    translator.network.train()
    explain(translator, "der hund sieht ein vogel", "what-if", prefix="the")
    assert translator.network.training


def test_an_experiment_leaves_the_callers_random_numbers_alone() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    elman.lab.run("memory", cells=("gru",), distances=(2,), seeds=1, hidden=4, updates=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_records_are_taken_where_a_view_knows_them(tmp_path: Path) -> None:
    path = write_trees(tmp_path / "trees.txt", 20)
    model = elman.fit("tree", train=path, settings=[*SMALL, "train.steps=2"], verbose=False)
    (tree,) = TreeReader().objects(["(3 (3 (2 a) (3 fine)) (2 film))"])
    found = explain(model, ["film", tree])
    assert found.texts == ["film", "a fine film"] and found.data[1].nodes[2].text == "a fine"
    with pytest.raises(UserError, match="record 2 of the texts looks like a tree"):
        explain(model, ["film", "(3 (2 a) (3 fine)"])
    with pytest.raises(UserError, match="text 1 of 1 is a LabelledTree: give it as a str"):
        explain(elman.load(KEPT / "classify"), [tree])
