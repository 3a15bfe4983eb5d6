"""Texts that come and go are the texts that each would be alone."""

import threading
import time
from typing import Any

import numpy as np
import pytest

from elman.decode.continuous import StepBatch
from elman.errors import UserError
from elman.runtime import Engine
from elman.runtime.continuous import ContinuousBatch, NewId
from elman.sampling import Sampling
from elman.tasks.steps import NetworkSteps
from tests.runtime.networks import VOCABULARY, make, reference
from tests.runtime.test_generate import SETTINGS


def alone(engine: Engine, prompt: list[int], row: int = 0, label: int | None = None, **options: Any) -> list[int]:
    """The ids that the engine writes by itself."""
    new = engine.generate([prompt] * (row + 1), label=label, **options)
    return [step[row] for step in new if row in step]


def collect(batch: Any, found: dict[int, list[NewId]], steps: int = 1) -> None:
    for new in batch.advance(steps):
        found.setdefault(new.text, []).append(new)


def ids(new: list[NewId]) -> list[int]:
    return [one.id for one in new if one.id is not None]


def test_every_text_is_what_it_would_be_alone() -> None:
    engine = Engine.of(make("lstm", layers=2, hidden=24, labels=3))
    batch, found, expected = ContinuousBatch(engine), dict[int, list[NewId]](), {}
    for number, (options, place) in enumerate(zip(SETTINGS.values(), range(99), strict=False)):
        given = {"seed": number} | options
        prompt, label, length = [1 + number, 2, 3] * (number % 4 + 1), number % 3, 20 + 7 * number
        text = batch.add(prompt, length=length, sampling=Sampling(**given), stop_ids=[9], suppress=[0, 4], label=label)
        expected[text] = alone(engine, prompt, label=label, length=length, stop_ids=[9], suppress=[0, 4], **given)
        for _ in range(place % 3):  # the next one joins while these are under way
            collect(batch, found, steps=1 + place % 4)
    while batch.rows:
        collect(batch, found, steps=5)
    assert {text: ids(new) for text, new in found.items()} == expected
    assert {found[text][-1].end for text in found} <= {"stop", "length"}


def test_samples_of_one_prompt_have_the_streams_of_their_numbers() -> None:
    engine = Engine.of(make("gru"))
    batch, found = ContinuousBatch(engine), dict[int, list[NewId]]()
    first = batch.add([5, 6, 7] * 40, length=12, samples=3, sampling=Sampling(seed=7))
    while batch.rows:
        collect(batch, found)
    for row in range(3):
        assert ids(found[first + row]) == alone(engine, [5, 6, 7] * 40, row=row, length=12, seed=7)


def test_a_text_that_is_removed_leaves_the_others_as_they_are() -> None:
    engine = Engine.of(make("lstm"))
    batch, found = ContinuousBatch(engine), dict[int, list[NewId]]()
    texts = [batch.add([1 + row], length=30, sampling=Sampling(seed=row)) for row in range(9)]
    reading = batch.add([3] * 500, length=5, sampling=Sampling(), samples=2)
    collect(batch, found, steps=3)
    for text in (*texts[::2], reading, reading + 1, texts[0], 999):
        batch.remove(text)
    before = {text: len(found[text]) for text in texts[::2]}
    while batch.rows:
        collect(batch, found, steps=4)
    assert all(len(found[text]) == before[text] for text in before) and reading not in found
    for row, text in list(enumerate(texts))[1::2]:
        assert ids(found[text]) == alone(engine, [1 + row], length=30, seed=row)


def test_a_long_prompt_does_not_stop_the_others() -> None:
    batch = ContinuousBatch(Engine.of(make("lstm")))
    short = batch.add([1], length=100, sampling=Sampling())
    long = batch.add([2] * 3000, length=1, sampling=Sampling())
    calls = 0
    while all(new.text == short for new in batch.advance(50)):
        calls += 1
    assert calls > 40 and long


def test_what_the_model_thought_is_told() -> None:
    network = make("lstm", layers=2)
    batch, found = ContinuousBatch(Engine.of(network)), dict[int, list[NewId]]()
    batch.add([1, 2], length=9, sampling=Sampling(seed=3), alternatives=4)
    while batch.rows:
        collect(batch, found, steps=2)
    written = ids(found[0])
    log_probs = reference(network, np.array([[1, 2, *written[:-1]]]))[0, 1:]  # T x V
    for new, row in zip(found[0], log_probs, strict=True):
        assert new.told is not None and new.id is not None
        assert new.told.log_prob == pytest.approx(row[new.id], abs=1e-4)
        assert new.told.rank == 1 + int((row > row[new.id]).sum())
        assert new.told.entropy == pytest.approx(-(np.exp(row) * row).sum(), abs=1e-4)
        assert [id for id, _ in new.told.others] == np.argsort(-row, kind="stable")[:4].tolist()
        assert [each for _, each in new.told.others] == pytest.approx(np.sort(row)[::-1][:4], abs=1e-4)


def test_models_without_an_engine_write_the_same() -> None:
    network = make("gru", layers=2)
    ours, theirs = ContinuousBatch(Engine.of(network)), StepBatch()
    found: list[dict[int, list[NewId]]] = [{}, {}]
    for number, options in enumerate(SETTINGS.values()):
        asked: dict[str, Any] = {"length": 15, "sampling": Sampling(**{"seed": number} | options), "stop_ids": [3]}
        ours.add([1, 2, number % VOCABULARY], **asked, suppress=[0], alternatives=2)
        theirs.add(NetworkSteps(network), [1, 2, number % VOCABULARY], **asked, suppress=[0], alternatives=2)
    for batch, kept in zip((ours, theirs), found, strict=True):
        while batch.rows:
            collect(batch, kept)
    assert {text: ids(new) for text, new in found[0].items()} == {text: ids(new) for text, new in found[1].items()}
    for text, new in found[0].items():
        assert [one.end for one in new] == [one.end for one in found[1][text]]
        for one, other in zip(new, found[1][text], strict=True):
            if one.told is not None and other.told is not None:
                assert one.told.rank == other.told.rank and one.told.entropy == pytest.approx(
                    other.told.entropy, abs=1e-4
                )


@pytest.mark.parametrize("kind", ["engine", "steps"])
def test_one_text_that_fails_does_not_end_the_others(kind: str) -> None:
    network, every = make("lstm"), range(VOCABULARY)
    batch: Any = ContinuousBatch(Engine.of(network)) if kind == "engine" else StepBatch()
    model = () if kind == "engine" else (NetworkSteps(network),)
    batch.add(*model, [1], length=5, sampling=Sampling(), suppress=every)
    batch.add(*model, [1], length=5, sampling=Sampling())
    found: dict[int, list[NewId]] = {}
    while batch.rows:
        collect(batch, found)
    assert "every id is suppressed" in str(found[0][0].failure) and len(found[0]) == 1
    assert len(ids(found[1])) == 5


def test_an_interrupt_ends_a_call_early() -> None:
    batch = ContinuousBatch(Engine.of(make("lstm", hidden=200, layers=2)))
    batch.add([1], length=10**9, sampling=Sampling())
    threading.Thread(target=lambda: (time.sleep(0.005), batch.interrupt())).start()
    assert len(batch.advance(4096)) < 4096
    assert len(batch.advance(3)) == 3


def test_mistakes_are_sentences() -> None:
    batch = ContinuousBatch(Engine.of(make("lstm")))
    for wrong in ({"prompt": [99]}, {"prompt": []}, {"length": 0}, {"samples": 0}, {"suppress": [-1]}, {"label": 1}):
        with pytest.raises(UserError):
            batch.add(**{"prompt": [1], "length": 5, "sampling": Sampling(), **wrong})  # type: ignore[arg-type]
    assert batch.rows == 0
