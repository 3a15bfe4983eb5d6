"""A greedy search in one compiled call finds what the search finds that asks for every step."""

import signal
import threading
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman import kernels
from elman.decode import Beam, Control, Greedy, Hypothesis, NothingFound, SearchTree, beam_search
from elman.errors import RunError, UserError
from elman.ragged import Ints, Ragged
from elman.runtime import CompiledTranslator, quantise
from elman.runtime.weights import arrays_of
from tests.nn import translators

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

SIZE = translators.SIDES.target.size


class StepByStep:
    """A step model that does not say that it could go all the way by itself."""

    def __init__(self, steps: Any) -> None:
        self.start, self.step, self.select, self.attention = steps.start, steps.step, steps.select, steps.attention


def translator(
    decoder: str = "luong", attention: str = "general", *, int8: bool = False, threads: int = 1, **sizes: Any
) -> CompiledTranslator:
    net = translators.network(decoder, attention, **sizes).float()
    for parameter in net.parameters():
        torch.nn.init.normal_(parameter)  # so that the likeliest id is not always the same
    return CompiledTranslator.of(net, arrays=quantise(arrays_of(net)) if int8 else None, threads=threads)


def both_ways(
    compiled: CompiledTranslator, sources: Ragged, beam: Beam, **asked: Any
) -> tuple[list[list[Hypothesis]], list[list[Hypothesis]]]:
    steps, ends = compiled.steps(sources), {"start_id": 1, "stop_id": 2}
    assert isinstance(steps, Greedy) and not isinstance(StepByStep(steps), Greedy)
    return (
        beam_search(steps, len(sources), beam=beam, **ends, **asked),
        beam_search(StepByStep(steps), len(sources), beam=beam, **ends, **asked),
    )


def assert_same(found: list[list[Hypothesis]], right: list[list[Hypothesis]]) -> None:
    assert [[(one.ids, one.finished) for one in row] for row in found] == [
        [(one.ids, one.finished) for one in row] for row in right
    ]
    for (one,), (other,) in zip(found, right, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, rel=1e-5, abs=1e-5)
        assert one.score == pytest.approx(other.score, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("combination", translators.COMBINATIONS)
def test_every_decoder(combination: tuple[str, str], int8: bool) -> None:
    sources = Ragged.of([[3, 4, 5], [6], [7, 8, 9, 4], [5, 5], [9, 3], [8], [4, 7, 6, 3, 9]])
    compiled = translator(*combination, int8=int8, hidden=24)
    found, right = both_ways(compiled, sources, Beam(size=1, length=20, min_length=2))
    assert_same(found, right)
    assert len({tuple(row[0].ids) for row in found}) > 1


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.integers(3, 9), min_size=1, max_size=6), min_size=1, max_size=9),
    limits=st.lists(st.integers(1, 12), min_size=9, max_size=9),
    shortest=st.integers(0, 12),
    never=st.sets(st.integers(3, SIZE - 1), max_size=5),
    power=st.sampled_from([0.0, 0.6, 1.0]),
    seed=st.integers(0, 5),
)
def test_whatever_is_asked(
    rows: list[list[int]], limits: list[int], shortest: int, never: set[int], power: float, seed: int
) -> None:
    lengths = [max(limit, shortest, 1) for limit in limits[: len(rows)]]
    beam = Beam(size=1, length=max(lengths), min_length=shortest, length_power=power)
    control = Control(forbid=tuple((id,) for id in sorted(never)))
    compiled = translator("luong-feeding", "additive", hidden=6 + 2 * seed)
    assert_same(*both_ways(compiled, Ragged.of(rows), beam, lengths=lengths, controls=control))


def test_many_rows_on_several_threads() -> None:
    draw = np.random.default_rng(1)
    sources = Ragged.of([draw.integers(3, 10, length) for length in draw.integers(1, 4, 2**15)])  # enough to share out
    compiled = translator("bahdanau", "additive", threads=3)
    assert_same(*both_ways(compiled, sources, Beam(size=1, length=4)))


def test_what_asks_for_more_is_searched_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled, sources = translator(), Ragged.of([[3, 4, 5], [6]])
    called: list[Ints] = []
    whole = CompiledTranslator.greedy
    monkeypatch.setattr(
        CompiledTranslator, "greedy", lambda self, *given: called.append(given[3]) or whole(self, *given)
    )
    steps, ends = compiled.steps(sources), {"start_id": 1, "stop_id": 2}
    plain = Beam(size=1, length=5)
    beam_search(steps, 2, beam=plain, **ends)
    assert len(called) == 1
    for beam in (Beam(size=2, length=5), Beam(size=1, length=5, coverage=0.2), Beam(size=1, length=5, block_ngrams=2)):
        beam_search(steps, 2, beam=beam, source_lengths=[3, 1], **ends)
    beam_search(steps, 2, beam=Beam(size=1, length=5, stop_at=2), **ends)
    beam_search(steps, 2, beam=plain, tree=SearchTree(), **ends)
    for control in (Control(prefix=(4,)), Control(require=((4,),)), Control(forbid=((4, 5),))):
        beam_search(steps, 2, beam=plain, controls=control, **ends)
    beam_search(steps, 2, beam=plain, controls=[Control(forbid=((4,),)), Control()], **ends)
    assert len(called) == 1


def test_what_is_wrong_is_said_as_by_the_search() -> None:
    compiled, sources = translator(), Ragged.of([[3, 4, 5], [6]])
    steps, plain = compiled.steps(sources), Beam(size=1, length=5)
    everything = Control(forbid=tuple((id,) for id in range(SIZE) if id != 2))
    with pytest.raises(NothingFound):
        beam_search(steps, 2, start_id=1, stop_id=2, beam=Beam(size=1, length=5, min_length=3), controls=everything)
    with pytest.raises(UserError, match="outside the vocabulary"):
        beam_search(steps, 2, start_id=1, stop_id=2, beam=plain, controls=Control(forbid=((SIZE,),)))
    with pytest.raises(UserError, match="stop id"):
        beam_search(steps, 2, start_id=1, stop_id=SIZE, beam=plain)
    state = compiled.read(sources)
    broken = compiled.steps_from(state.sources, (np.full((1, 2, 8), np.nan, np.float32),))
    with pytest.raises(RunError, match="not finite"):
        beam_search(broken, 2, start_id=1, stop_id=2, beam=plain)


def test_a_signal_ends_it() -> None:
    compiled = translator(hidden=64)
    steps = compiled.steps(Ragged.of([[3, 4, 5]] * 64))
    beam = Beam(size=1, length=10**7, min_length=10**7)
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    with pytest.raises(KeyboardInterrupt):
        beam_search(steps, 64, start_id=1, stop_id=2, beam=beam)
