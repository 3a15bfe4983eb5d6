"""Language models that write: the exercises solved."""

import math
from collections import Counter

import numpy as np

import elman
from elman.decode import Sampling, next_ids, uniform
from elman.lab import minimal_numpy

P = np.array([0.1, 0.45, 0.05, 0.3, 0.1])


def test_1_which_index_is_the_first() -> None:
    """With u > sum the first index would be 0 for every u above 0.5, and none for those below."""
    cumulative = np.cumsum([0.5, 0.5])
    u = np.random.default_rng(0).random(10_000)
    as_in_the_notes = [next((place for place, total in enumerate(cumulative) if one > total), None) for one in u]
    right = [next(place for place, total in enumerate(cumulative) if total > one) for one in u]
    assert Counter(as_in_the_notes)[None] > 4000 and 1 not in as_in_the_notes
    assert abs(np.mean(right) - 0.5) < 0.02


def test_2_clipping_by_value_turns_a_gradient() -> None:
    gradient = np.array([30.0, 4.0])
    by_value = np.clip(gradient, -5, 5)
    by_norm = gradient * min(1, 5 / np.linalg.norm(gradient))

    def direction(vector):
        return math.degrees(math.atan2(vector[1], vector[0]))

    assert direction(by_norm) == direction(gradient)
    assert abs(direction(by_value) - direction(gradient)) > 30


def test_3_top_k_and_top_p() -> None:
    logits, numbers = np.tile(np.log(P), (5000, 1)), uniform(0, np.arange(5000), 0)
    assert set(next_ids(logits, Sampling(top_k=2), None, numbers).tolist()) == {1, 3}
    assert set(next_ids(logits, Sampling(top_p=0.8), None, numbers).tolist()) == {0, 1, 3}  # 0 before 4, its equal


def sample_without_repeating(w, first, count, chance):
    """As `minimal_numpy.sample`, but what would end a trigram that is there already has no chance."""
    ids, h = [first], np.zeros_like(w["b_h"])
    for _ in range(count):
        h = np.tanh(w["W_xh"][:, ids[-1]] + w["W_hh"] @ h + w["b_h"])
        p = np.exp(w["W_hy"] @ h + w["b_y"])
        for one, two, three in zip(ids, ids[1:], ids[2:], strict=False):
            if [one, two] == ids[-2:]:
                p[three] = 0
        ids.append(int(np.searchsorted(np.cumsum(p / p.sum()), chance.random(), side="right")))
    return ids


def test_4_no_three_characters_twice() -> None:
    text, chance = "to be or not to be, that is the question. " * 3, np.random.default_rng(0)
    characters = sorted(set(text))
    ids = [characters.index(one) for one in text]
    w = minimal_numpy.draw_weights(len(characters), 24, chance)
    for _ in minimal_numpy.train(w, ids, 400):
        pass
    written = sample_without_repeating(w, ids[0], 120, chance)
    trigrams = list(zip(written, written[1:], written[2:], strict=False))
    assert len(set(trigrams)) == len(trigrams)
    free = [ids[0], *minimal_numpy.sample(w, np.zeros(24), ids[0], 120, chance)]
    assert len(set(zip(free, free[1:], free[2:], strict=False))) < 119  # left to itself it does repeat


def test_5_the_perplexity_of_shares() -> None:
    """e to the entropy of the words' shares; a uniform vocabulary of V words has V."""
    words = ["the", "cat", "the", "dog", "the", "cow"]
    shares = Counter(words)
    loss = -sum(math.log(shares[word] / len(words)) for word in words) / len(words)
    assert math.exp(loss) < len(shares)
    assert math.isclose(math.exp(-sum(math.log(1 / 4) for _ in range(9)) / 9), 4)
    assert elman.metrics.perplexity(loss) == math.exp(loss)
