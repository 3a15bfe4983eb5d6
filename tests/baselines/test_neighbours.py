"""The nearest training pair."""

import random

import numpy as np
import pytest

from elman.baselines import CopySource, NearestPair, neighbours
from elman.errors import UserError


def test_a_training_source_finds_its_own_target() -> None:
    generator = random.Random(0)
    sources = ["".join(generator.choices("abcdef ", k=generator.randint(1, 30))) + str(n) for n in range(200)]
    baseline = NearestPair.fit(sources, [f"target {n}" for n in range(200)])
    rows, cosines = baseline.nearest(sources)
    assert rows == list(range(200))
    assert np.allclose(cosines, 1.0, atol=1e-5)


def test_the_cosines_are_those_of_the_vectors() -> None:
    """Beside scikit-learn's TF-IDF, whose n-grams are not hashed."""
    text = pytest.importorskip("sklearn.feature_extraction.text")
    generator = random.Random(1)
    words = ["a", "the", "dog", "cat", "bird", "runs", "sleeps", "sings", "here", "there", "slowly"]
    lines = [" ".join(generator.choices(words, k=generator.randint(2, 7))) for _ in range(120)]
    train, test = lines[:100], lines[100:]
    vectors = text.TfidfVectorizer(analyzer="char", ngram_range=(3, 4), sublinear_tf=True, lowercase=False)
    known = vectors.fit_transform(f" {line} " for line in train)
    products = (vectors.transform(f" {line} " for line in test) @ known.T).toarray()
    rows, _ = NearestPair.fit(train, train).nearest(test)
    best = products.max(axis=1)
    assert np.allclose(products[np.arange(20), rows], best, atol=1e-5)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [f"line number {n * 7919 % 1000}" for n in range(300)]
    whole = NearestPair.fit(sources, sources).nearest(sources[::3])
    monkeypatch.setattr(neighbours, "CHUNK", 64)
    assert NearestPair.fit(sources, sources).nearest(sources[::3]) == whole


def test_nothing_in_common_gives_the_first() -> None:
    baseline = NearestPair.fit(["dog", "cat"], ["Hund", "Katze"])
    assert baseline.nearest(["xyz", "", "cat", ""]) == ([0, 0, 1, 0], [0.0, 0.0, pytest.approx(1.0, abs=1e-5), 0.0])
    assert baseline.predict(["", "cats"]) == ["Hund", "Katze"]
    assert baseline.predict([]) == []
    assert NearestPair.fit([""], ["leer"]).predict(["x"]) == ["leer"]


def test_what_cannot_be_fitted_is_refused() -> None:
    with pytest.raises(UserError, match="1 sources and 2 targets"):
        NearestPair.fit(["a"], ["b", "c"])
    with pytest.raises(UserError, match="no pairs"):
        NearestPair.fit([], [])


def test_a_copy_is_the_source() -> None:
    assert CopySource().predict(["a", "b"]) == ["a", "b"]
