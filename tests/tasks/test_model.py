"""What every model does, whatever its task: it is copied, pickled, shown, and answers by the backend asked for."""

import copy
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch

import elman
from elman import kernels
from elman.errors import UserError
from tests.cli.models import train_all

TASKS = ("lm", "classify", "tag", "translate")
TEXT = "the cat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_all(tmp_path_factory.mktemp("models"))


def answer(model: Any) -> str:
    return str(model.generate("the", length=9) if model.task == "lm" else model.predict(TEXT))


@pytest.mark.parametrize("task", TASKS)
def test_a_copy_answers_alike(folder: Path, task: str) -> None:
    model = elman.load(folder / task)
    copies = copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))
    for twin in copies:
        assert answer(twin) == answer(model)
    network = copies[1].network
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert any(bool(parameter.any()) for parameter in model.network.parameters())  # the copy's own were changed


@pytest.mark.parametrize("task", TASKS)
def test_it_says_what_it_is(folder: Path, task: str) -> None:
    model = elman.load(folder / task)
    assert repr(model).startswith(f"{type(model).__name__}(") and f"{model.parameters:,} parameters" in repr(model)
    assert model._repr_html_().startswith(f"<b>{type(model).__name__}</b>")


@pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
@pytest.mark.parametrize("task", TASKS)
def test_the_backend_is_the_one_that_is_asked_for(folder: Path, task: str) -> None:
    compiled, by_pytorch = (elman.load(folder / task, backend=backend) for backend in ("compiled", "torch"))
    assert compiled.runtime() is not None
    with pytest.raises(UserError, match="does not run this model: backend is torch"):
        by_pytorch.runtime()
    if task in ("lm", "tag"):  # the others have probabilities, which differ in the last digit
        assert answer(compiled) == answer(by_pytorch)
    by_pytorch.backend = "auto"
    assert by_pytorch.runtime() is not None


@pytest.mark.parametrize("task", TASKS)
def test_what_only_pytorch_runs_is_refused_where_the_compiled_is_asked_for(
    folder: Path, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernels, "native", None)
    answer(elman.load(folder / task))
    model = elman.load(folder / task, backend="compiled")
    with pytest.raises(UserError, match=r"does not run this model: .*not installed"):
        answer(model)


def test_a_network_that_an_answer_made_can_still_be_trained(folder: Path) -> None:
    model = elman.load(folder / "tag", backend="torch")
    model.predict(TEXT)
    model.network.scores.weight.sum().backward()
    assert model.network.scores.weight.grad is not None


def test_a_generator_is_taken_and_nothing_gives_nothing(folder: Path) -> None:
    for task in TASKS[1:]:
        model = elman.load(folder / task)
        assert [str(one) for one in model.predict(text for text in (TEXT, "a cat"))] == [
            str(one) for one in model.predict([TEXT, "a cat"])
        ]
        assert model.predict([]) == []


def test_a_backend_that_there_is_not(folder: Path) -> None:
    with pytest.raises(UserError, match="backend is auto, compiled or torch, not 'foo'"):
        elman.load(folder / "classify", backend="foo")  # type: ignore[call-overload]


@pytest.mark.parametrize("task", ["classify", "tag", "translate"])
def test_what_is_no_text_is_refused_in_a_sentence(folder: Path, task: str) -> None:
    pandas, model = pytest.importorskip("pandas"), elman.load(folder / task)
    table = {"text": ["the cat"], "label": ["x"]}
    for given in (table, pandas.DataFrame(table)):
        with pytest.raises(UserError, match=f"a {type(given).__name__} is no text and no list of texts: give such"):
            model.predict(given)
    assert len(model.predict(pandas.DataFrame(table)["text"])) == 1
    with pytest.raises(UserError, match="text 1 of 1 is empty"):
        model.predict([" "])
    if task != "tag":  # which may have tokens in its place
        with pytest.raises(UserError, match="None is no text and no list of texts"):
            model.predict(None)


def test_a_language_model_predicts_what_comes_next(folder: Path) -> None:
    found = elman.load(folder / "lm").predict("the cat", top=3)
    assert len(found) == 3 and found[0].probability >= found[1].probability >= found[2].probability > 0


@pytest.mark.parametrize("task", TASKS)
def test_a_loaded_model_has_its_report(folder: Path, task: str, tmp_path: Path) -> None:
    model = elman.load(folder / task)
    assert model.report is not None and "loss" in model.report["dev"] and "<table>" in model._repr_html_()
    shutil.copytree(folder / task, tmp_path / "model")
    for damaged in ("{", "[1]"):
        (tmp_path / "model" / "metrics.json").write_text(damaged)
        assert elman.load(tmp_path / "model").report is None
    (tmp_path / "model" / "metrics.json").unlink()
    assert elman.load(tmp_path / "model").report is None


@pytest.mark.parametrize("task", TASKS[1:])
def test_threads_that_ask_first_have_the_same_network(folder: Path, task: str) -> None:
    model, start = elman.load(folder / task, backend="torch"), threading.Barrier(8)

    def network(_: int) -> Any:
        start.wait()
        return model.network

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(id, pool.map(network, range(8))))) == 1
