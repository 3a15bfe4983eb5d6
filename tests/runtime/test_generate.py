"""What the engine writes, against `elman.decode.generate` over the PyTorch network."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from elman.decode import Sampling, generate
from elman.decode.sampling import next_ids, uniform
from elman.errors import RunError, UserError
from elman.nn.language import LanguageNetwork
from elman.runtime import Engine
from elman.tasks.steps import NetworkSteps
from tests.runtime.networks import VOCABULARY, make

SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "cool": {"temperature": 0.6},
    "greedy": {"temperature": 0.0},
    "top-k": {"top_k": 5},
    "most of top-k": {"top_k": 20},
    "top-k of all": {"top_k": 1000},
    "top-p": {"top_p": 0.8},
    "tiny top-p": {"top_p": 1e-9},
    "both": {"top_k": 7, "top_p": 0.9, "temperature": 1.3},
    "penalty": {"repetition_penalty": 1.3},
    "everything": {"repetition_penalty": 0.8, "top_k": 9, "top_p": 0.95, "temperature": 0.9},
    "greedy penalty": {"repetition_penalty": 1.5, "temperature": 0.0},
}


def both(
    network: LanguageNetwork,
    prompts: list[list[int]],
    options: dict[str, Any],
    *,
    label: int | None = None,
    **more: Any,
) -> tuple[Iterator[dict[int, int]], Iterator[dict[int, int]]]:
    """The same request to the engine and to PyTorch."""
    ours = Engine.of(network).generate(prompts, label=label, **options, **more)
    theirs = generate(NetworkSteps(network, label), prompts, sampling=Sampling(**options), **more)
    return ours, theirs


@pytest.mark.parametrize("name", SETTINGS)
def test_the_same_ids_as_pytorch(name: str) -> None:
    network = make("lstm", layers=2, hidden=24)
    for seed in range(3):
        ours, theirs = both(network, [[1, 2, 3]], {"seed": seed} | SETTINGS[name], length=70, suppress=[0, 4])
        assert list(ours) == list(theirs)


@pytest.mark.parametrize("name", ["plain", "everything"])
def test_rows_that_are_not_in_step(name: str) -> None:
    network = make("gru", labels=3)
    prompts = [[5, 6, 7, 8], [5, 6], [], [5, 6, 7, 8, 9, 10, 11], [5, 6, 1]]
    more = {"length": 40, "stop_ids": [3, 9], "start_id": 5, "first_stream": 11}
    ours, theirs = both(network, prompts, SETTINGS[name], label=2, **more)
    assert list(ours) == list(theirs)


def test_many_samples_of_one_long_prompt() -> None:
    network = make("lstm", learned_state=True)
    ours, theirs = both(network, [list(range(20))] * 20, {"seed": 5}, length=30, stop_ids=[1])
    assert list(ours) == list(theirs)


def test_a_row_alone_gets_what_it_gets_in_company() -> None:
    engine = Engine.of(make("lstm"))
    together = list(engine.generate([[1], [2], [3]], length=50, seed=9))
    alone = list(engine.generate([[2]], length=50, seed=9, first_stream=1))
    assert [new[1] for new in together] == [new[0] for new in alone]


def test_stop_when_drops_what_was_made_ahead() -> None:
    network = make("lstm")
    results = []
    for path in (0, 1):
        counts = {0: 0, 1: 0, 2: 0}

        def stop(row: int, counts: dict[int, int] = counts) -> bool:
            return counts[row] == (3, 11, 12)[row]

        found = []
        for new in both(network, [[1], [2], [3]], {}, length=100, stop_when=stop)[path]:
            for row in new:
                counts[row] += 1
            found.append(new)
        assert counts == {0: 3, 1: 11, 2: 12}
        results.append(found)
    assert results[0] == results[1]


def test_how_rarely_rounding_decides() -> None:
    """Logits differ in their last bits; an id differs only if the random number falls between the two.

    Both read the same text, so that one difference does not make others: PyTorch reads what the engine wrote.
    """
    network = make("lstm", hidden=48, layers=2, vocabulary=80, sharpness=4.0)
    rows, length = 100, 300
    engine = Engine.of(network)
    texts: list[list[int]] = [[row % 80] for row in range(rows)]
    for new in engine.generate(texts.copy(), length=length, temperature=0.9, seed=3):
        for row, id_ in new.items():
            texts[row].append(id_)
    state, differ = None, 0
    ids = np.array(texts)  # B x T+1
    stepper, sampling = NetworkSteps(network), Sampling(temperature=0.9, seed=3)
    for t in range(length):
        logits, state = stepper.step(ids[:, t], state)
        chosen = next_ids(logits, sampling, None, uniform(3, range(rows), [t] * rows))
        differ += int((chosen != ids[:, t + 1]).sum())
    assert len(np.unique(ids)) > 40  # a text of some variety
    assert differ <= 3, f"{differ} of {rows * length} ids differ"


def test_a_large_vocabulary() -> None:
    network = make("gru", vocabulary=5003, hidden=16)
    for options in ({}, {"top_k": 40}, {"top_k": 2000}, {"top_p": 0.9}, {"repetition_penalty": 1.2, "top_p": 0.7}):
        ours, theirs = both(network, [[17], [4000, 3]], options, length=30, suppress=[0])
        assert list(ours) == list(theirs)


def test_nothing_asked_nothing_given() -> None:
    engine = Engine.of(make("lstm"))
    assert list(engine.generate([], length=5)) == []
    assert list(engine.generate([[1]], length=0)) == []


def test_the_seed_decides() -> None:
    engine = Engine.of(make("lstm"))
    first, again, other = (
        list(engine.generate([[1]], length=40, seed=seed)) for seed in (2**64 - 1, 2**64 - 1, 2**64 - 2)
    )
    assert first == again != other
    assert list(engine.generate([[1]], length=40, seed=None)) != list(engine.generate([[1]], length=40, seed=None))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"prompts": [[VOCABULARY]]}, "the ids of prompt 1"),
        ({"prompts": [[1], [-1]]}, "the ids of prompt 2"),
        ({"prompts": [[]]}, "prompt 1 is empty"),
        ({"length": -1}, "length"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": -1.0}, "temperature"),
        ({"top_k": -1}, "top_k"),
        ({"top_p": 0.0}, "top_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"seed": 2**64}, "seed"),
        ({"seed": -1}, "seed"),
        ({"suppress": [VOCABULARY]}, "suppressed ids"),
        ({"first_stream": -1}, "first_stream"),
        ({"label": 0}, "no labels"),
    ],
)
def test_mistakes_are_told_at_once(wrong: dict[str, Any], what: str) -> None:
    engine = Engine.of(make("lstm"))
    arguments: dict[str, Any] = {"prompts": [[1]], "length": 5} | wrong
    with pytest.raises(UserError, match=what):
        engine.generate(**arguments)


def test_everything_suppressed() -> None:
    engine = Engine.of(make("lstm"))
    with pytest.raises(UserError, match="every id is suppressed"):
        list(engine.generate([[1]], length=5, suppress=range(VOCABULARY)))


def test_logits_that_are_not_finite() -> None:
    """A network that explodes writes until it does, and then says so."""
    network = make("rnn", nonlinearity="relu")
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(weight.abs() * 50)
    for int8 in (False, True):
        found = []
        with pytest.raises(RunError, match="not finite"):
            for new in Engine.of(network, int8=int8).generate([[1]], length=1000):
                found.append(new)
        assert found


@pytest.mark.parametrize("sharpness", [0.0, 1e-13, 1e-3, 0.3])
@pytest.mark.parametrize("top_p", [1e-6, 0.1, 0.5, 0.9, 0.999])
def test_top_p_of_many_words_that_are_nearly_even(sharpness: float, top_p: float) -> None:
    """Many stand at the border, with 0 all of them equal: then the lowest ids stay."""
    network = make("gru", vocabulary=3000, hidden=8, sharpness=sharpness)
    if sharpness == 0:
        with torch.no_grad():
            network.softmax.bias.zero_()
    for more in ({}, {"top_k": 1500}):
        ours, theirs = both(network, [[17], [4, 3]], {"top_p": top_p} | more, length=8, suppress=[0, 5])
        assert list(ours) == list(theirs)


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompts": [[1.5]]},
        {"prompts": [["a"]]},
        {"prompts": ["abc"]},
        {"prompts": [[[1]]]},
        {"prompts": [[2**70]]},
        {"length": 2.5},
        {"length": None},
        {"temperature": "hot"},
        {"top_k": 1.5},
        {"top_p": None},
        {"seed": 0.5},
        {"stop_ids": ["a"]},
        {"stop_ids": [1.5]},
        {"suppress": [1.5]},
        {"first_stream": 0.5},
    ],
)
def test_odd_requests_are_told_at_once(wrong: dict[str, Any]) -> None:
    arguments: dict[str, Any] = {"prompts": [[1]], "length": 5} | wrong
    with pytest.raises(UserError):
        Engine.of(make("lstm")).generate(**arguments)


def test_labels_out_of_range() -> None:
    engine = Engine.of(make("lstm", labels=2))
    for label in (2, -1, 0.5):
        with pytest.raises(UserError):
            engine.generate([[1]], length=5, label=label)  # type: ignore[arg-type]
