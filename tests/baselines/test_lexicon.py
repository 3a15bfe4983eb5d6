import sys
import warnings

import pytest

from elman.baselines.lexicon import CharacterNgrams, MostFrequentClass, MostFrequentTag, MultilabelCharacterNgrams
from elman.errors import UserError

ITALIAN = ["rossini", "bellini", "puccini", "martini", "fellini", "paganini", "cherubini", "bernini"]
RUSSIAN = ["ivanov", "petrov", "smirnov", "popov", "pavlov", "orlov", "romanov", "nabokov"]


def test_the_most_frequent_class_is_the_answer_to_all() -> None:
    baseline = MostFrequentClass.fit(["1", "2", "3"], ["b", "a", "a"])
    assert baseline.predict(["x", "y"]) == ["a", "a"]
    several = MostFrequentClass.fit(["1", "2", "3"], [frozenset("ab"), frozenset("ba"), frozenset("c")])
    assert several.predict(["x"]) == [{"a", "b"}]


def test_each_word_gets_its_own_most_frequent_tag() -> None:
    sentences = [["I", "can", "open", "the", "can"], ["can", "she", "sing"]]
    tags = [["PRON", "AUX", "VERB", "DET", "NOUN"], ["AUX", "PRON", "VERB"]]
    baseline = MostFrequentTag.fit([*sentences, ["sing", "run"]], [*tags, ["VERB", "VERB"]])
    assert baseline.predict([["the", "can", "fell"], []]) == [["DET", "AUX", "VERB"], []]


def test_character_ngrams_learn_endings() -> None:
    pytest.importorskip("sklearn")
    labels = ["Italian"] * len(ITALIAN) + ["Russian"] * len(RUSSIAN)
    baseline = CharacterNgrams.fit(ITALIAN + RUSSIAN, labels)
    assert baseline.predict(["mancini", "kuznetsov", "tortellini"]) == ["Italian", "Russian", "Italian"]
    assert baseline.predict([]) == []
    again = CharacterNgrams.fit(ITALIAN + RUSSIAN, labels)
    assert again.predict(["rossov", "ivani", "zzz"]) == baseline.predict(["rossov", "ivani", "zzz"])


def test_character_ngrams_learn_more_than_two_classes() -> None:
    pytest.importorskip("sklearn")
    greek = [name[:-2] + "poulos" for name in ITALIAN]
    labels = ["Italian"] * len(ITALIAN) + ["Russian"] * len(RUSSIAN) + ["Greek"] * len(greek)
    baseline = CharacterNgrams.fit(ITALIAN + RUSSIAN + greek, labels)
    assert baseline.predict(["mancini", "kuznetsov", "papadopoulos"]) == ["Italian", "Russian", "Greek"]


def test_character_ngrams_with_several_labels() -> None:
    pytest.importorskip("sklearn")
    texts = [*ITALIAN, *RUSSIAN, *(f"{a} {b}" for a, b in zip(ITALIAN, RUSSIAN, strict=True))]
    labels = [{"name", "it"}] * len(ITALIAN) + [{"name", "ru"}] * len(RUSSIAN) + [{"name", "it", "ru"}] * len(ITALIAN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a label that every text has is nothing to warn of
        baseline = MultilabelCharacterNgrams.fit(texts, labels)
    assert baseline.predict(["mancini", "kuznetsov", "mancini kuznetsov"]) == [
        {"name", "it"},
        {"name", "ru"},
        {"name", "it", "ru"},
    ]
    assert baseline.predict([]) == []


def test_character_ngrams_of_one_label() -> None:
    pytest.importorskip("sklearn")
    baseline = MultilabelCharacterNgrams.fit(ITALIAN + RUSSIAN, [{"it"}] * len(ITALIAN) + [set()] * len(RUSSIAN))
    assert baseline.predict(["mancini", "kuznetsov"]) == [{"it"}, set()] and baseline.predict([]) == []


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.linear_model", None)
    with pytest.raises(UserError, match=r"pip install 'elman\[baselines\]'"):
        CharacterNgrams.fit(["a", "b"], ["x", "y"])


def test_wrong_input_is_one_sentence() -> None:
    with pytest.raises(UserError, match="2 texts and 1 labels"):
        MostFrequentClass.fit(["a", "b"], ["x"])
    with pytest.raises(UserError, match="no examples"):
        MostFrequentClass.fit([], [])
    with pytest.raises(UserError, match="all labels are 'x'"):
        CharacterNgrams.fit(["a", "b"], ["x", "x"])
    with pytest.raises(UserError, match="all training texts are empty"):
        CharacterNgrams.fit(["", " "], ["x", "y"])
    with pytest.raises(UserError, match="no training text has a label"):
        MultilabelCharacterNgrams.fit(["a"], [[]])
    with pytest.raises(UserError, match="sentence 2 has 1 tokens and 2 tags"):
        MostFrequentTag.fit([["a"], ["b"]], [["X"], ["X", "Y"]])
    with pytest.raises(UserError, match="no tokens"):
        MostFrequentTag.fit([[]], [[]])
