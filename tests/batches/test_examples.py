"""Batches of examples: each once an epoch, alike in length, taken up again anywhere, streamed in order."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.batches.examples import ExampleBatches, by_length, fingerprint, in_order
from elman.errors import UserError


def batches(lengths: list[int], size: int = 4, **options: Any) -> ExampleBatches[list[int]]:
    return ExampleBatches(lengths, size, lambda rows: rows.tolist(), **options)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=70), st.integers(1, 9), st.integers(0, 3))
def test_an_epoch_has_every_example_once(lengths: list[int], size: int, seed: int) -> None:
    source = batches(lengths, size, seed=seed)
    for epoch in (1, 2):
        seen: list[int] = []
        while source.progress < epoch:
            batch = next(source)
            assert len(batch) <= size
            seen += batch
        assert sorted(seen) == list(range(len(lengths)))


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, 9)), min_size=1, max_size=70), st.integers(1, 200))
def test_batches_by_tokens_are_no_larger_than_asked(lengths: list[tuple[int, int]], tokens: int) -> None:
    source = ExampleBatches(np.array(lengths), None, lambda rows: rows.tolist(), tokens=tokens, seed=2)
    seen: list[int] = []
    for _ in range(len(source)):
        batch = next(source)
        most = max(lengths[row][0] for row in batch)
        assert len(batch) == 1 or len(batch) * most <= tokens  # padding included
        assert [lengths[row] for row in batch] == sorted(lengths[row] for row in batch)
        seen += batch
    assert sorted(seen) == list(range(len(lengths))) and source.progress == 1


def test_batches_by_tokens_are_taken_up_again() -> None:
    lengths = np.random.default_rng(1).integers(1, 40, (300, 2))

    def fresh() -> ExampleBatches[list[int]]:
        return ExampleBatches(lengths, None, lambda rows: rows.tolist(), tokens=100, seed=1)

    source, again = fresh(), fresh()
    for _ in range(len(source) + 7):
        next(source)
    again.load_state_dict(source.state_dict())
    assert [next(source) for _ in range(90)] == [next(again) for _ in range(90)]
    full = [next(fresh_) for fresh_ in [fresh()] for _ in range(len(fresh_))]
    sizes = [len(batch) * max(lengths[row, 0] for row in batch) for batch in full]
    assert np.mean(sizes) > 80  # little of what is asked for is left empty


@pytest.mark.parametrize(("size", "tokens"), [(None, None), (4, 100), (None, 0), (0, None)])
def test_a_batch_has_one_size(size: int | None, tokens: int | None) -> None:
    with pytest.raises(ValueError, match="cannot make batches"):
        ExampleBatches([1, 2], size, lambda rows: rows, tokens=tokens)


def test_batches_are_alike_in_length_and_in_another_order_each_epoch() -> None:
    lengths = list(np.random.default_rng(1).integers(1, 100, 400))
    source = batches(lengths, 8, seed=1)
    first = [next(source) for _ in range(50)]
    spans = [max(lengths[i] for i in batch) - min(lengths[i] for i in batch) for batch in first]
    assert np.mean(spans) < 5  # any eight of them would span about 77
    assert first != [next(source) for _ in range(50)]
    assert first == [next(again) for again in [batches(lengths, 8, seed=1)] for _ in range(50)]


@pytest.mark.parametrize("stop", [0, 3, 7, 25])
def test_a_saved_position_goes_on_exactly(stop: int) -> None:
    lengths = list(range(1, 30))
    whole = batches(lengths, seed=5, text="a")
    for _ in range(stop):
        next(whole)
    other = batches(lengths, seed=5, text="a")
    other.load_state_dict(whole.state_dict())
    assert other.progress == whole.progress
    assert [next(other) for _ in range(20)] == [next(whole) for _ in range(20)]


def test_other_data_are_refused() -> None:
    saved = batches([1, 2], text=fingerprint(["one", "two"])).state_dict()
    with pytest.raises(UserError, match="have changed since the run began"):
        batches([1, 2], text=fingerprint(["one", "2"])).load_state_dict(saved)


@given(st.lists(st.integers(1, 500), max_size=60), st.integers(1, 9), st.integers(1, 800))
def test_batches_by_length_hold_all_within_bounds(lengths: list[int], size: int, tokens: int) -> None:
    found = list(by_length(lengths, size, tokens=tokens))
    assert sorted(row for rows in found for row in rows) == list(range(len(lengths)))
    for rows in found:
        assert len(rows) <= size
        assert len(rows) == 1 or len(rows) * max(lengths[row] for row in rows) <= tokens


@given(st.lists(st.text(max_size=9), max_size=80), st.integers(1, 9), st.integers(1, 20))
def test_a_stream_comes_back_in_order(items: list[str], size: int, window: int) -> None:
    found = list(in_order(items, len, lambda batch: [item.upper() for item in batch], batch_size=size, window=window))
    assert found == [(item, item.upper()) for item in items]


def test_a_stream_is_read_no_further_than_its_window() -> None:
    read: list[int] = []

    def source() -> Iterator[int]:
        for number in range(1000):
            read.append(number)
            yield number

    stream = in_order(source(), lambda item: item, lambda batch: batch, batch_size=4, window=10)
    assert next(stream) == (0, 0)
    assert len(read) == 10


def test_what_came_before_a_bad_item_is_given_back_first() -> None:
    def source() -> Iterator[str]:
        yield from ("a", "b")
        raise UserError("x.txt:3 is bad")

    found = []
    with pytest.raises(UserError, match=r"x\.txt:3"):
        for pair in in_order(source(), len, lambda batch: batch, window=10):
            found.append(pair[0])
    assert found == ["a", "b"]


def test_items_that_are_made_as_they_are_asked_for_are_answered_one_by_one() -> None:
    """Whoever waits for an answer before the next question has it; what is at hand is answered together."""
    read: list[int] = []
    at_hand = {0: 1, 1: 0, 2: 2, 3: 1, 4: 0}  # how many more are there when each has come

    def source() -> Iterator[int]:
        for number in at_hand:
            read.append(number)
            yield number

    batches: list[list[int]] = []

    def work(batch: list[int]) -> list[int]:
        batches.append(sorted(batch))
        return batch

    stream = in_order(source(), lambda item: item, work, more=lambda: at_hand[read[-1]] > 0)
    assert next(stream) == (0, 0)
    assert read == [0, 1]
    assert [item for item, _ in stream] == [1, 2, 3, 4]
    assert batches == [[0, 1], [2, 3, 4]]
