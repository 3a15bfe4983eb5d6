import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.decode import log_softmax
from elman.decode.sampling import kept, next_ids, penalise, uniform
from elman.errors import RunError, UserError
from elman.sampling import Sampling

LAST = 1 - 2.0**-53  # the largest random number there is

# Quarters, so that ties are common and dividing and adding are exact.
logit_rows = st.lists(st.integers(-24, 24).map(lambda n: n / 4), min_size=1, max_size=9)
uniforms = st.floats(0, LAST)
samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.25, 0.7, 1.0, 3.0]),
    top_k=st.integers(0, 12),
    top_p=st.floats(0.01, 1.0),
    repetition_penalty=st.sampled_from([1.0, 1.3, 2.0]),
)


def choose(logits: list[float], u: float = 0.5, suppress: tuple[int, ...] = (), **settings: Any) -> int:
    row = np.array([logits])
    return next_ids(row, Sampling(**settings), None, np.array([u]), suppress).item()


def as_documented(logits: list[float], sampling: Sampling, seen: list[bool], u: float) -> int:
    """docs/sampling.md in plain Python, one id at a time."""
    theta = sampling.repetition_penalty
    z = [(x / theta if x > 0 else x * theta) if s else x for x, s in zip(logits, seen, strict=True)]
    z = [(x - max(z)) / sampling.temperature for x in z]
    rank = sorted(range(len(z)), key=lambda i: (-z[i], i))[: sampling.top_k or None]
    total = sum(math.exp(z[i]) for i in rank)
    keep, before = set(), 0.0
    for i in rank:
        if sampling.top_p == 1 or before < sampling.top_p * total:
            keep.add(i)
        before += math.exp(z[i])
    weights = [math.exp(z[i]) if i in keep else 0.0 for i in range(len(z))]
    threshold, cumulative = u * sum(weights), 0.0
    for i, weight in enumerate(weights):
        cumulative += weight
        if cumulative > threshold:
            return i
    raise AssertionError("unreachable")


@settings(deadline=None)
@given(logit_rows, samplings, uniforms, st.data())
def test_the_choice_is_the_documented_one(logits: list[float], how: Sampling, u: float, data: st.DataObject) -> None:
    seen = data.draw(st.lists(st.booleans(), min_size=len(logits), max_size=len(logits)))
    chosen = next_ids(np.array([logits]), how, np.array([seen]), np.array([u]))
    expected = as_documented(logits, how, seen, u)
    if chosen.item() != expected:  # only where a rounding of exp can tip it
        nudged = {as_documented(logits, how, seen, max(0.0, min(LAST, u + e))) for e in (-1e-12, 1e-12)}
        top_p = {
            as_documented(logits, Sampling(**{**how.__dict__, "top_p": min(1.0, how.top_p + e)}), seen, u)
            for e in (-1e-12, 1e-12)
        }
        assert chosen.item() in nudged | top_p


@settings(deadline=None)
@given(logit_rows, uniforms)
def test_temperature_zero_is_argmax_with_the_lowest_id_among_equals(logits: list[float], u: float) -> None:
    assert choose(logits, u, temperature=0) == logits.index(max(logits))


@pytest.mark.parametrize(
    ("u", "expected"),
    [(0.0, 0), (0.124, 0), (0.126, 1), (0.374, 1), (0.376, 2), (0.874, 2), (0.876, 3), (LAST, 3)],
)
def test_inverse_transform_on_a_known_distribution(u: float, expected: int) -> None:
    assert choose([math.log(p) for p in (0.125, 0.25, 0.5, 0.125)], u) == expected


def test_equal_logits_split_the_interval_evenly_in_the_order_of_ids() -> None:
    assert [choose([3.0] * 4, u) for u in (0.0, 0.25, 0.5, 0.75, LAST)] == [0, 1, 2, 3, 3]


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_frequencies_are_those_of_the_softmax(temperature: float) -> None:
    n, logits = 50_000, np.array([1.5, -1.0, 0.0, 0.5, -0.3])
    u = uniform(3, np.arange(n), 0)
    ids = next_ids(np.tile(logits, (n, 1)), Sampling(temperature=temperature), None, u)
    expected = n * np.exp(log_softmax(logits[None] / temperature))[0]
    chi_square = float(((np.bincount(ids, minlength=5) - expected) ** 2 / expected).sum())
    assert chi_square < 18.5  # 4 degrees of freedom: exceeded once in a thousand


def test_top_k_keeps_the_k_likeliest_and_lower_ids_first_among_equals() -> None:
    scores = np.array([[1.0, 3.0, 2.0, 2.0, 2.0]])
    assert kept(scores, Sampling(top_k=3)).tolist() == [[False, True, True, True, False]]
    assert kept(scores, Sampling(top_k=1)).tolist() == [[False, True, False, False, False]]


@pytest.mark.parametrize("top_k", [0, 5, 6, 1000])
def test_top_k_of_the_vocabulary_or_more_keeps_all(top_k: int) -> None:
    assert kept(np.zeros((1, 5)), Sampling(top_k=top_k)).all()


@pytest.mark.parametrize(
    ("top_p", "ids"),
    [(1e-9, [2]), (0.49, [2]), (0.51, [0, 2]), (0.74, [0, 2]), (0.76, [0, 1, 2]), (1, [0, 1, 2, 3])],
)
def test_top_p_keeps_the_fewest_that_reach_it(top_p: float, ids: list[int]) -> None:
    scores = np.log(np.array([[0.25, 0.125, 0.5, 0.125]]))
    assert kept(scores, Sampling(top_p=top_p))[0].nonzero()[0].tolist() == ids


def test_top_p_is_a_share_of_what_top_k_left() -> None:
    scores = np.log(np.array([[0.4, 0.3, 0.2, 0.1]]))
    assert kept(scores, Sampling(top_p=0.5)).sum() == 2
    assert kept(scores, Sampling(top_p=0.5, top_k=2)).sum() == 1  # 0.4 of 0.7 is more than half


@settings(deadline=None)
@given(logit_rows, samplings, uniforms)
def test_the_choice_is_among_the_kept(logits: list[float], how: Sampling, u: float) -> None:
    row = np.array([logits])
    chosen = next_ids(row, how, None, np.array([u])).item()
    mask = kept((row - row.max()) / how.temperature, how)
    assert mask[0, chosen]
    assert 1 <= mask.sum() <= (how.top_k or len(logits))


@settings(deadline=None)
@given(logit_rows, st.integers(1, 9))
def test_top_k_depends_on_the_order_of_logits_alone(logits: list[float], top_k: int) -> None:
    scores, how = np.array([logits]), Sampling(top_k=top_k)
    stretched = np.sign(scores) * np.abs(scores) ** 3 + scores  # rises wherever the logit does
    assert np.array_equal(kept(scores, how), kept(stretched, how))


@settings(deadline=None)
@given(logit_rows, samplings, uniforms, st.integers(-40, 40))
def test_a_constant_added_to_all_logits_changes_nothing(logits: list[float], how: Sampling, u: float, c: int) -> None:
    plain = Sampling(how.temperature, how.top_k, how.top_p)
    rows = np.array([logits, [x + c for x in logits]])
    a, b = next_ids(rows, plain, None, np.array([u, u])).tolist()
    assert a == b


@settings(deadline=None)
@given(st.lists(st.integers(-2000, 2000), min_size=1, max_size=9, unique=True), samplings, st.randoms())
def test_what_is_kept_does_not_depend_on_where_an_id_stands(logits: list[int], how: Sampling, random: Any) -> None:
    order = list(range(len(logits)))
    random.shuffle(order)
    scores = np.array([logits]) / 100
    assert np.array_equal(kept(scores, how)[:, order], kept(scores[:, order], how))


def test_penalty_follows_the_sign_and_touches_only_seen_ids() -> None:
    scores = np.array([[3.0, -3.0, 0.0, 3.0, -math.inf]])
    seen = np.array([[True, True, True, False, True]])
    assert penalise(scores, seen, 1.5).tolist() == [[2.0, -4.5, 0.0, 3.0, -math.inf]]


def test_penalty_turns_the_choice_away_from_what_was_seen() -> None:
    logits, zero = np.array([[2.0, 1.9]]), np.zeros(1)
    seen = np.array([[True, False]])
    greedy = Sampling(temperature=0, repetition_penalty=1.2)
    assert next_ids(logits, greedy, None, zero).item() == 0
    assert next_ids(logits, greedy, seen, zero).item() == 1
    assert logits.tolist() == [[2.0, pytest.approx(1.9)]]  # the caller's logits are left alone


@settings(deadline=None)
@given(uniforms, samplings)
def test_all_suppressed_but_one(u: float, how: Sampling) -> None:
    chosen = next_ids(np.array([[9.0, -9.0, 5.0]]), how, None, np.array([u]), {0, 2})
    assert chosen.tolist() == [1]


def test_suppressed_ids_are_passed_over_at_both_ends() -> None:
    assert choose([0.0, 0.0, 0.0], 0.0, suppress=(0,)) == 1
    assert choose([0.0, 0.0, 0.0], LAST, suppress=(2,)) == 1
    assert choose([5.0, 1.0, 0.0], temperature=0, suppress=(0,)) == 1


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 3000), st.integers(0, 2**32))
def test_the_largest_random_number_still_finds_a_possible_id(size: int, seed: int) -> None:
    logits = 8 * uniform(seed, 0, np.arange(size))
    logits[size // 2 + 1 :] = -math.inf
    chosen = next_ids(logits[None], Sampling(), None, np.array([LAST])).item()
    assert chosen == size // 2


@pytest.mark.parametrize("temperature", [1e-320, 1e-300, 1e-6])
def test_a_tiny_temperature_is_as_good_as_greedy(temperature: float) -> None:
    assert choose([1.0, 40.0, -800.0], LAST, temperature=temperature) == 1


def test_half_precision_logits_are_widened_first() -> None:
    logits = np.array([[1.0, 2.0, 3.0]])
    u = np.array([0.2])
    assert np.array_equal(
        next_ids(logits.astype(np.float16), Sampling(), None, u), next_ids(logits, Sampling(), None, u)
    )


def test_everything_suppressed_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="every id is suppressed"):
        choose([1.0, 2.0], suppress=(0, 1))


@pytest.mark.parametrize("suppress", [(-1,), (2,)])
def test_suppressed_ids_outside_the_vocabulary_are_refused(suppress: tuple[int, ...]) -> None:
    with pytest.raises(UserError, match="0 to 1"):
        choose([1.0, 2.0], suppress=suppress)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_stop_the_run(bad: float) -> None:
    with pytest.raises(RunError, match="not finite"):
        choose([1.0, bad])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", math.nan),
        ("temperature", math.inf),
        ("top_k", -1),
        ("top_p", 0.0),
        ("top_p", 1.01),
        ("top_p", math.nan),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", math.inf),
        ("seed", -1),
        ("seed", 2**64),
    ],
)
def test_a_wrong_setting_is_named_with_its_value(name: str, value: float) -> None:
    with pytest.raises(UserError, match=name) as error:
        Sampling(**{name: value})  # type: ignore[arg-type]
    assert str(value) in str(error.value)


def test_rows_are_chosen_independently() -> None:
    logits = uniform(1, np.arange(20)[:, None], np.arange(7)) * 5
    u = uniform(2, np.arange(20), 0)
    how = Sampling(top_k=5, top_p=0.8)

    def alone(row: int) -> np.ndarray:
        return next_ids(logits[row : row + 1], how, None, u[row : row + 1])

    assert next_ids(logits, how, None, u).tolist() == [alone(row).item() for row in range(20)]
