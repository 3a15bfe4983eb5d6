import math

import numpy as np
import pytest

from elman.errors import UserError
from elman.metrics import Scores, bits, perplexity, unigram_loss


def test_guessing_evenly_has_the_perplexity_of_the_number_of_choices():
    assert perplexity(math.log(27)) == pytest.approx(27)
    assert bits(math.log(27)) == pytest.approx(math.log2(27))


@pytest.mark.parametrize("loss", [800.0, 1e300, math.inf])
def test_the_perplexity_of_a_huge_loss_is_infinite(loss):
    assert perplexity(loss) == math.inf
    assert Scores(loss, tokens=1).to_dict()["perplexity"] == math.inf


def test_the_perplexity_of_a_failed_loss_is_not_a_number():
    assert math.isnan(perplexity(math.nan))


def test_scores_as_a_report_shows_them():
    scores = Scores.from_total(20 * math.log(2), tokens=10)
    assert scores.to_dict() == {
        "loss": pytest.approx(2 * math.log(2)),
        "perplexity": pytest.approx(4),
        "bits_per_token": pytest.approx(2),
        "tokens": 10,
    }
    assert scores.to_dict(characters=10)["bits_per_character"] == pytest.approx(2)
    assert scores.to_dict(characters=40)["bits_per_character"] == pytest.approx(0.5)


def test_scores_of_nothing_are_refused():
    with pytest.raises(UserError, match="no tokens to score"):
        Scores.from_total(0.0, tokens=0)


def test_the_unigram_baseline_adds_one_to_every_count():
    loss = unigram_loss(np.array([3, 1, 0]), np.array([1, 1, 2]))
    assert loss == pytest.approx(-np.log([4 / 7, 2 / 7, 1 / 7, 1 / 7]).mean())


def test_the_unigram_baseline_refuses_what_it_cannot_score():
    with pytest.raises(UserError, match="no tokens to score"):
        unigram_loss(np.array([1, 1]), np.array([0, 0]))
    with pytest.raises(UserError, match="outside the vocabulary of 2"):
        unigram_loss(np.array([1, 1]), np.array([0, 0, 1]))
