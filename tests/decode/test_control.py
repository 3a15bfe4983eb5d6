from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from elman.decode import Beam, Control, Hypothesis, beam_search, forced_log_probs
from elman.decode.control import holds
from elman.errors import UserError
from tests.decode.models import Bigram, Translator

START, STOP, SIZE = 1, 0, 9
MODEL = Translator(SIZE, seed=4)
NEVER_STOPS = Bigram([[0.0, 0.5, 0.3, 0.2]] * 4)


def search(rows: int, controls: Any, model: Any = MODEL, **settings_: Any) -> list[list[Hypothesis]]:
    beam = Beam(**{"size": 5, "length": 10, "n_best": 3, **settings_})
    return beam_search(model, rows, start_id=START, stop_id=STOP, beam=beam, controls=controls)


words = st.lists(st.integers(1, SIZE - 1), min_size=1, max_size=3).map(tuple)
prefixes = st.lists(st.integers(1, SIZE - 1), max_size=3).map(tuple)
phrases = st.lists(words, max_size=2).map(tuple)
controls = st.builds(Control, prefix=prefixes, require=phrases, forbid=phrases)


@settings(max_examples=25, deadline=None)
@given(st.lists(controls, min_size=1, max_size=4), st.sampled_from([1, 3, 8]), st.sampled_from([0, 3]))
def test_what_is_asked_is_kept_to_or_refused(asked: list[Control], size: int, block_ngrams: int) -> None:
    options: dict[str, Any] = {"size": size, "n_best": min(size, 3), "block_ngrams": block_ngrams}
    try:
        found = search(len(asked), asked, **options)
    except UserError as refused:
        assert "\n" not in str(refused)
        assume(False)
    for row, (control, hypotheses) in enumerate(zip(asked, found, strict=True)):
        for one in hypotheses:
            assert tuple(one.ids[: len(control.prefix)]) == control.prefix
            assert all(holds(one.ids, phrase) for phrase in control.require)
            assert not any(holds(one.ids, phrase) for phrase in control.forbid)
            ends = {"stop_id": STOP} if one.finished else {}
            (expected,) = forced_log_probs(MODEL.only([row]), [one.ids], start_id=START, **ends)
            assert one.log_prob == pytest.approx(expected, abs=1e-6)


@settings(max_examples=8, deadline=None)
@given(st.lists(controls, min_size=5, max_size=5))
def test_a_batch_gives_each_row_what_it_gets_alone(asked: list[Control]) -> None:
    asked = [Control(), *asked]
    try:
        together = search(6, asked)
    except UserError:
        assume(False)
    for row, hypotheses in enumerate(together):
        (alone,) = search(1, [asked[row]], model=MODEL.only([row]))
        assert [one.ids for one in hypotheses] == [one.ids for one in alone]


def test_one_control_is_for_every_row() -> None:
    assert all(one.ids[:2] == [5, 6] for row in search(3, Control(prefix=(5, 6))) for one in row)


def test_a_phrase_is_put_where_it_costs_least() -> None:
    # 4 is likely after 3 alone, and 3 after 2 alone: the phrase comes in the course of things, not at once.
    rows = [[1.0, 0, 0, 0, 0], [0.01, 0, 0.97, 0.01, 0.01], [0.1, 0.0, 0.3, 0.59, 0.01]]
    rows += [[0.6, 0.0, 0.0, 0.0, 0.4], [0.97, 0, 0.01, 0.01, 0.01]]
    plain = search(1, None, model=Bigram(rows), length_power=0)[0][0]
    asked = search(1, Control(require=((4,),)), model=Bigram(rows), length_power=0)[0][0]
    assert plain.ids == [2, 3]
    assert asked.ids == [2, 3, 4] and asked.finished


def test_overlapping_phrases_are_both_there() -> None:
    for one in search(1, Control(require=((3, 4), (4, 5))), length=4)[0]:
        assert holds(one.ids, (3, 4)) and holds(one.ids, (4, 5))


def test_a_phrase_whose_beginning_repeats_is_followed_rightly() -> None:
    # After 2 2 another 2 still leaves 2 2 of the phrase 2 2 3.
    model = Bigram([[1.0, 0, 0, 0], [0, 0, 1.0, 0], [0.0, 0, 0.9, 0.1], [1.0, 0, 0, 0]])
    found = search(1, Control(require=((2, 2, 3),)), model=model, size=4, length=6, length_power=0)
    assert found[0][0].ids == [2, 2, 3]


def test_the_last_chance_for_a_phrase_is_taken() -> None:
    (best, *_) = search(1, Control(require=((2, 3),)), model=NEVER_STOPS, size=2, n_best=1, length=2)[0]
    assert best.ids == [2, 3]


def test_what_follows_a_prefix_is_the_models_own() -> None:
    row = search(1, Control(prefix=(3, 3, 3)), n_best=1, size=9, length=4, block_ngrams=1)[0][0]
    assert row.ids[:3] == [3, 3, 3] and 3 not in row.ids[3:]


@pytest.mark.parametrize(
    ("control", "sentence"),
    [
        (Control(require=((1, 2, 3), (4, 5))), "hold 5 given ids but may have 4 at most"),
        (Control(prefix=(1, 2, 3, 4, 5)), "hold 5 given ids but may have 4 at most"),
        (Control(prefix=(1, 2, 3), require=((4, 5),)), "hold 5 given ids"),
        (Control(require=((1, 2),), forbid=((2,),)), r"asks for \[1, 2\] and forbids \[2\]"),
        (Control(prefix=(3, 4), forbid=((3, 4),)), r"asks for \[3, 4\] and forbids \[3, 4\]"),
        (Control(require=((99,),)), "sentence 2 requires the id 99, which is outside the vocabulary of 0 to 8"),
        (Control(forbid=((-1,),)), "forbids the id -1"),
        (Control(prefix=(9,)), "begins with the id 9"),
        (Control(require=((STOP,),)), "requires the stop id 0"),
    ],
)
def test_what_cannot_be_is_refused(control: Control, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        search(2, [Control(), control], length=4)


def test_a_phrase_without_ids_is_refused() -> None:
    with pytest.raises(UserError, match="at least one id"):
        Control(forbid=((2,), ()))


def test_a_phrase_that_just_fits_is_no_reason_to_refuse() -> None:
    assert search(1, Control(prefix=(1, 2), require=((2, 3), (2,))), length=3)[0][0].ids == [1, 2, 3]


def test_a_dead_end_is_refused_and_not_returned() -> None:
    with pytest.raises(UserError, match="sentence 1 has no sequence"):
        search(1, Control(forbid=((1,), (2,), (3,))), model=NEVER_STOPS, size=2, n_best=1)


def test_controls_are_one_a_row() -> None:
    with pytest.raises(UserError, match="each of the 3 rows, not 2"):
        search(3, [Control(), Control()])
