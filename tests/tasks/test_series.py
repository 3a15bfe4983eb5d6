"""Forecasters: learnt, resumed, scored, asked in every way, from any table."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import elman
from elman.errors import UserError
from elman.records.series import Series
from elman.tasks.export import export
from elman.tasks.recipes import load_recipe
from elman.tasks.series import Forecaster, SeriesRecipe
from tests.cli.invoke import invoke
from tests.tasks.forecasts import SMALL, keyed, wave, write
from tests.tasks.resuming import assert_resumes_exactly
from tests.tasks.runs import task_trainer


def run(train: Any, *settings: str, out: Path | None = None) -> Forecaster:
    """Train for a second."""
    return elman.fit("series", train=train, out=out, settings=[*SMALL, *settings], verbose=False)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one column."""
    place = tmp_path_factory.mktemp("series")
    run(write(place / "wave.csv"), "train.steps=200", "train.evaluate_every=100", out=place / "model")
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> Forecaster:
    return elman.load(folder / "model")  # type: ignore[no-any-return]


def test_it_learns_what_no_baseline_knows_and_says_so(folder: Path, model: Forecaster) -> None:
    report = json.loads((folder / "model" / "metrics.json").read_text())
    assert set(report["baselines"]) == {"last value", "seasonal value", "linear autoregression"}
    for split in ("dev", "test"):
        assert report[split]["mase"] < report["baselines"]["seasonal value"][split]["mase"]
        assert 0 <= report[split]["coverage"] <= 1
    assert report["test"]["mase"] < 1
    assert (folder / "model" / "forecast.png").read_bytes().startswith(b"\x89PNG")
    assert "4 steps ahead" in repr(model)


def test_the_card_tells_the_scores_and_its_python_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    card = (folder / "model" / "README.md").read_text()
    assert "Trained on `wave.csv` (1 series) for " in card
    assert "| linear autoregression |" in card and "![forecast, interval and truth](forecast.png)" in card
    monkeypatch.chdir(folder)
    example = re.search(r"```python\n(.*?)```", card, flags=re.DOTALL)
    assert example is not None
    exec(example[1], {})


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    table = write(tmp_path / "wave.csv")
    settings = [*SMALL, f'data.train=["{table}"]', "train.steps=10", "train.checkpoint_seconds=0", "model.layers=2"]
    recipe = load_recipe(SeriesRecipe, None, settings)
    assert_resumes_exactly(tmp_path, lambda out: task_trainer("series", recipe, out))


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_compiled_says_what_pytorch_says(cell: str) -> None:
    compiled = run(wave(), f"model.cell={cell}", "model.layers=2", "train.steps=5")
    by_torch = Forecaster(compiled.config, None, compiled.weights(), backend="torch")
    assert compiled.refusal() is None
    one, other = compiled.predict(wave(50)), by_torch.predict(wave(50))
    np.testing.assert_allclose(one.mean, other.mean, atol=1e-5)
    np.testing.assert_allclose(one.quantiles[0.9], other.quantiles[0.9], atol=1e-5)


@pytest.mark.parametrize("cell", ["mut1", "mut2", "mut3", "gru-cho"])
def test_other_cells_run_by_pytorch(cell: str) -> None:
    mutant = run(wave(), f"model.cell={cell}", "train.steps=2")
    assert mutant.refusal() is not None
    assert mutant.predict(wave(50)).mean.shape == (4, 1)


def test_int8_is_close_and_is_scored(folder: Path, model: Forecaster) -> None:
    export(folder / "model", folder / "int8", int8=True)
    small = elman.load(folder / "int8")
    assert small.int8 is not None and (folder / "int8" / "forecast.png").exists()
    np.testing.assert_allclose(small.predict(wave(50)).mean, model.predict(wave(50)).mean, atol=0.1)
    scores = elman.evaluate(small, folder / "wave.csv", baselines=False)
    assert scores[str(folder / "wave.csv")]["mase"] < 1


def test_several_columns_and_covariates(tmp_path: Path) -> None:
    columns = {"a": wave(), "b": wave(120, 2.0, 100.0), "hint": [day % 8 for day in range(120)]}
    both = run(write(tmp_path / "both.csv", columns), "data.covariates=hint", "data.target=['a', 'b']")
    assert both.config.frame.channels == 2 and len(both.config.frame.covariates) == 1
    answer = both.predict(np.array([columns["a"], columns["b"], columns["hint"]]).T[:60])
    assert answer.mean.shape == (4, 2) and 200 < answer.mean[:, 1].mean() < 400
    with pytest.raises(UserError, match="rows of 3 finite numbers each"):
        both.predict([1.0, 2.0])
    other = write(tmp_path / "other.csv", {"a": wave(), "hint": wave()})
    with pytest.raises(UserError, match=r"other.csv has no column 'b'.*data.target=NAME"):
        elman.evaluate(both, other, baselines=False)
    with pytest.raises(UserError, match=r"has 1 columns to forecast and 1 covariates.*data.target=NAME"):
        elman.evaluate(both, other, settings=["data.target=a"], baselines=False)


def test_series_by_a_key_have_errors_on_their_own_scales(tmp_path: Path) -> None:
    table = write(tmp_path / "keyed.csv", keyed())
    several = run(table, "data.key=place", "data.target=height")
    assert list(several.config.frame.naive) == ["north", "south", "west"]
    several.save(tmp_path / "model")
    code, out, error = invoke("predict", str(tmp_path / "model"), str(table), "--json")
    answers = [json.loads(line) for line in out.splitlines()]
    assert (code, [(answer["series"], answer["line"]) for answer in answers]) == (
        0,
        [("north", 2), ("south", 62), ("west", 122)],
    ), error
    assert 100 < answers[2]["mean"][0][0] < 500


def test_one_number_for_each_series(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(24)]
    rng, steps = np.random.default_rng(1), 12
    level = rng.uniform(1, 9, len(names))
    slopes = np.repeat(level, steps) * np.tile(np.arange(steps), len(names))
    columns: dict[str, Any] = {"who": np.repeat(names, steps), "x": slopes, "y": np.repeat(-level, steps)}
    labelled = run(write(tmp_path / "labels.csv", columns), "data.key=who", "data.label=y", "train.epochs=20")
    assert set(labelled.report["baselines"]) == {"mean of training"}  # type: ignore[index]
    found = labelled.predict([{"who": "new", "x": value} for value in range(steps)])
    assert [one.mean.shape for one in found] == [(1, 1)]
    alone = write(tmp_path / "alone.csv", {name: values[:steps] for name, values in columns.items()})
    with pytest.raises(UserError, match="one training series only"):
        run(alone, "data.key=who", "data.label=y")


def test_gaps_are_refused_or_filled_as_is_said(folder: Path, tmp_path: Path) -> None:
    values: list[object] = [*wave()]
    values[7] = ""
    gaps = write(tmp_path / "gaps.csv", {"height": values})
    with pytest.raises(UserError, match=r":9 .*no number in the column 'height'.*data.missing=interpolate"):
        run(gaps)
    assert run(gaps, "data.missing=previous", "train.steps=1").config.frame.channels == 1
    code, _, error = invoke("predict", str(folder / "model"), str(gaps))
    assert code == 2 and "--missing interpolate" in " ".join(error.split())
    code, out, _ = invoke("predict", str(folder / "model"), str(gaps), "--missing", "interpolate")
    assert code == 0 and len(out.splitlines()) == 4
    code, _, error = invoke("predict", str(folder / "model"), str(gaps), "--missing", "guess")
    assert code == 2 and "missing" in error
    report = elman.evaluate(folder / "model", gaps, settings=["data.missing=interpolate"], baselines=False)
    assert report[str(gaps)]["mase"] < 1


def test_uneven_steps_and_text_are_told_of(tmp_path: Path) -> None:
    uneven = write(tmp_path / "uneven.csv", {"day": [*range(60), *range(70, 130)], "x": wave()})
    with pytest.raises(UserError, match=r":62 .*usual step.*data.uneven=true"):
        run(uneven)
    assert run(uneven, "data.uneven=true", "train.steps=1").config.frame.channels == 1
    values: list[object] = [*wave()]
    values[3] = "high"
    with pytest.raises(UserError, match=r":5 .*'high' in the column 'x'.*data.target=NAME"):
        run(write(tmp_path / "text.csv", {"x": values}))


def test_too_short_series_are_told_of(tmp_path: Path) -> None:
    short = write(tmp_path / "short.csv", {"x": wave(12)})
    with pytest.raises(UserError, match=r"too few to look back.*-s data.horizon=1 -s data.context="):
        run(short, "data.horizon=8")
    assert run(short, "data.horizon=1", "data.context=2", "data.season=1", "train.steps=1").config.frame.context == 2


def test_a_pipe_text_and_other_columns_on_the_command_line(folder: Path) -> None:
    name, given = str(folder / "model"), "other,h\n" + "".join(f"{value},{value}\n" for value in wave(50))
    code, _, error = invoke("predict", name, stdin=given)
    assert code == 2 and "has no column 'height': known are: other, h;" in " ".join(error.split())
    assert "--column NAME" in " ".join(error.split())
    code, out, error = invoke("predict", name, "--column", "h", stdin=given)
    rows = [line.split("\t") for line in out.splitlines()]
    assert code == 0, error
    assert [row[0] for row in rows] == ["1", "2", "3", "4"] and all(len(row) == 4 for row in rows)
    low, high = ([float(row[place]) for row in rows] for place in (2, 3))
    assert all(a <= b for a, b in zip(low, high, strict=True))
    assert invoke("predict", name, "--column", "2", stdin=given)[1] == out
    code, _, error = invoke("predict", name, "--column", "hh", stdin=given)
    assert code == 2 and "did you mean 'h'?" in error
    assert invoke("predict", name, stdin=given.replace("other,h", "other,height"))[1] == out  # found by its name
    numbers = "".join(f"{value}\n" for value in wave(50))
    assert invoke("predict", name, stdin=numbers)[1] == out  # nothing else that it could be
    code, _, error = invoke("predict", name, "--column", "h", "--on-error", "skip", stdin=given)
    assert code == 2 and "leave --on-error out" in error


def test_forecasts_of_data_in_memory_are_those_of_files(folder: Path, model: Forecaster) -> None:
    frame = pd.DataFrame({"day": pd.date_range("2020-01-01", periods=50), "height": wave(50)})
    expected = model.predict(wave(50))
    one = Series("a", np.array(wave(50))[:, None], np.zeros((50, 0)))
    for found in (model.predict(frame)[0], model.predict(frame.to_dict("records"))[0], model.predict([one, one])[1]):
        np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-6)
    assert model.predict([one, one])[0].name == "a" and model.answers([]) == []
    for wrong in ([], ["a"], [float("nan")], "1 2 3"):
        with pytest.raises(UserError, match="a series is"):
            model.predict(wrong)


def test_a_run_starts_from_a_trained_model_of_the_same_columns(folder: Path, tmp_path: Path) -> None:
    further = elman.fit("series", train=wave(200), start=folder / "model", settings=["train.steps=2"], verbose=False)
    assert further.config.frame.horizon == 4
    two = write(tmp_path / "two.csv", {"a": wave(), "b": wave()})
    with pytest.raises(UserError, match=r"has no column 'height'.*data.target=NAME"):
        elman.fit("series", train=two, start=folder / "model", verbose=False)
    settings = ["data.target=b", "train.steps=2"]
    other = elman.fit("series", train=two, start=folder / "model", settings=settings, verbose=False)
    assert other.recipe["data"]["target"] == ["b"] and set(other.config.frame.naive) == {"wave", "two"}
    for setting in ("data.horizon=5", "data.context=7", "data.season=3"):
        with pytest.raises(UserError, match=r"was trained otherwise, and cannot be changed: say -s data"):
            elman.fit("series", train=wave(200), start=folder / "model", settings=[setting], verbose=False)


def test_runs_are_compared(tmp_path: Path) -> None:
    write(tmp_path / "wave.csv")
    settings = [part for setting in (*SMALL, "train.steps=2") for part in ("-s", setting)]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'task = "series"\n[data]\ntrain = ["{tmp_path / "wave.csv"}"]\n')
    code, out, error = invoke(
        *("compare", str(recipe), "--vary", "model.cell=gru", "--out", str(tmp_path / "out"), *settings)
    )
    assert code == 0, error
    assert "MASE" in out and "gru" in out


@pytest.mark.slow
@pytest.mark.parametrize("name", ["waves", "sunspots", "co2"])
def test_the_recipes_beat_the_seasonal_value(name: str) -> None:
    report = elman.fit("series", name, settings=["train.threads=1"], verbose=False).report
    assert report["test"]["mase"] < 1
    assert report["test"]["mase"] < report["baselines"]["seasonal value"]["test"]["mase"]


def test_a_series_that_is_shorter_than_a_forecast_looks_back_is_said(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "short.csv").write_text("step,height\n1,0.5\n2,0.7\n")
    code, out, error = invoke("predict", str(folder / "model"), str(tmp_path / "short.csv"))
    assert code == 0 and len(out.splitlines()) == 4
    assert "short.csv:2: the series has 2 steps, and forecasts look back" in error and len(error.splitlines()) == 1


def test_quantiles_never_cross(model: Forecaster) -> None:
    forecast = model.predict(np.random.default_rng(1).normal(size=50))
    assert (forecast.quantiles[0.1] <= forecast.quantiles[0.9]).all()


def test_what_can_be_typed_is_suggested(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("step,height\n1,0.5\n2,0.7\n1,0.5\n2,0.7\n")
    code, _, error = invoke("predict", str(folder / "model"), str(tmp_path / "two.csv"))
    assert code == 2 and "(elman predict: give a file for each)" in error
    with pytest.raises(UserError, match="a series is a list of numbers"):
        elman.load(folder / "model").predict(None)


def test_a_model_remembers_its_columns(tmp_path: Path) -> None:
    train = write(tmp_path / "train.csv", {"day": range(120), "height": wave(), "town": ["x"] * 120})
    more = {"other": range(120), "day": range(120), "height": wave()}
    dev = write(tmp_path / "dev.csv", more)
    model = elman.fit(
        "series", train=train, dev=dev, out=tmp_path / "run", settings=[*SMALL, "train.steps=2"], verbose=False
    )
    data = json.loads((tmp_path / "run" / "config.json").read_text())["recipe"]["data"]
    assert (data["target"], data["context"], data["season"], data["time"]) == (["height"], 16, 8, None)
    assert elman.evaluate(model, dev)[str(dev)]["mase"] == model.report["dev"]["mase"]
    expected = model.predict(wave()).mean
    assert (model.predict(pd.DataFrame(more))[0].mean == expected).all()
    with pytest.raises(UserError, match=r"the data has no column 'height'.*give its numbers alone"):
        model.predict(pd.DataFrame({"size": wave()}))
    again = elman.fit("series", out=tmp_path / "run", resume=True, settings=["train.steps=3"], verbose=False)
    assert again.recipe["data"]["target"] == ["height"]


def test_columns_by_number_are_kept_by_their_names(tmp_path: Path) -> None:
    names, steps = [f"s{number}" for number in range(12)], 6
    columns: dict[str, Any] = {
        "who": np.repeat(names, steps),
        "x": np.arange(len(names) * steps) % 7,
        "y": np.repeat(np.arange(len(names)), steps),
    }
    model = run(write(tmp_path / "labels.csv", columns), "data.key=1", "data.label=3", "train.steps=2")
    assert [model.recipe["data"][name] for name in ("key", "label", "target")] == ["who", "y", ["x"]]
    model.save(tmp_path / "model")
    new = "y,x,who\n" + "".join(f"0,{value},new\n" for value in range(steps))
    code, out, error = invoke("predict", str(tmp_path / "model"), stdin=new)
    assert code == 0 and out.startswith("new\t1\t"), error


def test_series_of_several_files_have_errors_on_their_own_scales(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{name}.csv", {"x": wave(120, 0, size)}) for name, size in (("a", 1.0), ("b", 1000.0))]
    naive = run(paths, "train.steps=2").config.frame.naive
    assert set(naive) == {"a", "b"} and naive["b"][0] == pytest.approx(1000 * naive["a"][0], rel=0.01)


def test_other_covariates_are_other_data(tmp_path: Path) -> None:
    table = write(tmp_path / "a.csv", {"x": wave(), "hint": range(120)})
    settings = [*SMALL, "data.covariates=hint", "train.steps=2"]
    elman.fit("series", train=table, out=tmp_path / "run", settings=settings, verbose=False)
    write(table, {"x": wave(), "hint": range(1, 121)})
    with pytest.raises(UserError, match="data"):
        elman.fit("series", out=tmp_path / "run", resume=True, settings=["train.steps=4"], verbose=False)


def test_short_series_among_others_are_said_to_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    columns = keyed(("north", "south"), 120)
    short = {name: [*values[:120], *values[120:126]] for name, values in columns.items()}
    settings = [*SMALL, "data.key=place", "data.target=height", "train.steps=2"]
    elman.fit("series", train=write(tmp_path / "keyed.csv", short), settings=settings)
    assert "1 of 2 series are too short to train on, and left out" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("level", "height"), [(1e12, 1.0), (0.0, 1e-9), (0.0, 1e30)])
def test_forecasts_are_written_with_the_digits_that_matter(tmp_path: Path, level: float, height: float) -> None:
    values = level + height * np.array(wave())
    model = run(values, "train.steps=2")
    model.save(tmp_path / "model")
    stdin = "".join(f"{value!r}\n" for value in values.tolist())
    expected = model.predict(values)
    code, out, error = invoke("predict", str(tmp_path / "model"), "--json", stdin=stdin)
    assert code == 0, error
    np.testing.assert_allclose(json.loads(out)["mean"], expected.mean, rtol=0, atol=1e-3 * height)
    shown = [
        [float(cell) for cell in line.split("\t")]
        for line in invoke("predict", str(tmp_path / "model"), stdin=stdin)[1].splitlines()
    ]
    np.testing.assert_allclose([row[1] for row in shown], expected.mean[:, 0], rtol=0, atol=1e-3 * height)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "values",
    [[1.0], [10**400] * 60, [1.7e308] * 60, [9e99, -9e99] * 60, [1.0] * 59 + [9e99], [1.0, 2.0], np.array(5.0)],
)
def test_numbers_that_nothing_can_be_made_of_are_one_sentence(values: Any) -> None:
    try:
        run(values, "train.steps=2")
    except UserError as error:
        assert "\n" not in str(error)
    else:
        assert values == [9e99, -9e99] * 60  # which is a wave like any other
