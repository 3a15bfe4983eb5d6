"""The view of saliency: what is asked, what is shown, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elman.draw.panels import HeatMap, Note, Table, Tokens
from elman.errors import UserError
from elman.inspect import explain
from elman.inspect.attribution import agreement, spearman
from elman.inspect.edits import edits
from elman.inspect.faithfulness import faithfulness
from elman.inspect.methods import METHODS
from elman.inspect.saliency import SaliencyView, prediction_sentence, saliency
from elman.inspect.subject import ClassifierSubject, TaggerSubject
from elman.tasks.classify import TextClassifier
from elman.tasks.tag import TagModel
from tests.inspect.small_models import classifier, tagger

TEXT = "a fine film with a good end"


@pytest.fixture(scope="module")
def reviews() -> TextClassifier:
    return classifier("model.cell=lstm")


@pytest.fixture(scope="module")
def names() -> TagModel:
    return tagger("model.crf=true")


def test_all_methods_stand_side_by_side(reviews: TextClassifier) -> None:
    explanation = explain(reviews, TEXT)
    (data,) = explanation.data
    assert explanation.view.name == "saliency"
    assert list(data.methods) == list(METHODS) and not data.refused
    assert data.tokens == TEXT.split() and data.prediction == [reviews.predict(TEXT).label]
    assert data.probability == pytest.approx(reviews.predict(TEXT).probability, abs=1e-5)
    assert all(len(one.values) == 7 for one in data.methods.values())
    assert np.array(data.agreement).shape == (5, 5)
    panels = explanation.page().columns[0].panels
    assert [panel.title for panel in panels if isinstance(panel, Tokens)] == [one.title for one in METHODS.values()]
    assert any(isinstance(panel, Table) and panel.title == "agreement" for panel in panels)


def test_a_contrast_is_the_difference_of_two_scores(reviews: TextClassifier) -> None:
    good, bad, both = (
        saliency(reviews, [TEXT], target=target, against=against)[0]
        for target, against in (("good", None), ("bad", None), ("good", "bad"))
    )
    assert both.score == pytest.approx(good.score - bad.score, abs=1e-5)
    for method in ("gradient", "occlusion", "relevance", "decomposition"):
        expected = np.array(good.methods[method].values) - bad.methods[method].values
        np.testing.assert_allclose(both.methods[method].values, expected, atol=1e-5)


def test_a_cell_without_such_gates_is_told_and_has_the_other_methods() -> None:
    (data,) = explain(classifier("model.cell=mut1"), TEXT).data
    assert list(data.methods) == ["gradient", "integrated", "occlusion"]
    assert set(data.refused) == {"relevance", "decomposition"}
    note = SaliencyView().panels(data)[-1]
    assert isinstance(note, Note) and "this network has mut1" in note.text


def test_a_long_text_is_not_decomposed_unasked(reviews: TextClassifier) -> None:
    (data,) = saliency(reviews, ["film " * 101])
    assert "decomposition" not in data.methods and "asked for by its name" in data.refused["decomposition"]
    (data,) = saliency(reviews, ["film " * 101], ["decomposition"])
    assert len(data.methods["decomposition"].values) == 101


def test_of_several_labels_any_can_be_explained() -> None:
    model = classifier(several=True)
    (data,) = saliency(model, [TEXT], ["gradient"], target="so-so")
    assert data.target == ["so-so"]
    assert data.prediction == list(model.predict(TEXT).labels)
    assert data.probability == pytest.approx(model.predict(TEXT).probabilities["so-so"], abs=1e-5)


def test_a_tagger_is_explained_where_it_found_something(names: TagModel) -> None:
    (data,) = saliency(names, [TEXT])
    tags = list(names.predict(tokens=TEXT.split()).tags)
    assert data.prediction == tags
    expected = [place for place, tag in enumerate(tags, 1) if tag != "O"]
    assert data.positions == expected and data.target == [tags[place - 1] for place in expected]
    assert np.array(data.by_position).shape == (len(expected), 7)
    np.testing.assert_allclose(np.sum(data.by_position, axis=0), data.methods["gradient"].values, atol=1e-4)
    assert any(isinstance(panel, HeatMap) for panel in SaliencyView().panels(data))


def test_a_tag_is_explained_at_a_position_or_where_it_was_given(names: TagModel) -> None:
    (data,) = saliency(names, [TEXT], ["gradient"], target="S-LOC", position=2)
    assert data.positions == [2] and data.target == ["S-LOC"]
    (data,) = saliency(names, [TEXT], ["gradient"], target=data.prediction[0])
    assert all(data.prediction[place - 1] == data.prediction[0] for place in data.positions)


def test_a_phrase_has_a_number_by_each_method(reviews: TextClassifier) -> None:
    by_text, by_place = (saliency(reviews, [TEXT], phrase=phrase)[0].phrase for phrase in ("Fine film", "2:3"))
    assert by_text is not None and by_text == by_place
    assert (by_text.start, by_text.stop, by_text.text) == (2, 3, "fine film")
    assert set(by_text.values) == set(METHODS)
    scores = dict(zip(reviews.labels, reviews.scores(reviews.vocabulary.encode([TEXT]))[0].tolist(), strict=True))
    for label, score in scores.items():
        assert by_text.beta[label] + by_text.gamma[label] == pytest.approx(score, abs=1e-5)
    without = explain(reviews, TEXT, method="gradient", phrase="2:3").data[0].phrase
    assert list(without.values) == ["gradient"]


def test_characters_and_pieces_are_shown_as_the_text_has_them() -> None:
    (data,) = saliency(classifier("text.kind=characters"), ["Fine é"], ["gradient"])
    assert data.tokens == list("Fine é") and not data.spaced
    model = classifier("text.kind=bpe", "text.size=270", texts=["fine films " * 9])
    (data,) = saliency(model, ["Fine Films"], ["gradient"])
    assert "".join(data.tokens) == "Fine Films" and len(data.tokens) < 10
    (data,) = saliency(classifier("text.kind=bytes"), ["né"], ["gradient"])
    assert data.tokens == ["n", "<0xC3>", "<0xA9>"]


def test_the_data_can_be_written(reviews: TextClassifier, tmp_path: Path) -> None:
    explain(reviews, [TEXT, "dull"], phrase="1:1").save(tmp_path / "data.json")
    data = json.loads((tmp_path / "data.json").read_text())
    assert data["view"] == "saliency" and len(data["texts"]) == 2
    assert set(data["texts"][0]) == {
        "text", "tokens", "prediction", "target", "against", "positions", "score", "probability", "methods", "refused",
        "agreement", "by_position", "phrase", "spaced", "cut",
    }  # fmt: skip
    assert set(data["texts"][0]["methods"]["integrated"]) == {"values", "score", "edges", "rest", "gap", "steps"}


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"target": "goood"}, "there is no class 'goood': did you mean 'good'?"),
        ({"target": "good", "against": "bda"}, "there is no class 'bda': did you mean 'bad'?"),
        ({"target": "good", "against": "good"}, "'good' against itself is always 0: name another class"),
        ({"phrase": "fin"}, "the phrase 'fin' is not in the text"),
        ({"phrase": "3:9"}, "the phrase 3:9 is outside: the tokens count from 1 to 7"),
        ({"phrase": "0:1"}, "the phrase 0:1 is outside"),
        ({"position": 2}, "a position is for taggers"),
        ({"method": "gradeint"}, "there is no method 'gradeint': did you mean 'gradient'?"),
        ({"methd": "gradient"}, "unknown key 'methd'"),
        ({"edit": "burn"}, "edit"),
    ],
)
def test_what_is_wrong_is_told_in_a_sentence(reviews: TextClassifier, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError) as error:
        explain(reviews, TEXT, "saliency", **asked)
    assert told in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"position": 8}, "position 8 is outside: the tokens count from 1 to 7"),
        ({"position": 0}, "position 0 is outside"),
        ({"target": "B-PRE"}, "there is no tag 'B-PRE': did you mean 'B-PER'?"),
        ({"target": "O", "against": "O", "position": 1}, "'O' against itself"),
    ],
)
def test_so_it_is_for_taggers(names: TagModel, asked: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told.replace("?", ".")):
        explain(names, TEXT, "saliency", **asked)


def test_a_method_that_does_not_apply_is_refused_by_name() -> None:
    with pytest.raises(
        UserError, match=r"'relevance' does not apply: .* has rnn; take gradient, integrated, occlusion"
    ):
        explain(classifier("model.cell=rnn"), TEXT, "saliency", method="relevance")


def test_an_empty_text_is_refused(reviews: TextClassifier) -> None:
    with pytest.raises(UserError, match="text 1 of 1 is empty"):
        explain(reviews, " ")


def test_rank_correlation_is_scipys() -> None:
    from scipy.stats import spearmanr

    chance = np.random.default_rng(0)
    rows = [chance.integers(0, 9, 20).tolist() for _ in range(3)]
    for one in rows:
        for other in rows:
            assert spearman(one, other) == pytest.approx(spearmanr(one, other).statistic, abs=1e-9)
    assert agreement(rows)[0][0] == 1.0


def test_a_text_that_is_cut_says_so(names: TagModel, monkeypatch: pytest.MonkeyPatch) -> None:
    short = classifier("model.longest=4")
    (data,) = saliency(short, TEXT, ["gradient"])
    assert (len(data.tokens), data.cut) == (4, 3)
    told = "The text is cut after 4 tokens: 3 more are left out."
    assert any(isinstance(panel, Note) and panel.text == told for panel in SaliencyView().panels(data))
    for kind in (ClassifierSubject, TaggerSubject):
        monkeypatch.setattr(kind, "most", 3)
    for model in (short, names):
        (data,) = saliency(model, [TEXT], ["occlusion"])
        assert (len(data.tokens), data.cut, edits(model, TEXT).cut) == (3, 4, 4)
        assert faithfulness(model, TEXT, ["occlusion"]).cut == 4


def test_wrong_calls_are_told(reviews: TextClassifier) -> None:
    with pytest.raises(UserError, match="at least one text"):
        saliency(reviews, [])
    with pytest.raises(UserError, match="at least one text"):
        faithfulness(reviews, [])
    for shares in ([], [0.0], [1.5]):
        with pytest.raises(UserError, match="above 0, up to 1"):
            faithfulness(reviews, [TEXT], shares=shares)
    (data,) = saliency(reviews, "dull", ["gradient", "occlusion"])
    assert data.agreement == [[None, None], [None, None]]
    assert SaliencyView().panels(data)


def test_a_tag_that_no_token_was_given_is_told(names: TagModel) -> None:
    (data,) = saliency(names, "dull", ["gradient"])
    missing = next(tag for tag in names.tags if tag not in data.prediction)
    (data,) = saliency(names, "dull", ["gradient"], target=missing)
    assert f"gave no token the tag {missing}; those that it gave are" in prediction_sentence(data)
