"""Edit distance and the rates that are made of it."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.metrics import edit_distance, edit_scores

text = st.text("abc", max_size=8)


def by_definition(one: str, other: str) -> int:
    """The recursion of the definition, without any row."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        replaced = distance(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, replaced)

    return distance(len(one), len(other))


@given(text, text)
def test_it_is_the_distance_of_the_definition(one: str, other: str) -> None:
    assert edit_distance(one, other) == by_definition(one, other) == edit_distance(list(other), list(one))


def test_known_distances() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("", "abc") == 3
    assert edit_distance("intention", "execution") == 5
    assert edit_distance(["T", "AH0", "M", "EY1"], ["T", "AH0", "M", "AA1"]) == 1


def test_any_reference_makes_a_line_right() -> None:
    several = [[["R", "EH", "D"], ["R", "IY", "D"]], [["K", "AE", "T"]]]
    scores = edit_scores([["R", "IY", "D"], ["K", "AE"]], several)
    assert (scores.exact_match, scores.word_error_rate) == (0.5, 0.5)
    assert scores.error_rate == 1 / 6
    assert scores.token_accuracy == 5 / 6
    assert scores.to_dict()["lines"] == 2


def test_too_much_is_wrong_too() -> None:
    scores = edit_scores(["abcd"], [["ab"]])
    assert (scores.error_rate, scores.token_accuracy, scores.exact_match) == (1.0, 0.5, 0.0)
    assert edit_scores(["ab"], [["ab"]]).token_accuracy == 1.0


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(UserError, match="1 hypotheses and 2 lists"):
        edit_scores(["a"], [["a"], ["b"]])
    with pytest.raises(UserError, match="hypothesis 1 has no reference"):
        edit_scores(["a"], [[]])
