"""The example of docs/architecture.md: a task in one file has all that Elman's own have."""

import importlib.util
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import elman
from elman.errors import Interrupted, UserError
from elman.files import write_text
from elman.tasks import TASKS, find_task
from elman.tasks.export import export
from tests.cli.invoke import invoke

EXAMPLE = Path(__file__).parents[1] / "docs" / "examples" / "depth.py"
SMALL = {"model.hidden": 16, "train.steps": 60, "train.lr": 0.02, "train.threads": 1, "train.evaluate_every": 20}


@pytest.fixture(scope="module", autouse=True)
def depth() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("depth", EXAMPLE)
    assert spec is not None and spec.loader is not None
    module = sys.modules["depth"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del TASKS["depth"], sys.modules["depth"]


def _brackets(count: int, seed: int) -> list[tuple[str, str]]:
    generator = random.Random(seed)
    found = []
    for _ in range(count):
        text, depth, deepest = "", 0, 0
        for _ in range(generator.randint(1, 8)):
            while depth and generator.random() < 0.5:
                text, depth = text + ")", depth - 1
            text, depth = text + "(", depth + 1
            deepest = max(deepest, depth)
        found.append((text + ")" * depth, str(deepest)))
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("brackets")
    for name, count, seed in (("train.csv", 300, 1), ("more.csv", 40, 2)):
        rows = "".join(f"{text},{depth}\n" for text, depth in _brackets(count, seed))
        (folder / name).write_text(f"text,depth\n{rows}")
    return folder


@pytest.fixture(scope="module")
def run(files: Path) -> Path:
    settings = [word for key, value in SMALL.items() for word in ("-s", f"{key}={value}")]
    code, out, error = invoke(
        "train", "depth", "--train", str(files / "train.csv"), "--out", str(files / "run"), *settings
    )
    assert code == 0, error
    assert "mean error" in out and "always the median" in out
    assert "mean_error" in (files / "run" / "log.jsonl").read_text()
    return files / "run"


def test_it_learns_and_is_told_of_on_its_card(run: Path) -> None:
    scores = json.loads((run / "metrics.json").read_text())
    assert scores["dev"]["mean_error"] < scores["baselines"]["always the median"]["dev"]["mean_error"]
    card = (run / "README.md").read_text()
    assert "depth of brackets, 1 x lstm 16" in card and "| always the median |" in card


def test_it_is_trained_on_data_in_memory() -> None:
    model = elman.fit("depth", train=_brackets(60, seed=3), settings={**SMALL, "train.steps": 4}, verbose=False)
    assert set(model.report["dev"]) == {"loss", "texts", "mean_error", "exact"}


def test_it_goes_on_to_the_same_weights_as_one_that_never_stopped(files: Path, run: Path) -> None:
    halted, train = files / "halted", files / "train.csv"
    elman.fit(
        "depth",
        train=train,
        out=halted,
        settings={**SMALL, "train.schedule": "constant", "train.steps": 20},
        verbose=False,
    )
    elman.fit("depth", out=halted, resume=True, settings={"train.steps": 40}, verbose=False)
    straight = files / "straight"
    elman.fit(
        "depth",
        train=train,
        out=straight,
        settings={**SMALL, "train.schedule": "constant", "train.steps": 40},
        verbose=False,
    )
    assert (halted / "model.safetensors").read_bytes() == (straight / "model.safetensors").read_bytes()


def test_a_new_run_starts_from_it(files: Path, run: Path) -> None:
    model = elman.fit(
        "depth", train=files / "train.csv", start=run, settings={"train.steps": 1, "train.lr": 1e-6}, verbose=False
    )
    assert model.predict("(())") == pytest.approx(elman.load(run).predict("(())"), abs=0.01)


def test_it_is_scored_beside_its_baseline(files: Path, run: Path) -> None:
    report = elman.evaluate(run, files / "more.csv")
    (name,) = report.sets
    assert report[name]["texts"] == 40
    assert report[name]["mean_error"] < report["baselines"]["always the median"][name]["mean_error"]


def test_it_predicts_compiled_and_by_pytorch_texts_files_and_json(files: Path, run: Path) -> None:
    texts = ["()", "((()))", "(()())"]
    model = elman.load(run)
    assert model.refusal() is None
    assert model.predict(texts) == pytest.approx(elman.load(run, backend="torch").predict(texts), abs=1e-3)
    code, out, _ = invoke("predict", str(run), *texts)
    assert (code, out.split()) == (0, [f"{value:.2f}" for value in model.predict(texts)])
    code, out, _ = invoke("predict", str(run), "--json", "--format", "jsonl", stdin='{"id": 7, "text": "()"}\n')
    assert code == 0 and {"id": 7, "line": 1, "text": "()"}.items() <= json.loads(out).items()
    assert invoke("predict", str(run), "no brackets")[0] == 2


def test_its_runs_are_compared(files: Path) -> None:
    recipe = files / "depth.toml"
    recipe.write_text(f'task = "depth"\n[data]\ntrain = "{files / "train.csv"}"\n')
    small = {**SMALL, "train.steps": 5}
    found = elman.compare(recipe, out=files / "cells", vary={"model.cell": ["rnn", "gru"]}, seeds=1, settings=small)
    assert found["score"] == "held-out mean error" and len(found["runs"]) == 2
    table = (files / "cells" / "table.md").read_text()
    assert table.startswith("| model.cell | held-out mean error (mean ± spread) | exact | parameters | time |")


def test_it_is_exported_in_int8(files: Path, run: Path) -> None:
    small = elman.load(export(run, files / "int8", int8=True))
    assert small.int8 is not None
    assert small.predict("(())") == pytest.approx(elman.load(run).predict("(())"), abs=0.2)
    answers = small.predict([text for text, _ in _brackets(40, seed=2)])
    errors = [abs(answer - int(right)) for answer, (_, right) in zip(answers, _brackets(40, seed=2), strict=True)]
    (name,) = (report := elman.evaluate(small, files / "more.csv")).sets
    assert report[name]["mean_error"] == pytest.approx(sum(errors) / len(errors), abs=1e-4)


def test_help_and_mistakes_are_those_of_every_task(files: Path) -> None:
    code, out, _ = invoke("train", "--help")
    assert code == 0 and "how deep brackets nest" in " ".join(out.replace("│", " ").split())
    code, _, error = invoke("train", "depth", "--train", str(files / "train.csv"), "--out", "x", "-s", "model.hiden=3")
    assert code == 2 and "did you mean 'model.hidden'?" in " ".join(error.split())


def test_a_text_without_brackets_is_named_by_its_place(files: Path) -> None:
    (files / "none.csv").write_text("text,depth\n(),1\nnone,0\n(()),2\n")
    with pytest.raises(UserError, match=r"there is no bracket in \S*none\.csv:3"):
        elman.fit("depth", train=files / "none.csv", settings=SMALL, verbose=False)


def test_a_vocabulary_is_read_back_with_what_was_found_in_the_data(
    depth: ModuleType, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FittedConfig(depth.DepthConfig):  # type: ignore[name-defined,misc]
        deepest: int

    class Vocabulary:
        def __init__(self, ids: dict[str, int], deepest: int) -> None:
            self.ids, self.deepest = ids, deepest

        def to_json(self) -> str:
            return json.dumps(self.ids)

        def save(self, path: Path) -> None:
            write_text(path, self.to_json())

    read: list[int] = []

    class FittedModel(depth.DepthModel):  # type: ignore[name-defined,misc]
        task = "fitted"
        Config = FittedConfig

        @classmethod
        def load_vocabulary(cls, folder: Path, config: Any) -> Vocabulary:
            read.append(config.deepest)
            return Vocabulary(json.loads((folder / "tokenizer.json").read_text()), config.deepest)

    class Fitted(depth.Depth):  # type: ignore[name-defined,misc]
        name = "fitted"
        Model = FittedModel

        def settle(self, parts: Any, recipe: Any, say: Any) -> Any:
            data = super().settle(parts, recipe, say)
            data.facts["deepest"] = int(depth.depths(data.train).max())
            return data

        def fit_vocabulary(self, recipe: Any, data: Any) -> Vocabulary:
            return Vocabulary(depth.IDS, data.facts["deepest"])

    monkeypatch.setitem(TASKS, "fitted", Fitted())
    settings = {**SMALL, "train.evaluate_every": 4, "train.steps": 8, "train.checkpoint_seconds": 0}

    def interrupt(record: dict[str, Any]) -> None:
        raise Interrupted("here")

    given: dict[str, Any] = {"train": files / "train.csv", "out": files / "fitted", "settings": settings}
    with pytest.raises(Interrupted):  # after a checkpoint, and before the first model is saved
        elman.fit("fitted", callbacks=[interrupt], **{**given, "settings": {**settings, "train.log_every": 3}})
    assert not (files / "fitted" / "model.safetensors").exists() and not read
    model = elman.fit("fitted", out=files / "fitted", resume=True, verbose=False)
    assert model.vocabulary.deepest == model.config.deepest > 1
    assert set(read) == {model.config.deepest}


def test_scores_without_a_loss_are_a_mistake_of_the_task(
    depth: ModuleType, files: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depth.Depth, "score", lambda *arguments: {"mean_error": 1.0})
    with pytest.raises(TypeError, match=r"Depth\.score gives no 'loss'"):
        elman.evaluate(run, files / "more.csv")


def test_where_it_is_not_registered_the_file_that_does_so_is_asked_for(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert find_task("depth").name == "depth"
    monkeypatch.delitem(TASKS, "depth")
    with pytest.raises(UserError, match=r"the task 'depth', which this Elman does not know .*: .* python FILE predict"):
        elman.load(run)
