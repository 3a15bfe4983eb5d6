"""Units over a text, and gates that are open or shut."""

from pathlib import Path

import numpy as np
import pytest

import elman.inspect
from elman.errors import UserError
from elman.inspect.neurons import neurons, saturation
from elman.inspect.ranks import ranks
from elman.tasks.language import LanguageModel
from elman.tasks.traces import trace_text
from tests.tasks.runs import prose, run

TEXT = "the cat sat on the dog"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("neurons")
    (folder / "prose.txt").write_text(prose())
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return run(folder / "prose.txt", folder / "model", "train.steps=20", "model.cell=lstm", "model.layers=2")


def test_units_are_columns_of_the_trace(model: LanguageModel) -> None:
    trace = trace_text(model, TEXT)
    found = neurons(model, TEXT, layer=1, part="c", units=[3, 0])
    assert found.tokens == list(TEXT) and (found.layer, found.part) == (1, "c")
    np.testing.assert_array_equal(found.activations, trace.parts["1.c"][:, [3, 0]].T)
    most = neurons(model, TEXT)
    assert (most.layer, most.part, len(most.units)) == (2, "h", 8)
    spread = trace.parts["2.h"].std(axis=0)
    assert set(most.units) == set(np.argsort(-spread)[:8].tolist())


def test_gates_are_counted_as_they_are(model: LanguageModel) -> None:
    trace = trace_text(model, TEXT)
    found = {(one.layer, one.gate): one for one in neurons(model, TEXT).saturation}
    assert set(found) == {(layer, gate) for layer in (1, 2) for gate in "ifo"}
    for (layer, gate), one in found.items():
        values = trace.parts[f"{layer}.{gate}"]
        assert one.left == pytest.approx((values < 0.1).mean(axis=0).tolist())
        assert one.mean_right == pytest.approx((values > 0.9).mean())
    halves = [{name: part[rows] for name, part in trace.parts.items()} for rows in (slice(9), slice(9, None))]
    assert saturation(halves) == saturation([trace.parts])


def test_the_view_draws_units_and_gates(model: LanguageModel, folder: Path) -> None:
    explanation = elman.inspect.explain(model, [TEXT], view="neurons", units=[1, 2], corpus=str(folder / "prose.txt"))
    (data,) = explanation.data
    assert data.steps == len(prose()) and data.units == [1, 2]
    kinds = [panel.kind for panel in explanation.page().columns[0].panels]
    assert kinds == ["heatmap", "tokens", "tokens", "table", "points", "points", "points"]
    assert explanation.to_dict()["texts"][0]["saturation"][0]["gate"] == "i"


def test_what_there_is_not_is_told(model: LanguageModel, folder: Path) -> None:
    for options, message in (
        ({"units": [24]}, "no unit 24 in 'h' of that layer: give one from 0 to 23"),
        ({"layer": 3}, "no layer 3: give one from 1 to 2"),
        ({"part": "z"}, "no part 'z'"),
        ({"units": [-1]}, "units"),
        ({"unit": 3}, "units"),
        ({"label": "x"}, "knows no labels"),
    ):
        with pytest.raises(UserError, match=message):
            elman.inspect.explain(model, TEXT, view="neurons", **options)
    ngram = run(folder / "prose.txt", folder / "ngram", "model.kind=ngram")
    with pytest.raises(UserError, match=r"no view 'neurons': it is an n-gram model, .*; it has ranks"):
        elman.inspect.explain(ngram, TEXT, view="neurons")


def test_a_cell_without_gates_has_none(folder: Path, tmp_path: Path) -> None:
    plain = run(folder / "prose.txt", tmp_path / "rnn", "train.steps=2", "model.cell=rnn").to_int8()
    explanation = elman.inspect.explain(plain, TEXT, view="neurons")
    assert explanation.data[0].saturation == []
    assert "no gates" in explanation.page().columns[0].panels[-1].to_dict()["text"]


def test_a_long_text_is_cut_and_layers_count_from_1(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="no layer 0: give one from 1 to 2"):
        neurons(model, TEXT, layer=0)
    monkeypatch.setattr("elman.inspect.neurons.MOST", 5)
    found = neurons(model, TEXT)
    assert (found.tokens, found.cut, found.steps) == (list(TEXT[:5]), len(TEXT) - 5, len(TEXT))
    monkeypatch.setattr("elman.inspect.ranks.MOST", 5)
    ranked = ranks(model, TEXT)
    assert ([one.token for one in ranked.tokens], ranked.cut) == (list(TEXT[:5]), len(TEXT) - 5)
