"""Maps of hidden states, of every task whose models have some."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elman.inspect
from elman.errors import UserError
from elman.inspect import states as module
from elman.inspect.states import lay_out, states
from elman.tasks.language import LanguageModel
from elman.tasks.traces import trace_text
from tests.tasks import classify_runs, tag_runs, translate_runs
from tests.tasks.runs import prose, run

TEXTS = ["the cat sat", "a dog ran to the sea"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> LanguageModel:
    folder = tmp_path_factory.mktemp("states")
    (folder / "prose.txt").write_text(prose())
    return run(folder / "prose.txt", folder / "model", "train.steps=20", "model.cell=lstm")


def test_the_map_is_the_two_largest_components(model: LanguageModel) -> None:
    first = states(model, TEXTS, colour="text")
    rows = np.concatenate([trace_text(model, text).parts["1.h"] for text in TEXTS]).astype(np.float64)
    centred = rows - rows.mean(axis=0)
    sizes = np.linalg.svd(centred, compute_uv=False)
    assert first.explained == pytest.approx((sizes[:2] ** 2 / (sizes**2).sum()).tolist())
    xy = np.array([[one.x, one.y] for one in first.points])
    np.testing.assert_allclose(np.linalg.norm(xy, axis=0), sizes[:2], rtol=1e-6)
    assert [one.token for one in first.points] == list("".join(TEXTS))
    assert {one.group for one in first.points} == {"text 1", "text 2"}
    page = elman.inspect.explain(model, TEXTS, view="states").page()
    assert [column.title for column in page.columns] == ["2 texts"]


def test_neighbours_are_those_with_the_largest_cosine(model: LanguageModel) -> None:
    found = states(model, TEXTS, neighbours=3)
    rows = np.concatenate([trace_text(model, text).parts["1.h"] for text in TEXTS]).astype(np.float64)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T - 2 * np.eye(len(unit))
    for one, row in zip(found.points, cosines, strict=True):
        assert [near.cosine for near in one.neighbours] == pytest.approx(np.sort(row)[::-1][:3].tolist())
        near = one.neighbours[0]
        assert TEXTS[near.text - 1][near.place - 1] == near.token


def test_colours_mean_what_is_asked_for(model: LanguageModel) -> None:
    (text,) = TEXTS[1:]
    by_token = states(model, [text])
    assert by_token.points[0].group == "a"
    by_place = states(model, [text], colour="position")
    assert by_place.points[0].group.startswith("1") and len({one.group for one in by_place.points}) <= 6
    predicted = states(model, [text], colour="predicted")
    row = [one.group for one in predicted.points]
    stepper, state = model.stepper(), None
    for token in [model.reading.start_id, *model.tokenizer.encode(text).tolist()]:
        logits, state = stepper.step(np.array([token]), state)
    assert row[-1] in (model.tokenizer.tokens[int(logits.argmax())], "others")


def test_tsne_is_repeatable_and_what_is_missing_is_named(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(0)
    rows = np.concatenate([random.normal(0, 0.1, (20, 5)), random.normal(3, 0.1, (20, 5))])
    first, again = (lay_out(rows, "tsne", seed=3)[0] for _ in range(2))
    np.testing.assert_array_equal(first, again)
    middles = first[:20].mean(axis=0), first[20:].mean(axis=0)
    assert np.linalg.norm(middles[0] - middles[1]) > 2 * first[:20].std()

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(module, "import_module", missing)
    with pytest.raises(UserError, match="pip install umap-learn"):
        elman.inspect.explain(model, TEXTS, view="states", method="umap")


def test_every_task_with_states_has_the_view(tmp_path: Path) -> None:
    table = classify_runs.write_table(tmp_path / "names.csv")
    classifier = classify_runs.run(table, tmp_path / "classify", "train.steps=2")
    found = elman.inspect.explain(classifier, ["grimulf", "olaetti"], view="states", colour="predicted")
    assert {one.group for one in found.data[0].points} <= {"north", "south", "west"}
    tagger = tag_runs.run(tag_runs.write(tmp_path / "tags.conll"), tmp_path / "tag", "train.steps=2")
    found = elman.inspect.explain(tagger, "Ada went to Oslo.", view="states", colour="predicted")
    assert [one.group for one in found.data[0].points] == list(tagger.predict("Ada went to Oslo.").tags)
    assert found.page().columns[0].panels[0].kind == "points"
    translator = translate_runs.run(translate_runs.write(tmp_path / "pairs.tsv"), tmp_path / "out", "train.steps=2")
    text = translate_runs.strings()[0].source
    found = elman.inspect.explain(translator, text, view="states")
    assert [one["token"] for one in found.to_dict()["points"]] == list(text)
    with pytest.raises(UserError, match="colour by token, position or text"):
        elman.inspect.explain(translator, text, view="states", colour="predicted")


def test_wrong_input_is_told_in_a_sentence(model: LanguageModel) -> None:
    for text, options, message in (
        ("ab", {}, "needs at least 3 tokens, and there are 2"),
        ("the cat", {"colour": "tag"}, "colour"),
        ("the cat", {"method": "som"}, "method"),
        ("the cat", {"layer": 5}, "no layer 5"),
        ("the cat", {"label": "x"}, "knows no labels"),
    ):
        with pytest.raises(UserError, match=message):
            elman.inspect.explain(model, text, view="states", **options)


def test_wrong_calls_and_long_texts_are_told(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong: list[tuple[Any, str]] = [({"method": "pcaa"}, "no method 'pcaa'"), ({"colour": "tokn"}, "no colour 'tokn'")]
    for options, told in wrong:
        with pytest.raises(UserError, match=told):
            states(model, TEXTS, **options)
    with pytest.raises(UserError, match="at least one text"):
        states(model, [])
    assert states(model, TEXTS[0]) == states(model, TEXTS[:1])
    monkeypatch.setattr(module, "MOST", 13)
    for colour in ("token", "predicted"):
        found = states(model, TEXTS, colour=colour)
        assert (len(found.points), found.points[-1].text, found.cut) == (13, 2, 18)
    panels = elman.inspect.explain(model, TEXTS, view="states").page().columns[0].panels
    assert panels[0].text == "The text is cut after 13 tokens: 18 more are left out."
