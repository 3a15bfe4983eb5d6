import pytest

from elman.errors import UserError
from elman.metrics.tagging import tag_scores


def test_accuracy_on_all_and_on_unseen_words() -> None:
    words = [["the", "cat", "sat"], ["the", "axolotl"]]
    gold = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    predicted = [["DET", "NOUN", "NOUN"], ["DET", "NOUN"]]
    report = tag_scores(words, gold, predicted, seen={"the", "cat"}).to_dict()
    assert (report["accuracy"], report["tokens"]) == (0.8, 5)
    assert (report["unseen_accuracy"], report["unseen_tokens"]) == (0.5, 2)
    assert report["by_tag"]["VERB"]["recall"] == 0.0
    assert "spans" not in report


def test_span_tags_are_scored_as_spans_too() -> None:
    gold, predicted = [["B-PER", "I-PER", "O"]], [["I-PER", "I-PER", "O"]]
    lenient = tag_scores([["Jeff", "Elman", "spoke"]], gold, predicted, seen={"Jeff", "Elman", "spoke"})
    strict = tag_scores([["Jeff", "Elman", "spoke"]], gold, predicted, seen=set(), strict="BIO")
    assert lenient.to_dict()["spans"]["f1"] == 1.0
    assert lenient.unseen_accuracy is None
    assert strict.to_dict()["spans"]["f1"] == 0.0


def test_tokens_and_tags_of_different_number_are_named() -> None:
    with pytest.raises(UserError, match="sentence 2"):
        tag_scores([["a"], ["b"]], [["X"], ["X"]], [["X"], ["X", "X"]], seen=set())
    with pytest.raises(UserError, match="1 sentences, 1 tagged and 0 predicted"):
        tag_scores([["a"]], [["X"]], [], seen=set())
