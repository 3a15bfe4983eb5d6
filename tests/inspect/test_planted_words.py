"""Saliency finds the words that decide, and is more faithful than chance; weights that were drawn anew change it."""

import pytest

from benchmarks.planted_words import planted_texts, randomised, ranked_first, train
from elman.inspect.attribution import spearman
from elman.inspect.faithfulness import faithfulness
from elman.inspect.saliency import saliency
from elman.tasks.classify import TextClassifier

TEXTS = planted_texts(60, seed=2)


@pytest.fixture(scope="module")
def model() -> TextClassifier:
    return train("gru", 300)


def test_planted_words_are_ranked_first(model: TextClassifier) -> None:
    right = [model.predict(one.text).label == one.label for one in TEXTS]
    assert sum(right) >= 58
    shares = ranked_first(TEXTS, saliency(model, [one.text for one in TEXTS]))
    assert shares["gradient"] >= 0.7
    assert min(shares[name] for name in ("integrated", "occlusion", "relevance", "decomposition")) >= 0.8


def test_the_methods_are_more_faithful_than_chance(model: TextClassifier) -> None:
    found = faithfulness(model, [one.text for one in TEXTS])
    assert found.better_than_chance
    chance = found.curves["random"]
    for name in ("integrated", "occlusion", "relevance", "decomposition"):
        assert found.curves[name].mean_comprehensiveness > chance.mean_comprehensiveness + 0.1
        assert found.curves[name].mean_sufficiency < chance.mean_sufficiency - 0.1


def test_saliency_follows_the_weights(model: TextClassifier) -> None:
    texts = [one.text for one in TEXTS[:20]]
    before = saliency(model, texts, ["gradient", "relevance"], target="good")
    *_, (_, twin) = randomised(model, seed=0)
    after = saliency(twin, texts, ["gradient", "relevance"], target="good")
    for name in ("gradient", "relevance"):
        pairs = zip(before, after, strict=True)
        mean = sum(spearman(one.methods[name].values, two.methods[name].values) for one, two in pairs) / len(texts)
        assert abs(mean) < 0.4
