"""Comprehensiveness and sufficiency: counted by hand, beside chance, as data and as panels."""

import numpy as np
import pytest

from elman.draw.panels import Lines, Table
from elman.inspect import explain
from elman.inspect.faithfulness import RANDOM, SHARES, faithfulness
from elman.inspect.methods import METHODS
from elman.inspect.saliency import saliency
from tests.inspect.small_models import TEXTS, classifier, tagger

TEXT = TEXTS[2]


def test_they_are_what_the_prediction_loses() -> None:
    model = classifier()
    found = faithfulness(model, [TEXT], ["gradient"], shares=(0.05, 0.2))
    values = np.array(saliency(model, [TEXT], ["gradient"])[0].methods["gradient"].values)
    words, order = TEXT.split(), np.argsort(-values, kind="stable").tolist()
    label = model.predict(TEXT).label
    for place, count in enumerate((1, 3)):  # of 11 words
        first = set(order[:count])
        left = " ".join(word for n, word in enumerate(words) if n not in first)
        alone = " ".join(word for n, word in enumerate(words) if n in first)
        whole, without, only = (model.predict(text).probabilities[label] for text in (TEXT, left, alone))
        assert found.curves["gradient"].comprehensiveness[place] == pytest.approx(whole - without, abs=1e-5)
        assert found.curves["gradient"].sufficiency[place] == pytest.approx(whole - only, abs=1e-5)


def test_every_method_stands_beside_chance() -> None:
    found = faithfulness(classifier(), TEXTS, seeds=3)
    assert list(found.curves) == [*METHODS, RANDOM] and found.explained == 3 and found.shares == list(SHARES)
    assert len(found.curves[RANDOM].comprehensiveness_spread) == 5 and found.curves["gradient"].sufficiency_spread == []
    best = max(METHODS, key=lambda name: found.curves[name].faithfulness)
    assert found.most_faithful == best
    assert found == faithfulness(classifier(), TEXTS, seeds=3)


def test_a_tagger_is_measured_on_ready_words_too() -> None:
    found = faithfulness(tagger("model.crf=true"), [text.split() for text in TEXTS], ["occlusion", "relevance"])
    assert list(found.curves) == ["occlusion", "relevance", RANDOM]


def test_it_is_a_view_of_all_texts_together() -> None:
    explanation = explain(classifier("model.cell=rnn"), TEXTS, "faithfulness", seeds=2)
    assert len(explanation.data) == 1 and set(explanation.data[0].refused) == {"relevance", "decomposition"}
    assert explanation.to_dict()["texts"] == list(TEXTS) and "curves" in explanation.to_dict()
    panels = explanation.page().columns[0].panels
    assert [type(panel) for panel in panels[1:4]] == [Table, Lines, Lines]
