"""Scores of captions, beside those of the COCO evaluation."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx

from elman.metrics.captions import caption_scores, cider_d, rouge_l

WORDS = ["a", "the", "dog", "cat", "runs", "sits", "on", "in", "snow"]
CAPTION = st.lists(st.sampled_from(WORDS), min_size=1, max_size=9).map(" ".join)
IMAGE = st.tuples(CAPTION, st.lists(CAPTION, min_size=1, max_size=5))


@settings(max_examples=60, deadline=None)
@given(st.lists(IMAGE, min_size=1, max_size=6))
def test_scores_are_those_of_the_coco_evaluation(images: list[tuple[str, list[str]]]) -> None:
    pytest.importorskip("pycocoevalcap")
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge

    said = {number: [caption] for number, (caption, _) in enumerate(images)}
    right = {number: several for number, (_, several) in enumerate(images)}
    found = caption_scores([caption for caption, _ in images], [several for _, several in images])
    cider, each = Cider().compute_score(right, said)
    assert found["cider"] == approx(100 * cider, abs=1e-6)
    words = [caption.split() for caption, _ in images]
    assert cider_d(words, [[one.split() for one in several] for _, several in images]) == approx(list(each), abs=1e-8)
    assert found["rouge_l"] == approx(100 * Rouge().compute_score(right, said)[0], abs=1e-6)
    theirs, _ = Bleu(4).compute_score(right, said, verbose=0)
    for order, score in enumerate(theirs, 1):  # which puts a tiny number in the place of no match at all
        assert found[f"bleu_{order}"] == approx(100 * score, rel=1e-6) if found[f"bleu_{order}"] else score < 0.05


def test_what_is_right_and_what_is_wrong() -> None:
    dogs, buses = "a dog runs in the snow", "two red buses are parked here"
    right = caption_scores([dogs, buses], [[dogs, "some dog"], [buses]])
    assert right["bleu_4"] == right["rouge_l"] == approx(100) and right["cider"] > 500
    wrong = caption_scores([buses, dogs], [[dogs], [buses]])
    assert wrong["bleu_1"] == wrong["cider"] == wrong["rouge_l"] == 0 < wrong["chrf"] < right["chrf"]


def test_nothing_said_is_worth_nothing() -> None:
    assert rouge_l([], [["a", "dog"]]) == 0
    assert cider_d([[]], [[["a", "dog"]]]) == [0]
    assert caption_scores([""], [["a dog"]])["bleu_1"] == 0
