"""The estimators, as scikit-learn uses them."""

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from elman.sklearn import Tagger, TextClassifier

SETTINGS = {
    "model.hidden": 8,
    "model.embedding": 6,
    "text.kind": "characters",
    "train.steps": 40,
    "train.lr": 0.02,
    "train.threads": 1,
    "baseline.ngrams": False,
}
TEXTS = [text * (1 + i % 3) for i in range(20) for text in ("ab", "xy")]
LABELS = ["north", "south"] * 20


@pytest.fixture(scope="module")
def classifier() -> Any:
    return TextClassifier(settings=SETTINGS).fit(TEXTS, LABELS)


def test_it_fits_and_predicts(classifier: Any) -> None:
    assert classifier.predict(["abab", "xyxy"]).tolist() == ["north", "south"]
    assert classifier.classes_.tolist() == ["north", "south"]
    assert classifier.score(TEXTS, LABELS) > 0.9
    chances = classifier.predict_proba(TEXTS)
    assert chances.shape == (40, 2) and np.allclose(chances.sum(axis=1), 1, atol=1e-5)
    assert (classifier.classes_[chances.argmax(axis=1)] == classifier.predict(TEXTS)).all()


def test_labels_come_back_as_they_were() -> None:
    numbers = TextClassifier(settings=SETTINGS | {"train.steps": 2}).fit(TEXTS, [3, 5] * 20)
    assert numbers.classes_.tolist() == [3, 5] and numbers.predict(TEXTS[:1])[0] in (3, 5)


def test_several_labels_each() -> None:
    several = TextClassifier(settings=SETTINGS | {"train.steps": 2}).fit(TEXTS, [["a", "b"], ["b"]] * 20)
    assert several.classes_.tolist() == ["a", "b"] and isinstance(several.predict(TEXTS[:1])[0], list)


def test_it_is_cloned_and_pickled(classifier: Any) -> None:
    twin = clone(classifier)
    assert twin.get_params() == classifier.get_params() and not hasattr(twin, "model_")
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_proba(TEXTS), classifier.predict_proba(TEXTS))


def test_it_stands_in_pipelines_and_cross_validation() -> None:
    quick = TextClassifier(settings=SETTINGS | {"train.steps": 5})
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    assert make_pipeline(lower, quick).fit(TEXTS, LABELS).predict(["ABAB"])[0] in LABELS
    assert cross_val_score(quick, np.array(TEXTS, dtype=object), LABELS, cv=2).shape == (2,)
    grid = GridSearchCV(quick, {"seed": [1, 2]}, cv=2).fit(np.array(TEXTS, dtype=object), LABELS)
    assert grid.best_params_["seed"] in (1, 2)


@pytest.mark.parametrize("texts", ["one text", [1, 2], [["a"], ["b"]]])
def test_what_is_no_text_is_refused(texts: Any) -> None:
    with pytest.raises(ValueError, match="texts are"):
        TextClassifier(settings=SETTINGS).fit(texts, ["a", "b"])


def test_an_estimator_that_was_not_fitted_says_so() -> None:
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        TextClassifier().predict(["a"])


def test_taggers() -> None:
    sentences, tags = [["a", "cat", "sat"], ["the", "dog", "ran"]] * 12, [["D", "N", "V"]] * 24
    tagger = Tagger(settings={"train.steps": 60, "model.hidden": 8, "train.threads": 1}).fit(sentences, tags)
    assert tagger.predict([["the", "cat", "ran"]]) == [["D", "N", "V"]]
    assert tagger.score(sentences, tags) == 1.0
    assert clone(tagger).get_params() == tagger.get_params()
    assert pickle.loads(pickle.dumps(tagger)).predict(sentences[:1]) == tags[:1]


@pytest.mark.parametrize("estimator", [TextClassifier(settings=SETTINGS), Tagger(settings=SETTINGS)])
@pytest.mark.parametrize(
    "check",
    [
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_no_attributes_set_in_init",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_mixin_order",
        "check_valid_tag_types",
    ],
)
def test_scikit_learns_own_checks_that_need_no_numbers(estimator: Any, check: str) -> None:
    from sklearn.utils import estimator_checks

    getattr(estimator_checks, check)(type(estimator).__name__, estimator)
    assert not hasattr(estimator, "model_")


def test_one_setting_of_a_grid() -> None:
    grid = GridSearchCV(
        TextClassifier(settings=SETTINGS | {"train.steps": 2}), {"settings__model.hidden": [4, 6]}, cv=2
    )
    grid.fit(np.array(TEXTS, dtype=object), LABELS)
    assert grid.best_params_["settings__model.hidden"] in (4, 6)
    best = grid.best_estimator_
    assert best.model_.config.model.hidden == best.settings["model.hidden"] and best.settings["train.steps"] == 2
    pipeline = make_pipeline(TextClassifier()).set_params(**{"textclassifier__settings__model.hidden": 3})
    assert pipeline[-1].settings == {"model.hidden": 3}


def test_a_data_frame_of_one_column(classifier: Any) -> None:
    frame = pytest.importorskip("pandas").DataFrame({"review": TEXTS, "other": TEXTS})
    assert classifier.predict(frame[["review"]]).tolist() == classifier.predict(TEXTS).tolist()
    with pytest.raises(ValueError, match="texts are one column, and there are 2: give a list"):
        classifier.predict(frame)
    with pytest.raises(ValueError, match="texts are several"):
        classifier.predict({"review": TEXTS})


def test_the_module_shows_its_estimators_alone() -> None:
    import elman.sklearn

    assert dir(elman.sklearn) == ["Tagger", "TextClassifier"]


def test_classes_are_in_the_order_of_scikit_learn() -> None:
    labels = [2, 10] * 20
    numbers = TextClassifier(settings=SETTINGS).fit(TEXTS, labels)
    assert numbers.classes_.tolist() == np.unique(labels).tolist() == [2, 10]
    chances = numbers.predict_proba(TEXTS)
    assert (numbers.classes_[chances.argmax(axis=1)] == numbers.predict(TEXTS)).all()
    assert numbers.score(TEXTS, labels) > 0.9 and numbers.predict_proba([]).shape == (0, 2)


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([1, "1"] * 20, "some labels are strings and others are not"),
        (["a", None] * 20, "label 2 of 40 is missing"),
        ([1.0, float("nan")] * 20, "label 2 of 40 is missing"),
        (np.array([1.0, float("nan")] * 20), "label 2 of 40 is missing"),
        (["a", " a"] * 20, "differ in the blanks around them alone"),
        (["a"] * 3, "there are 40 texts and 3 labels"),
        (np.zeros((40, 2)), "1d array"),
    ],
)
def test_labels_that_could_be_taken_for_each_other_are_refused(labels: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        TextClassifier(settings=SETTINGS).fit(TEXTS, labels)


def test_labels_in_a_column_are_taken_with_the_warning_of_scikit_learn() -> None:
    from sklearn.exceptions import DataConversionWarning

    column = np.array(LABELS)[:, None]
    for labels in (column, pytest.importorskip("pandas").DataFrame(column)):
        with pytest.warns(DataConversionWarning):
            found = TextClassifier(settings=SETTINGS | {"train.steps": 2}).fit(TEXTS, labels)
        assert found.classes_.tolist() == ["north", "south"]


def test_tags_that_are_not_one_for_each_word_are_refused() -> None:
    sentences, tags = [["a", "cat"]] * 12, [["D", "N"]] * 12
    tagger = Tagger(settings={"train.steps": 2, "model.hidden": 8, "train.threads": 1}).fit(sentences, tags)
    for wrong, sentence in (
        ([["D"]] * 12, "sentence 1 has 2 words and 1 tags"),
        (tags[1:], "12 sentences and 11 lists"),
    ):
        with pytest.raises(ValueError, match=sentence):
            tagger.score(sentences, wrong)
        with pytest.raises(ValueError, match=sentence):
            clone(tagger).fit(sentences, wrong)
