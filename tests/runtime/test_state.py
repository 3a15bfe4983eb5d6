"""The state of a stream: saved, restored, copied, of constant size, and refused where it does not belong."""

import threading

import numpy as np
import pytest

from elman.errors import UserError
from elman.runtime import Engine, State
from tests.runtime.networks import VOCABULARY, make


def read(engine: Engine, ids: list[int], state: State) -> tuple[np.ndarray, State]:
    for id_ in ids:
        log_probs, state = engine.step([id_] * state.rows, state)
    return log_probs, state


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("int8", [False, True])
def test_a_saved_state_goes_on_exactly(cell: str, int8: bool) -> None:
    network = make(cell, layers=2, learned_state=True)
    engine = Engine.of(network, int8=int8)
    _, middle = read(engine, [1, 2, 3], engine.start())
    expected, end = read(engine, [4, 5], middle)
    saved = middle.to_bytes()
    again = Engine.of(network, int8=int8)  # another process would make it anew
    found, also = read(again, [4, 5], State.from_bytes(saved))
    assert np.array_equal(found, expected)
    assert also == end
    assert len(saved) == len(end.to_bytes())  # whatever the length of the text


def test_reading_leaves_a_state_as_it_was() -> None:
    engine = Engine.of(make("lstm"))
    state = engine.start()
    before = state.to_bytes()
    first, _ = engine.step([3], state)
    second, _ = engine.step([3], state.copy())
    assert np.array_equal(first, second)
    assert state.to_bytes() == before


def test_rows_are_selected_and_forgotten() -> None:
    engine = Engine.of(make("gru", learned_state=True))
    _, state = engine.step([1, 2, 3], engine.start(3))
    swapped, _ = engine.step([4, 5], state.select([2, 0]))
    whole, _ = engine.step([5, 9, 4], state)
    np.testing.assert_allclose(swapped, whole[[2, 0]], atol=1e-6)
    fresh, _ = engine.step([7, 7, 7], engine.forget(state, [1]))
    begun, _ = engine.step([7], engine.start())
    np.testing.assert_allclose(fresh[1], begun[0], atol=1e-6)
    assert not np.allclose(fresh[0], begun[0])


def test_a_state_of_another_engine_is_refused() -> None:
    one, other = Engine.of(make("lstm", seed=1)), Engine.of(make("lstm", seed=2))
    small, int8 = Engine.of(make("lstm", hidden=8, seed=1)), Engine.of(make("lstm", seed=1), int8=True)
    for stranger in (other, small, int8):
        with pytest.raises(UserError, match="another engine"):
            one.step([1], stranger.start())
        with pytest.raises(UserError, match="another engine"):
            one.log_probs([[1]], [[2]], stranger.start())


def test_every_damaged_byte_is_noticed() -> None:
    engine = Engine.of(make("rnn", hidden=3))
    saved = engine.step([1], engine.start())[1].to_bytes()
    for place in range(len(saved)):
        damaged = saved[:place] + bytes([saved[place] ^ 0x41]) + saved[place + 1 :]
        with pytest.raises(UserError):
            State.from_bytes(damaged)
        with pytest.raises(UserError):
            State.from_bytes(saved[:place])
    with pytest.raises(UserError, match="finite"):
        State(np.full((1, 3), np.nan, dtype=np.float32), b"12345678")


@pytest.mark.parametrize(
    ("ids", "what"),
    [
        ([VOCABULARY], "must lie in"),
        ([-1], "must lie in"),
        ([2**40], "must lie in"),
        ([0.5], "integers"),
        ([1, 2], "should be 1 integers"),
        ([[1]], "should be 1 integers"),
        ([], "should be 1 integers"),
        (["a"], "integers"),
    ],
)
def test_wrong_ids(ids: list, what: str) -> None:
    engine = Engine.of(make("lstm"))
    with pytest.raises(UserError, match=what):
        engine.step(ids, engine.start())


def test_wrong_shapes_and_labels() -> None:
    engine, labelled = Engine.of(make("lstm")), Engine.of(make("lstm", labels=3))
    for inputs, targets in (([1, 2], [2, 3]), ([[1, 2]], [[1]]), ([[1], [2]], [[1]]), ([], [])):
        with pytest.raises(UserError):
            engine.log_probs(inputs, targets)
    with pytest.raises(UserError, match="2 rows and the state has 1"):
        engine.log_probs([[1], [2]], [[1], [2]], engine.start())
    with pytest.raises(UserError, match="reads by label"):
        labelled.step([1], labelled.start())
    with pytest.raises(UserError, match="must lie in 0 to 2"):
        labelled.step([1], labelled.start(), labels=[3])
    with pytest.raises(UserError, match="reads by label"):
        labelled.generate([[1]], length=3)
    with pytest.raises(UserError):
        engine.start(0)


def test_odd_calls_are_told() -> None:
    engine = Engine.of(make("lstm"))
    odd: list = [
        lambda: engine.step([1], None),
        lambda: engine.step(None, engine.start()),
        lambda: engine.step([None], engine.start()),
        lambda: engine.step([2**70], engine.start()),
        lambda: engine.step([True], engine.start()),
        lambda: engine.log_probs([[1.5]], [[1]]),
        lambda: engine.log_probs([[1], [2, 3]], [[1], [2, 3]]),
        lambda: engine.log_probs([[1]], [[VOCABULARY]]),
        lambda: engine.start(1.5),
        lambda: engine.start("a"),
        lambda: engine.start().select([0.5]),
        lambda: engine.start().select([-1]),
        lambda: engine.forget(engine.start(), [1]),
        lambda: State.from_bytes("text"),
        lambda: State([[1.0]], b"12345678"),
        lambda: Engine.of(make("lstm"), threads=1.5),
    ]
    for call in odd:
        with pytest.raises(UserError):
            call()


def test_a_text_of_no_length() -> None:
    engine = Engine.of(make("lstm"))
    found, state = engine.log_probs(np.zeros((2, 0), dtype=int), np.zeros((2, 0), dtype=int))
    assert found.shape == (2, 0)
    assert state == engine.start(2)


def test_several_threads_use_one_engine() -> None:
    engine = Engine.of(make("lstm", hidden=200), threads=2)
    expected = [list(engine.generate([[seed]], length=200, seed=seed)) for seed in range(4)]
    found: list = [None] * 4

    def write(seed: int) -> None:
        found[seed] = list(engine.generate([[seed]], length=200, seed=seed))

    threads = [threading.Thread(target=write, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected
