import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.batches import IdStream
from elman.batches.batches import (
    LineBatches,
    Reversed,
    StreamBatches,
    StreamWindows,
    WholeLines,
    reverse_line,
    stack_lines,
)
from elman.text import Tokenizer

START = 999


def stream(size: int, documents: tuple[int, ...] = (0,), labels: list[int] | None = None) -> IdStream:
    """Ids that say where they stand: 0, 1, 2, ..."""
    return IdStream(np.arange(size, dtype=np.uint16), documents, labels)


def epoch(batches: StreamBatches | LineBatches) -> list[StreamWindows | WholeLines]:
    found, number = [], int(batches.progress)
    while int(batches.progress) == number:
        found.append(next(batches))
    return found


@pytest.mark.parametrize("bptt", ["regular", "random", "full"])
@given(size=st.integers(2, 400), batch_size=st.integers(1, 6), steps=st.integers(1, 40), seed=st.integers(0, 9))
@settings(deadline=None, max_examples=60)
def test_an_epoch_has_every_target_once(bptt: str, size: int, batch_size: int, steps: int, seed: int) -> None:
    batches = StreamBatches(stream(size), min(batch_size, size), steps, start_id=START, bptt=bptt, seed=seed)
    for _ in range(3):
        shift, length = int(batches.starts[0]), batches.length
        found = epoch(batches)
        targets = np.concatenate([batch.targets for batch in found], axis=1)  # B x T
        assert targets.flatten().tolist() == list(range(shift, shift + length * len(targets)))
        left = size - targets.size
        assert left < steps + len(targets)  # what the offset skips, and what does not divide evenly
        for batch in found:
            expected = np.where(batch.targets > 0, batch.targets - 1, START)
            assert np.array_equal(batch.inputs, expected)
        assert [batch.fresh for batch in found] == [True, *[False] * (len(found) - 1)]


def test_rows_go_on_where_they_stopped() -> None:
    found = epoch(StreamBatches(stream(1000), 4, 13, start_id=START))
    for before, after in pairwise(found):
        assert np.array_equal(before.targets[:, -1], after.inputs[:, 0])
    assert all(batch.targets.shape == (4, 13) for batch in found[:-1])


def test_random_windows_vary_around_steps_and_full_takes_all() -> None:
    lengths = [b.targets.shape[1] for b in epoch(StreamBatches(stream(60_000), 2, 70, start_id=0, bptt="random"))]
    assert 60 < np.median(lengths) < 80
    assert len(set(lengths)) > 5
    assert 0 < sum(length < 50 for length in lengths) < 0.2 * len(lengths)
    whole = epoch(StreamBatches(stream(100), 3, 7, start_id=0, bptt="full"))
    assert len(whole) == 1
    assert whole[0].targets.shape[1] >= 31


def test_documents_reset_exactly_where_they_begin() -> None:
    documents = (0, 10, 11, 37, 70)
    batches = StreamBatches(stream(90, documents), 3, 8, start_id=START, seed=5)
    resets = set()
    for batch in epoch(batches):
        for step, rows in batch.resets.items():
            resets |= {int(batch.targets[row, step]) for row in rows}
            assert all(int(batch.inputs[row, step]) == START for row in rows)
        elsewhere = [(r, t) for r in range(3) for t in range(batch.targets.shape[1])]
        elsewhere = [(r, t) for r, t in elsewhere if t not in batch.resets or r not in batch.resets[t].tolist()]
        assert all(int(batch.inputs[r, t]) == int(batch.targets[r, t]) - 1 for r, t in elsewhere)
    covered = range(int(batches.starts[0]), 90)
    assert resets >= {place for place in documents if place in covered and place < 87}
    assert resets <= set(documents)
    running = StreamBatches(stream(90, documents), 3, 8, start_id=START, reset_documents=False)
    assert all(not batch.resets for batch in epoch(running))


def test_forgetting_drops_states_before_windows_and_changes_no_token() -> None:
    kept, dropped = (epoch(StreamBatches(stream(600), 3, 10, start_id=START, forget=chance)) for chance in (0.0, 1.0))
    assert all(not batch.resets for batch in kept[1:])
    for plain, batch in zip(kept, dropped, strict=True):
        assert batch.resets[0].tolist() == [0, 1, 2]
        assert np.array_equal(batch.inputs, plain.inputs)
    some = epoch(StreamBatches(stream(6000), 3, 10, start_id=START, forget=0.2))
    count = sum(len(rows) for batch in some for rows in batch.resets.values())
    assert 0.1 * 600 < count < 0.3 * 600


def test_epochs_differ_and_seeds_repeat() -> None:
    def lines(seed: int) -> list[list[int]]:
        batches = LineBatches(stream(60, tuple(range(0, 60, 3))), 4, start_id=START, seed=seed)
        return [batch.targets.padded(START).flatten().tolist() for _ in range(2) for batch in epoch(batches)]

    assert lines(1) == lines(1)
    assert lines(1) != lines(2)
    assert lines(1)[:5] != lines(1)[5:]


def test_reversed_reads_backwards() -> None:
    backward = Reversed(stream(10))
    assert backward.read(0, 10).tolist() == list(range(9, -1, -1))
    assert backward.read(2, 5).tolist() == [7, 6, 5]
    assert backward.in_text_order(backward.read(0, 10)).tolist() == list(range(10))
    found = epoch(StreamBatches(backward, 2, 3, start_id=START))
    assert all(np.array_equal(b.inputs[:, 1:], b.targets[:, :-1]) or b.resets for b in found)


@pytest.mark.parametrize("cut_off", [False, True])
def test_reversed_documents_still_end_with_their_end_token(cut_off: bool) -> None:
    end = Tokenizer.eos_id
    tokens = [5, 6, 7, end, 8, 9] + ([] if cut_off else [end])
    backward = Reversed(IdStream(np.array(tokens, dtype=np.uint8), documents=[0, 4]))
    expected = [9, 8, end, 7, 6, 5] + ([] if cut_off else [end])
    assert backward.documents.tolist() == [0, 3]
    for start in range(len(tokens) + 1):
        for stop in range(start, len(tokens) + 1):
            assert backward.read(start, stop).tolist() == expected[start:stop]
    assert backward.in_text_order(np.array(expected)).tolist() == tokens


DOCUMENTS = st.lists(st.integers(1, 9), min_size=1, max_size=40)


@given(lengths=DOCUMENTS, batch_size=st.integers(1, 7), backward=st.booleans())
@settings(deadline=None)
def test_lines_come_once_an_epoch_whole(lengths: list[int], batch_size: int, backward: bool) -> None:
    ends = np.cumsum(lengths)
    starts = ends - lengths
    labels = [int(start) % 5 for start in starts]
    ids = stream(int(ends[-1]), tuple(starts), labels)
    batches = LineBatches(ids, batch_size, start_id=START, backward=backward)
    for _ in range(2):
        seen = []
        for batch in epoch(batches):
            assert batch.labels is not None
            for inputs, targets in zip(batch.inputs, batch.targets, strict=True):
                assert inputs.tolist() == [START, *targets[:-1]]
            for row, label in zip(batch.targets, batch.labels, strict=True):
                text = reverse_line(row) if backward else row
                assert int(label) == int(text[0]) % 5
                seen.append(text.tolist())
        assert sorted(seen) == [list(range(s, e)) for s, e in zip(starts, ends, strict=True)]


def test_lines_of_like_length_go_together() -> None:
    lengths = np.random.default_rng(0).integers(1, 50, 640)
    starts = np.cumsum(lengths) - lengths
    found = epoch(LineBatches(stream(int(lengths.sum()), tuple(starts)), 16, start_id=START))
    padded = sum(batch.targets.padded().size for batch in found)
    assert padded < 1.1 * lengths.sum()


def test_nothing_can_be_reversed() -> None:
    backward = Reversed(stream(0))
    assert (len(backward), backward.read(0, 0).tolist()) == (0, [])
    assert backward.in_text_order(np.zeros(0)).tolist() == []


def test_a_document_ends_where_the_next_begins() -> None:
    ids = stream(7, (0, 4, 6))
    assert ids.document_ends.tolist() == [4, 6, 7]
    assert ids.view(2, 5).document_ends.tolist() == [2, 3]
    backward = Reversed(ids)
    assert backward.document_ends.tolist() == [*backward.documents[1:].tolist(), 7]


def test_a_line_read_backwards_keeps_its_end() -> None:
    batch = stack_lines(stream(7, (0, 4, 6)), np.array([0, 1, 2]), START, backward=True)
    assert batch.targets.padded(START).tolist() == [[2, 1, 0, 3], [4, 5, START, START], [6, START, START, START]]
    assert str([batch]) == "[lines 1, 2, 3 ...]"


def same(left: StreamWindows | WholeLines, right: StreamWindows | WholeLines) -> bool:
    if isinstance(left, WholeLines):
        return np.array_equal(left.targets.data, right.targets.data) and left.place == right.place
    return (
        np.array_equal(left.inputs, right.inputs)
        and np.array_equal(left.targets, right.targets)
        and left.fresh == right.fresh
        and {k: v.tolist() for k, v in left.resets.items()} == {k: v.tolist() for k, v in right.resets.items()}
    )


@pytest.mark.parametrize("bptt", ["regular", "random", "full", "lines"])
@given(taken=st.integers(0, 40), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=25)
def test_a_saved_position_gives_the_same_rest(bptt: str, taken: int, seed: int) -> None:
    import json

    def make(number: int) -> StreamBatches | LineBatches:
        ids = stream(500, (0, 40, 41, 333))
        if bptt == "lines":
            return LineBatches(stream(500, tuple(range(0, 500, 7))), 5, start_id=START, seed=number)
        return StreamBatches(ids, 3, 11, start_id=START, bptt=bptt, forget=0.3, seed=number)

    batches = make(seed)
    for _ in range(taken):
        next(batches)
    saved = json.loads(json.dumps(batches.state_dict()))
    resumed = make(seed)
    resumed.load_state_dict(saved)
    for _ in range(30):
        assert resumed.progress == batches.progress
        assert same(next(resumed), next(batches))


def test_data_are_read_and_batched_without_pytorch() -> None:
    rooms = ("records", "batches.batches", "batches.examples", "batches.ids", "corpora", "generated.builtin", "cache")
    code = f"import sys, {', '.join(f'elman.{room}' for room in rooms)}; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
