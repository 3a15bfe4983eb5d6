"""Comparisons: every combination once, what is done stays done, a table and a picture."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elman
from elman.draw.panels import Bars, Lines
from elman.errors import UserError
from elman.tasks import TASKS
from elman.tasks import compare as comparing
from elman.tasks.compare import compare, folder_name, read_vary
from elman.tasks.report import Report
from tests.tasks.classify_runs import SMALL, write_table
from tests.tasks.runs import SMALL as SMALL_LM
from tests.tasks.runs import prose
from tests.train.toy import quiet


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    table = write_table(tmp_path / "n.csv")
    path = tmp_path / "small.toml"
    path.write_text(
        'task = "classify"\n'
        '[compare]\nvary = ["model.hidden=4,8"]\nseeds = 1\n'
        f'[data]\ntrain = ["{table}"]\n[text]\nkind = "characters"\n[train]\nthreads = 1\n'
    )
    return path


def run(recipe: Path, out: Path, **options: object) -> dict[str, object]:
    small = [*SMALL, "train.steps=4"]
    return compare(recipe, out=out, settings=small, reporter=quiet(), **options)  # type: ignore[arg-type]


def test_every_combination_with_every_seed(recipe: Path, tmp_path: Path) -> None:
    vary = {"model.cell": ["rnn", "gru"], "model.hidden": [4, 8]}
    found = run(recipe, tmp_path / "out", vary=vary, seeds=2)
    folders = sorted(path.name for path in (tmp_path / "out" / "runs").iterdir())
    assert len(folders) == 8
    assert folders[0] == "cell=gru,hidden=4,seed=1"
    table = json.loads((tmp_path / "out" / "table.json").read_text())
    assert table == found
    assert [entry["settings"]["model.cell"] for entry in table["runs"]] == ["rnn", "rnn", "gru", "gru"]
    first = table["runs"][0]
    reports = [
        json.loads((tmp_path / "out" / "runs" / f"cell=rnn,hidden=4,seed={seed}" / "metrics.json").read_text())
        for seed in (1, 2)
    ]
    assert first["scores"] == [report["dev"]["accuracy"] for report in reports]
    assert first["metrics"]["macro_f1"]["mean"] == pytest.approx(np.mean([r["dev"]["macro_f1"] for r in reports]))
    assert first["parameters"] == reports[0]["parameters"]
    assert (tmp_path / "out" / "plot.png").read_bytes().startswith(b"\x89PNG")
    assert "held-out accuracy" in (tmp_path / "out" / "plot.html").read_text()
    lines = (tmp_path / "out" / "table.md").read_text().splitlines()
    score, *others = ("held-out accuracy (mean ± spread)", "macro F1", "weighted F1", "accuracy on unseen")
    assert lines[0] == f"| {' | '.join(['model.cell', 'model.hidden', score, *others, 'parameters', 'time'])} |"
    (best,) = (line for line in lines if "**" in line)
    assert best.split(" | ")[2].startswith("**")


def test_the_recipe_says_what_to_compare_and_finished_runs_are_kept(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(recipe, tmp_path / "out")
    weights = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("runs/*/model.safetensors")}
    assert [path.parent.name for path in sorted(weights)] == ["hidden=4,seed=1", "hidden=8,seed=1"]
    said: list[str] = []
    found = run(recipe, tmp_path / "out", vary=["model.hidden=4,8,16"], show=said.append)
    assert len(found["runs"]) == 3  # type: ignore[arg-type]
    assert len(said) == 3
    assert all(path.stat().st_mtime_ns == before for path, before in weights.items())


def test_an_interrupted_comparison_goes_on(recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report, calls = comparing._report, []

    def killed(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return report(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(comparing, "_report", killed)
    with pytest.raises(KeyboardInterrupt):
        run(recipe, tmp_path / "out")
    assert not (tmp_path / "out" / "table.json").exists()
    found = run(recipe, tmp_path / "out")
    assert len(found["runs"]) == 2  # type: ignore[arg-type]


def test_any_task(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text(prose())
    (tmp_path / "lm.toml").write_text(f'task = "lm"\n[data]\ntrain = ["{tmp_path / "t.txt"}"]\n')
    settings = [*SMALL_LM, "train.steps=3"]
    vary = {"model.cell": ["rnn", "gru"]}
    found = elman.compare(
        tmp_path / "lm.toml", out=tmp_path / "o", vary=vary, seeds=1, settings=settings, reporter=quiet()
    )
    assert found["score"] == "held-out perplexity"
    means = [entry["mean"] for entry in found["runs"]]
    assert means[comparing.best(found)] == min(means)
    assert (tmp_path / "o" / "plot.png").exists()  # two words on the axis, no numbers


def test_the_headline_is_the_test_set() -> None:
    def headline(task: str, value: dict[str, object]) -> tuple[str, float]:
        found = Report(TASKS[task], value).headline()
        return found.name, found.value

    assert headline("lm", {"dev": {"perplexity": 9.0, "loss": 2}}) == ("held-out perplexity", 9.0)
    assert headline("tag", {"test": {"accuracy": 0.5, "spans": {"f1": 0.25}}}) == ("test span F1", 0.25)
    assert headline("translate", {"test": {"bleu": 30.5, "perplexity": 9.0}}) == ("test BLEU", 30.5)
    crossed = {"cross_validation": {"accuracy": {"mean": 0.75}}, "dev": {}}
    assert headline("classify", crossed) == ("cross-validated accuracy", 0.75)


def test_values_as_they_are_written() -> None:
    assert read_vary(["model.cell=rnn, gru"]) == {"model.cell": ["rnn", "gru"]}
    assert read_vary({"model.locked": [True, False]}) == {"model.locked": [True, False]}
    assert read_vary({"model.hidden": 64, "model.cell": "gru"}) == {"model.hidden": [64], "model.cell": ["gru"]}
    assert folder_name({"a.size": "1", "b.size": "2"}) == "a.size=1,b.size=2"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"vary": ["model.hidden"]}, "'model.hidden' is nothing to compare"),
        ({"vary": ["model.hiden=1,2"]}, "did you mean 'model.hidden'"),
        ({"vary": ["model.hidden=4,-1"]}, "model.hidden"),
        ({"seeds": 0}, "the number of seeds should be at least 1"),
    ],
)
def test_mistakes_show_before_anything_is_trained(
    recipe: Path, tmp_path: Path, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        run(recipe, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_nothing_to_vary_and_a_folder_of_other_things(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no comparison"):
        run(recipe, tmp_path)
    recipe.write_text(recipe.read_text().replace('vary = ["model.hidden=4,8"]\n', ""))
    with pytest.raises(UserError, match="nothing to compare: give --vary"):
        run(recipe, tmp_path / "out")


@pytest.mark.parametrize(
    "options", [{"vary": ["train.seed=1,2"]}, {"vary": {"train.seed": [1, 2]}}, {"settings": {"train": {"seed": 3}}}]
)
def test_seeds_are_said_once(recipe: Path, tmp_path: Path, options: dict[str, object]) -> None:
    with pytest.raises(UserError, match=r"leave train\.seed out, and give --seeds"):
        compare(recipe, out=tmp_path / "out", seeds=1, **options)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_values_of_every_kind_are_varied(recipe: Path, tmp_path: Path) -> None:
    vary = {"train.betas": [(0.8, 0.9), (0.9, 0.99)], "model.hidden": np.array([4]), "train.clip_norm": [None]}
    found = run(recipe, tmp_path / "out", vary=vary, seeds=1)
    assert [entry["settings"]["train.betas"] for entry in found["runs"]] == [[0.8, 0.9], [0.9, 0.99]]  # type: ignore[index,attr-defined]
    assert "| [0.8, 0.9] | 4 | none |" in (tmp_path / "out" / "table.md").read_text()


def test_force_starts_over_its_own_runs_and_leaves_all_else(recipe: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(recipe, out)
    other = out / "runs" / "mine"
    (other / "checkpoint").mkdir(parents=True)
    (other / "thesis.txt").write_text("precious")
    (out / "runs" / "hidden=4,seed=1" / "notes.txt").write_text("mine")
    before = (out / "runs" / "hidden=4,seed=1" / "log.jsonl").stat().st_mtime_ns
    run(recipe, out, force=True)
    assert (out / "runs" / "hidden=4,seed=1" / "log.jsonl").stat().st_mtime_ns > before
    assert (other / "thesis.txt").read_text() == "precious"
    assert (out / "runs" / "hidden=4,seed=1" / "notes.txt").read_text() == "mine"


def test_a_folder_of_other_runs_is_no_comparison(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "project" / "runs" / "mine").mkdir(parents=True)
    for force in (False, True):
        with pytest.raises(UserError, match="holds no comparison of Elman's"):
            run(recipe, tmp_path / "project", force=force)
    assert (tmp_path / "project" / "runs" / "mine").is_dir()


def test_every_combination_has_a_folder_of_its_own() -> None:
    names = [folder_name({"data.train": value, "seed": 1}) for value in ("a/b.txt", "a_b.txt", ["a b.txt"], "x" * 400)]
    assert len(set(names)) == len(names)
    assert all(len(name) < 200 for name in names)


def test_a_key_that_is_varied_twice_has_all_its_values() -> None:
    assert read_vary(["model.hidden=4", "model.hidden=8,4"]) == {"model.hidden": [4, 8]}


def test_variants_differ_by_several_keys_and_the_curve_is_over_the_labels(recipe: Path, tmp_path: Path) -> None:
    variants = ["small", "larger: model.hidden=8 model.cell=rnn"]
    vary = {"data.labels": [10, 20, 0]}
    found = run(recipe, tmp_path / "out", vary=vary, variants=variants, seeds=2)
    assert found["varied"] == ["variant", "data.labels"]
    runs: list[dict[str, Any]] = found["runs"]  # type: ignore[assignment]
    assert [one["records"] for one in runs] == [10, 20, 108] * 2
    folder = tmp_path / "out" / "runs" / "variant=larger,labels=20,seed=2"
    assert elman.load(folder).config.model.cell == "rnn"
    assert "| larger | all 108 |" in (tmp_path / "out" / "table.md").read_text()
    panel = comparing.chart(found)
    assert isinstance(panel, Lines) and panel.x == "data.labels" and panel.log_x
    assert [(line.name, line.x) for line in panel.lines] == [(name, [10, 20, 108]) for name in ("small", "larger")]
    assert panel.lines[0].y[0] == pytest.approx(100 * runs[0]["mean"])
    assert panel.lines[0].high[0] == pytest.approx(100 * (runs[0]["mean"] + runs[0]["spread"]))


def test_without_numbers_there_are_bars() -> None:
    runs = [
        {"settings": {"model.cell": cell}, "mean": mean, "spread": 0.1, "records": 9}
        for cell, mean in {"rnn": 0.5, "gru": 0.7}.items()
    ]
    about = {"task": "classify", "score": "test accuracy", "metric": "accuracy", "seeds": 3, "varied": ["model.cell"]}
    panel = comparing.chart({**about, "runs": runs})
    assert isinstance(panel, Bars)
    assert (panel.names, panel.values) == (["rnn", "gru"], [50.0, 70.0])


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"variants": ["model.hidden=4"]}, "is no variant: write  NAME: section.key=value"),
        ({"variants": ["a", "a: model.hidden=4"]}, "there are two variants 'a'"),
        ({"variants": ["a: model.hiden=4"]}, "did you mean 'model.hidden'"),
        ({"variants": ["a: hidden"]}, "'hidden' is no setting"),
        ({"variants": {"a": {"model.hidden": 4}}, "vary": ["model.hidden=4,8"]}, "the variant 'a' says it too"),
        ({"variants": {"a": {"train.seed": 4}}}, r"leave train\.seed out"),
    ],
)
def test_variants_that_say_nothing_or_too_much(
    recipe: Path, tmp_path: Path, options: dict[str, object], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        run(recipe, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_a_recipe_says_what_it_is_for(recipe: Path, tmp_path: Path) -> None:
    recipe.write_text(recipe.read_text().replace('task = "classify"', ""))
    with pytest.raises(UserError, match=r'small.toml does not say what it is a recipe for: .* task = "classify"'):
        run(recipe, tmp_path / "out")
