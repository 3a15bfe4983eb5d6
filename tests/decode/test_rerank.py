from itertools import product

import numpy as np
import pytest

from elman.decode import Beam, beam_search, forced_log_probs, rerank, tune
from elman.errors import UserError
from tests.decode.models import Bigram, Translator

NAMES = ["forward", "channel", "length"]


def pool(seed: int, sentences: int = 30, hypotheses: int = 6) -> tuple[list[list[dict[str, float]]], np.ndarray]:
    """Features at random, and a quality of each hypothesis that two of them tell of."""
    random = np.random.default_rng(seed)
    values = random.normal(size=(sentences, hypotheses, 3))
    quality = values @ np.array([1.0, 2.0, 0.0]) + 0.1 * random.normal(size=(sentences, hypotheses))
    return [[dict(zip(NAMES, one, strict=True)) for one in row.tolist()] for row in values], quality


def test_the_weighted_sum_decides() -> None:
    features, _ = pool(0)
    weights = {"forward": 0.3, "channel": -1.0}
    expected = [max(range(6), key=lambda i: 0.3 * row[i]["forward"] - row[i]["channel"]) for row in features]
    assert rerank(features, weights) == expected


def test_the_first_of_equals_is_chosen_and_lists_may_differ_in_length() -> None:
    assert rerank([[{"a": 1.0}, {"a": 1.0}], [{"a": -3.0}]], {"a": 1.0}) == [0, 0]


def test_a_noisy_channel_overrules_the_model_that_found_the_hypotheses() -> None:
    # The direct model likes 2 a little better; the source is likelier given 3.
    direct = Bigram([[1.0, 0, 0, 0], [0, 0, 0.55, 0.45], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    back = Bigram([[1.0, 0, 0, 0], [0, 0, 0.1, 0.9], [0.8, 0, 0.1, 0.1], [0.2, 0, 0.8, 0]])
    (found,) = beam_search(direct, 1, start_id=1, stop_id=0, beam=Beam(size=2, n_best=2, length=4))
    source = [2]
    channel = [forced_log_probs(back, [source], start_id=one.ids[0])[0] for one in found]
    features = [[{"forward": one.log_prob, "channel": log_prob} for one, log_prob in zip(found, channel, strict=True)]]
    assert [one.ids for one in found] == [[2], [3]]
    assert rerank(features, {"forward": 1.0}) == [0]
    assert rerank(features, {"forward": 1.0, "channel": 1.0}) == [1]


@pytest.mark.parametrize("seed", range(3))
def test_tuning_finds_weights_about_as_good_as_a_fine_grid(seed: int) -> None:
    features, quality = pool(seed)
    rows = np.arange(len(quality))

    def judged(chosen: list[int]) -> float:
        return float(quality[rows, chosen].mean())

    tuned = tune(features, judged, start={"forward": 1.0, "channel": 0.0, "length": 0.0})
    grid = product(np.linspace(-1, 1, 9), repeat=3)
    best = max(judged(rerank(features, dict(zip(NAMES, map(float, weights), strict=True)))) for weights in grid)
    assert tuned.quality == judged(rerank(features, tuned.weights))
    assert tuned.quality >= best - 0.01
    assert tuned.quality > judged(rerank(features, {"forward": 1.0})) + 0.1
    assert sum(map(abs, tuned.weights.values())) == pytest.approx(1)


def test_tuning_a_quality_of_the_whole_corpus() -> None:
    # Not a mean over sentences: how close the chosen are to a length of 60 in sum, as BLEU's brevity penalty wants.
    features = [[{"score": -float(n), "length": float(n)} for n in (1, 2, 3, 4)] for _ in range(20)]
    tuned = tune(features, lambda chosen: -abs(sum(c + 1 for c in chosen) - 80), start={"score": 1.0, "length": 0.0})
    assert tuned.quality == 0 and tuned.weights["length"] > tuned.weights["score"]


def test_tuning_gives_the_same_again_and_judges_nothing_twice() -> None:
    features, quality = pool(5)
    asked: list[tuple[int, ...]] = []

    def judged(chosen: list[int]) -> float:
        asked.append(tuple(chosen))
        return float(quality[np.arange(len(quality)), chosen].mean())

    start = dict.fromkeys(NAMES, 1.0)
    first = tune(features, judged, start=start, seed=3)
    assert len(asked) == len(set(asked))
    assert tune(features, judged, start=start, seed=3) == first


def test_tuning_never_makes_it_worse() -> None:
    features, _ = pool(1)
    start = {"forward": 0.4, "channel": 1.0, "length": -0.2}
    wanted = rerank(features, start)
    tuned = tune(features, lambda chosen: -float(sum(a != b for a, b in zip(chosen, wanted, strict=True))), start=start)
    assert tuned.quality == 0 and rerank(features, tuned.weights) == wanted


def test_forced_scores_do_not_depend_on_the_batch() -> None:
    model = Translator(8)
    texts = [[3, 4], [], [5, 5, 5, 2], [7]]
    together = forced_log_probs(model, texts, start_id=1, stop_id=0)
    alone = [forced_log_probs(model.only([i]), [text], start_id=1, stop_id=0)[0] for i, text in enumerate(texts)]
    assert together == pytest.approx(alone)
    assert forced_log_probs(model, [], start_id=1) == []


def test_what_cannot_be_ranked_is_refused() -> None:
    with pytest.raises(UserError, match="hypothesis 2 of sentence 1 has no feature 'b'"):
        rerank([[{"a": 1.0, "b": 2.0}, {"a": 1.0}]], {"a": 1.0, "b": 1.0})
    with pytest.raises(UserError, match="sentence 2 has no hypotheses"):
        rerank([[{"a": 1.0}], []], {"a": 1.0})
    with pytest.raises(UserError, match="finite"):
        rerank([[{"a": -float("inf")}]], {"a": 1.0})
    with pytest.raises(UserError, match="at least one feature"):
        rerank([[{"a": 1.0}]], {})
    with pytest.raises(UserError, match="no sentences"):
        rerank([], {"a": 1.0})
