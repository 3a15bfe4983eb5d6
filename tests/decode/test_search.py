import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.decode import Beam, Hypothesis, Sampling, SearchTree, beam_search, exhaustive, forced_log_probs, generate
from elman.errors import RunError, UserError
from tests.decode.models import Bigram, Ints, Logits, Recurrent, Translator
from tests.decode.reference import simple_beam_search

START, STOP = 1, 0
SIZE = 9
POWERS = [0.0, 0.6, 1.0, 2.0]


def search(model: Any, rows: int = 1, beam: Beam | None = None, **options: Any) -> list[list[Hypothesis]]:
    return beam_search(model, rows, start_id=START, stop_id=STOP, beam=beam or Beam(), **options)


beams = st.builds(
    Beam,
    size=st.integers(4, SIZE),
    length=st.integers(3, 9),
    n_best=st.integers(1, 4),
    length_power=st.sampled_from(POWERS),
    min_length=st.integers(0, 3),
    coverage=st.sampled_from([0.0, 0.0, 0.5]),
    block_ngrams=st.integers(0, 2),
    stop_at=st.sampled_from([None, None, 4, 5, 20]),
)
models = st.builds(Translator, st.just(SIZE), seed=st.integers(0, 50))


@pytest.mark.parametrize("length_power", POWERS)
@pytest.mark.parametrize("row", [0, 2])
def test_a_beam_wide_enough_finds_the_best_of_all_sequences(length_power: float, row: int) -> None:
    model = Translator(40, seed=row, possible=3)  # 3 + 9 + 27 sequences at most, all of which fit
    beam = Beam(size=40, length=3, n_best=10, length_power=length_power)
    found = search(model, row + 1, beam)[row]
    best = exhaustive(model, start_id=START, length=3, stop_id=STOP, length_power=length_power, row=row)
    assert [[*one.ids, STOP] if one.finished else one.ids for one in found] == [one.ids for one in best[:10]]
    assert [one.log_prob for one in found] == pytest.approx([one.log_prob for one in best[:10]], abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(models, beams)
def test_equals_the_search_written_down_one_hypothesis_at_a_time(model: Translator, beam: Beam) -> None:
    for row, found in enumerate(search(model, 3, beam)):
        expected = simple_beam_search(model, row, START, STOP, beam)
        assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
        assert [one.score for one in found] == pytest.approx([one.score for one in expected], abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(models, beams, st.lists(st.integers(3, 9), min_size=7, max_size=7))
def test_a_batch_gives_each_row_what_it_gets_alone(model: Translator, beam: Beam, lengths: list[int]) -> None:
    together = search(model, 7, beam, lengths=lengths)
    alone = [search(model.only([row]), 1, beam, lengths=[lengths[row]])[0] for row in range(7)]
    assert [[one.ids for one in row] for row in together] == [[one.ids for one in row] for row in alone]


@pytest.mark.parametrize(("stop_at", "finished"), [(1, 1), (2, 2), (5, 5), (None, 2)])
def test_a_search_ends_at_as_many_finished_hypotheses_as_it_is_told(stop_at: int | None, finished: int) -> None:
    model, tree = Bigram([[0.5, 0.3, 0.2]] * 3), SearchTree()  # every step finishes one, more likely than the others
    search(model, 1, Beam(size=2, length=9, length_power=4.0, stop_at=stop_at), tree=tree)
    fates = [node.fate for node in tree.nodes]
    assert fates.count("finished") == finished


def test_a_search_that_stops_sooner_misses_a_better_one() -> None:
    model = Translator(SIZE, seed=3)
    scores = [search(model, 1, Beam(size=3, length=12, stop_at=n))[0][0].score for n in (1, 3, 50)]
    assert scores == sorted(scores) and scores[0] < scores[-1]


@settings(max_examples=20, deadline=None)
@given(models, beams)
def test_n_best_are_sorted_distinct_and_as_likely_as_the_model_says(model: Translator, beam: Beam) -> None:
    for row, found in enumerate(search(model, 4, beam)):
        assert 1 <= len(found) <= beam.n_best
        assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)
        assert len({(*one.ids, one.finished) for one in found}) == len(found)
        for one in found:
            ends = {"stop_id": STOP} if one.finished else {}
            (expected,) = forced_log_probs(model.only([row]), [one.ids], start_id=START, **ends)
            assert one.log_prob == pytest.approx(expected, abs=1e-6)
            length = len(one.ids) + one.finished
            assert beam.min_length <= length <= beam.length and STOP not in one.ids
            if not beam.coverage:
                assert one.score == pytest.approx(one.log_prob / length**beam.length_power)
            grams = [tuple(one.ids[i : i + 2]) for i in range(len(one.ids) - 1)]
            assert beam.block_ngrams != 2 or len(set(grams)) == len(grams)


@pytest.mark.parametrize("size", [256, 300, 1024, 1111])
def test_large_vocabularies_are_searched_as_exactly_as_small_ones(size: int) -> None:
    model, beam = Translator(size, seed=3), Beam(size=6, n_best=6, length=6)
    for row, found in enumerate(search(model, 3, beam)):
        assert [one.ids for one in found] == [one.ids for one in simple_beam_search(model, row, START, STOP, beam)]


def test_single_precision_keeps_to_forced_decoding() -> None:
    class Single(Recurrent):
        def step(self, ids: Ints, state: torch.Tensor) -> tuple[Logits, torch.Tensor]:
            logits, state = super().step(ids, state)
            return logits.astype(np.float32), state

    model = Single(2000)
    ((found,),) = search(model, 1, Beam(length=80, min_length=80))
    (expected,) = forced_log_probs(model, [found.ids], start_id=START)
    assert len(found.ids) == 80
    assert found.log_prob == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("length_power", POWERS)
def test_a_beam_of_one_is_greedy(length_power: float) -> None:
    model = Translator(SIZE, seed=3)
    rows: list[list[int]] = [[] for _ in range(8)]
    greedy = Sampling(temperature=0)
    for new in generate(model, [[]] * 8, length=9, sampling=greedy, stop_ids={STOP}, start_id=START):
        for row, id_ in new.items():
            rows[row].append(id_)
    found = search(model, 8, Beam(size=1, length=9, length_power=length_power))
    assert [one.ids for (one,) in found] == rows
    assert len({len(row) for row in rows}) > 1


class YesOrOk:
    """The tree of the course: </s>, yes and ok at two steps, then the end. A state is the step and the last word."""

    first = np.array([[0.1, 0.5, 0.4]])
    second = np.array([[1.0, 0.0, 0.0], [0.3, 0.4, 0.3], [0.1, 0.2, 0.7]])
    third = np.array([[1.0, 0.0, 0.0]])

    def start(self, batch_size: int) -> int:
        return 0

    def step(self, ids: Ints, state: int) -> tuple[Logits, int]:
        here = [self.first.repeat(len(ids), axis=0), self.second[ids], self.third.repeat(len(ids), axis=0)]
        with np.errstate(divide="ignore"):
            return np.log(here[state]), state + 1

    def select(self, state: int, rows: Ints) -> int:
        return state


def test_ok_ok_is_likelier_than_what_greedy_says() -> None:
    plain = Beam(size=1, length=3, length_power=0)
    ((greedy,),) = beam_search(YesOrOk(), 1, start_id=0, stop_id=0, beam=plain)
    ((best, second),) = beam_search(YesOrOk(), 1, start_id=0, stop_id=0, beam=replace(plain, size=2, n_best=2))
    assert greedy.ids == [1, 1] and math.exp(greedy.log_prob) == pytest.approx(0.20)
    assert best.ids == [2, 2] and math.exp(best.log_prob) == pytest.approx(0.28)
    assert second.ids == [1, 1] and best.finished and second.finished


def test_length_normalisation_prefers_the_longer_of_two() -> None:
    # After the start: the end with 0.4, or 2 with 0.6; then 2 again or the end, one as likely as the other.
    model = Bigram([[1.0, 0.0, 0.0], [0.4, 0.0, 0.6], [0.5, 0.0, 0.5]])
    best = {power: search(model, 1, Beam(size=3, length=6, length_power=power))[0][0].ids for power in (0.0, 1.0)}
    assert best == {0.0: [], 1.0: [2]}  # 0.4 against 0.3; log 0.4 against half of log 0.3


def test_a_longer_hypothesis_that_can_still_win_is_waited_for() -> None:
    # [2] ends with a mean of log 0.55; going on costs log 0.45 once and nothing after: it wins from three ids on.
    rows = [[1.0, 0, 0, 0], [0, 0, 1.0, 0], [0.55, 0, 0, 0.45], [0.02, 0, 0, 0.98]]
    long, short = Beam(size=2, length=12), Beam(size=2, length=3, length_power=0)
    assert len(search(Bigram(rows), 1, long)[0][0].ids) == 12
    assert search(Bigram(rows), 1, short)[0][0].ids == [2]


def test_a_sentence_that_is_decided_costs_nothing_more() -> None:
    # 0.9 ends at once, so without normalisation nothing open can win after the first step.
    model = Bigram([[1.0, 0.0, 0.0], [0.9, 0.05, 0.05], [0.9, 0.05, 0.05]])
    assert search(model, 5, Beam(size=3, length=50, length_power=0))[4][0].ids == []
    assert model.stepped == 5


def test_finished_hypotheses_leave_the_batch() -> None:
    # Two of three end at the second step: 1 row, then 2 (3 and 4 go on), then those that are left.
    model = Bigram([[1.0, 0, 0, 0], [0, 0, 0.5, 0.5], [1.0, 0, 0, 0], [0, 0, 0, 1.0]])
    found = search(model, 1, Beam(size=3, length=6, n_best=2))[0]
    assert {(*one.ids, one.finished) for one in found} == {(2, True), (3, 3, 3, 3, 3, 3, False)}
    assert model.stepped == 1 + 2 + 4 * 1


def test_limits_of_length_belong_to_rows() -> None:
    never = Bigram([[0.0, 1.0], [0.0, 1.0]])
    found = search(never, 3, Beam(size=1, length=9), lengths=[4, 1, 7])
    assert [(len(one.ids), one.finished) for (one,) in found] == [(4, False), (1, False), (7, False)]


@settings(max_examples=10, deadline=None)
@given(models, beams)
def test_the_tree_tells_what_the_search_did(model: Translator, beam: Beam) -> None:
    tree = SearchTree()
    assert search(model, 3, beam, tree=tree) == search(model, 3, beam)
    nodes = tree.to_json()
    assert [node["id"] for node in nodes] == list(range(len(nodes)))
    for row, found in enumerate(search(model, 3, beam)):
        told = []
        for node in tree.of_row(row):
            path, at = [], node
            while at.parent is not None:
                path.append(at.token)
                assert tree.nodes[at.parent].step == at.step - 1 and tree.nodes[at.parent].fate == "kept"
                at = tree.nodes[at.parent]
            told.append((path[::-1], node.fate, node.score))
        ended = [each for each in told if each[1] in ("finished", "cut")]
        best = sorted(ended, key=lambda each: -each[2])[: beam.n_best]
        assert [score for _, _, score in best] == pytest.approx([one.score for one in found])
        assert best[0][0] == [*found[0].ids, *[STOP] * found[0].finished]
        assert max(len(ids) for ids, _, _ in told) <= beam.length


def test_coverage_prefers_what_has_attended_to_the_whole_source() -> None:
    class Attentive:
        """`2` attends to the first place, `3` to the second; the end follows two of them. `2 2` is the likelier."""

        def start(self, batch_size: int) -> Ints:
            return np.zeros((batch_size, 2), np.int64)  # the last id, the number of steps

        def step(self, ids: Ints, state: Ints) -> tuple[Logits, Ints]:
            table = np.array([[0, 0, 0.6, 0.4], [0, 0, 0.6, 0.4], [1.0, 0, 0, 0]])
            with np.errstate(divide="ignore"):
                return np.log(table[state[:, 1]]), np.stack([ids, state[:, 1] + 1], axis=1)

        def select(self, state: Ints, rows: Ints) -> Ints:
            return state[rows]

        def attention(self, state: Ints) -> Logits:
            weights = np.array([[0.0, 0, 0], [0.0, 0, 0], [1.0, 0, 0], [0.1, 0.9, 0]])
            return weights[state[:, 0]]

    beam = Beam(size=4, length=3, n_best=4, length_power=0)
    assert search(Attentive(), 1, beam)[0][0].ids == [2, 2]
    covering = search(Attentive(), 1, replace(beam, coverage=0.2), source_lengths=[2])[0]
    assert covering[0].ids in ([2, 3], [3, 2])
    best = covering[0]
    assert best.score == pytest.approx(best.log_prob + 0.2 * math.log(0.9))
    padded = search(Attentive(), 1, replace(beam, coverage=0.2))[0][0]  # a third place that nothing looks at
    assert padded.score == pytest.approx(best.score + 0.2 * math.log(1e-6))


def test_no_rows() -> None:
    assert search(Recurrent(5), 0) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"size": 0}, "size must be"),
        ({"length": 0}, "length must be"),
        ({"size": 2, "n_best": 3}, "n_best must be from 1 to the size of the beam, 2"),
        ({"length_power": -1}, "length_power"),
        ({"min_length": 5, "length": 4}, "min_length is 5 and the greatest length 4"),
        ({"min_length": -1}, "min_length"),
        ({"coverage": math.nan}, "coverage"),
        ({"coverage": 1e308}, r"coverage must be 0 \(off\) or the weight of the penalty, 100 at most, not 1e\+308"),
        ({"block_ngrams": -2}, "block_ngrams"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        Beam(**options)


def test_what_the_model_makes_impossible_is_refused() -> None:
    with pytest.raises(UserError, match="a beam of 6 is larger than the vocabulary of 5"):
        search(Recurrent(5), 1, Beam(size=6))
    with pytest.raises(UserError, match="stop id"):
        beam_search(Recurrent(5), 1, start_id=1, stop_id=5, beam=Beam())
    with pytest.raises(UserError, match="attention"):
        search(Recurrent(5), 1, Beam(coverage=0.2))
    with pytest.raises(UserError, match="one limit for each of the 2 rows, not 1"):
        search(Recurrent(5), 2, lengths=[4])
    with pytest.raises(UserError, match="min_length is 3 and the greatest length 2"):
        search(Recurrent(5), 2, Beam(min_length=3), lengths=[4, 2])
    with pytest.raises(UserError, match="source_lengths"):
        search(Translator(5), 2, Beam(coverage=1), source_lengths=[4])


def test_a_model_gone_wrong_is_told() -> None:
    with pytest.raises(RunError, match="not finite"):
        search(Bigram([[math.nan] * 3] * 3), 1, Beam(size=2))


def test_the_model_keeps_its_logits_and_no_gradient() -> None:
    model = Bigram([[0.2, 0.3, 0.5]] * 3)
    before = model.logits.copy()
    search(model, 2, Beam(size=2, length=5, min_length=4, block_ngrams=2))
    assert np.array_equal(model.logits, before)
    assert torch.is_grad_enabled()
