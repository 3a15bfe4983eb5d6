"""Parts that share no key."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.records import Pair, split_by_key, split_pairs

PAIRS = [Pair(f"s{number % 40}", f"t{number % 60}") for number in range(300)]
KEYS: dict[str, Callable[[Pair], object]] = {
    "source": lambda pair: pair.source,
    "target": lambda pair: pair.target,
    "pair": lambda pair: pair,
}


@pytest.mark.parametrize("by", ["source", "target", "pair"])
def test_no_key_is_in_two_parts(by: str) -> None:
    parts = split_pairs(PAIRS, {"dev": 0.1, "test": 0.2}, by=by)  # type: ignore[arg-type]
    assert list(parts) == ["train", "dev", "test"]
    assert sorted((p for part in parts.values() for p in part), key=repr) == sorted(PAIRS, key=repr)
    keys = [{KEYS[by](pair) for pair in part} for part in parts.values()]
    assert not keys[0] & keys[1] and not keys[0] & keys[2] and not keys[1] & keys[2]
    total = sum(map(len, keys))
    assert [len(part) for part in keys[1:]] == [round(0.1 * total), round(0.2 * total)]


def test_the_seed_and_the_keys_decide_not_their_order() -> None:
    parts = split_pairs(PAIRS, {"test": 0.2}, seed=3)
    backwards = split_pairs(PAIRS[::-1], {"test": 0.2}, seed=3)
    assert parts["test"] == backwards["test"][::-1]
    assert parts["test"] != split_pairs(PAIRS, {"test": 0.2}, seed=4)["test"]


@given(st.integers(3, 40), st.integers(1, 3), st.integers(0, 5))
def test_every_row_is_in_one_part(different: int, times: int, seed: int) -> None:
    keys = [str(number) for number in range(different)] * times
    parts = split_by_key(keys, {"dev": 0.1, "test": 0.3}, seed=seed)
    assert sorted(row for rows in parts.values() for row in rows) == list(range(len(keys)))
    assert all(parts.values())


def test_shares_that_leave_nothing_are_refused() -> None:
    for shares in ({"test": 1.0}, {"dev": 0.5, "test": 0.5}, {"dev": 0.0}):
        with pytest.raises(UserError, match="fractions above 0 that leave some for training"):
            split_pairs(PAIRS, shares)
    with pytest.raises(
        UserError, match=r"^1 distinct entry is too few to hold out test: give more data, or --test FILE$"
    ):
        split_pairs(PAIRS[:1], {"test": 0.5})
    with pytest.raises(UserError, match="not by 'sauce'"):
        split_pairs(PAIRS, {"test": 0.5}, by="sauce")  # type: ignore[arg-type]
