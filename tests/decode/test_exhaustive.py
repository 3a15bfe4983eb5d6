import math
from itertools import product

import numpy as np
import pytest

from elman.decode.generate import generate
from elman.decode.scores import log_softmax
from elman.decode.scoring import exhaustive
from elman.errors import UserError
from elman.sampling import Sampling
from tests.decode.models import Bigram, Recurrent, Translator


def log_prob(model: Recurrent, start_id: int, ids: tuple[int, ...]) -> float:
    """One sequence, one step at a time."""
    total, state = 0.0, model.start(1)
    for before, after in zip((start_id, *ids), ids, strict=False):
        logits, state = model.step(np.array([before]), state)
        total += float(log_softmax(logits)[0, after])
    return total


@pytest.mark.parametrize(("size", "length"), [(3, 4), (5, 3), (2, 1)])
def test_equals_scoring_each_sequence_by_itself(size: int, length: int) -> None:
    model = Recurrent(size, seed=length)
    expected = {ids: log_prob(model, 1, ids) for ids in product(range(size), repeat=length)}
    found = exhaustive(model, start_id=1, length=length)
    assert {tuple(ids): score for ids, score in found} == pytest.approx(expected, abs=1e-12)
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)


def test_with_a_stop_id_nothing_follows_it() -> None:
    model, length, stop = Recurrent(3), 3, 0
    expected = {
        ids: log_prob(model, 1, ids)
        for n in range(1, length + 1)
        for ids in product(range(3), repeat=n)
        if stop not in ids[:-1] and (n == length or ids[-1] == stop)
    }
    found = exhaustive(model, start_id=1, length=length, stop_id=stop)
    assert {tuple(ids): score for ids, score in found} == pytest.approx(expected, abs=1e-12)
    assert math.fsum(math.exp(score) for _, score in found) == pytest.approx(1)


def test_a_row_of_a_model_whose_rows_differ() -> None:
    model = Translator(4)
    options = {"start_id": 1, "length": 3, "stop_id": 0}
    found = [exhaustive(model, row=row, **options) for row in range(3)]
    assert found[2] == exhaustive(model.only([2]), **options) != found[1]


def test_length_normalisation_changes_the_order_and_no_probability() -> None:
    model, options = Recurrent(3), {"start_id": 1, "length": 4, "stop_id": 0}
    plain, by_mean = exhaustive(model, **options), exhaustive(model, length_power=1, **options)
    means = [score / len(ids) for ids, score in by_mean]
    assert means == sorted(means, reverse=True)
    assert plain != by_mean and sorted(plain) == sorted(by_mean)


def test_the_likeliest_word_first_is_not_the_likeliest_sentence() -> None:
    words = ["<s>", "yes", "ok"]
    model = Bigram(
        [
            [0.1, 0.5, 0.4],  # after <s>
            [0.3, 0.4, 0.3],  # after yes: anything may follow
            [0.1, 0.2, 0.7],  # after ok: surely ok again
        ]
    )
    greedy = [new[0] for new in generate(model, [[0]], length=2, sampling=Sampling(temperature=0))]
    found = exhaustive(model, start_id=0, length=2)
    scores = {" ".join(words[i] for i in ids): math.exp(score) for ids, score in found}
    assert [words[i] for i in greedy] == ["yes", "yes"]
    assert next(iter(scores)) == "ok ok"
    assert scores["ok ok"] == pytest.approx(0.28)
    assert scores["yes yes"] == pytest.approx(0.20)


def test_equally_good_sequences_come_in_the_order_of_their_ids() -> None:
    found = exhaustive(Bigram([[0.5, 0.5]] * 2), start_id=0, length=3)
    assert [tuple(ids) for ids, _ in found] == list(product(range(2), repeat=3))


def test_too_many_sequences_are_refused_with_their_number() -> None:
    with pytest.raises(UserError, match="5 to the power of 9 sequences"):
        exhaustive(Recurrent(5), start_id=0, length=9)
    assert len(exhaustive(Recurrent(5), start_id=0, length=2, limit=25)) == 25
    with pytest.raises(UserError, match="limit of 24"):
        exhaustive(Recurrent(5), start_id=0, length=2, limit=24)


def test_a_length_below_one_is_refused() -> None:
    with pytest.raises(UserError, match="length"):
        exhaustive(Recurrent(3), start_id=0, length=0)
