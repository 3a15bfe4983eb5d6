"""Which networks the engine runs, and the sentence for each that it does not."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from elman import kernels
from elman.errors import UserError
from elman.nn.language import LanguageNetwork
from elman.nn.recurrent import Recurrent
from elman.nn.softmax import AdaptiveSoftmax, ChunkedSoftmax
from elman.nn.window import FixedWindow
from elman.runtime import Engine, refusal
from tests.runtime.networks import make


def recurrent(**options: Any) -> LanguageNetwork:
    body = Recurrent(options.pop("cell", "lstm"), 6, 8, batch_first=True, **options)
    return LanguageNetwork(nn.Embedding(40, 6), [body], ChunkedSoftmax(body.output_size, 40))


@pytest.mark.parametrize(
    ("network", "why"),
    [
        (recurrent(cell="gru-cho"), "gru-cho"),
        (recurrent(cell="mut1"), "mut1"),
        (recurrent(cell="rnn", nonlinearity="logistic"), "logistic"),
        (recurrent(cell="rnn", nonlinearity="identity"), "identity"),
        (recurrent(bidirectional=True), "both ways"),
        (recurrent(bidirectional=True, merge="mean"), "both ways"),
        (recurrent().double(), "float64"),
        (LanguageNetwork(nn.Embedding(40, 6), [FixedWindow(6, 3, 8)], ChunkedSoftmax(8, 40)), "FixedWindow"),
        (
            LanguageNetwork(nn.Embedding(40, 6), [Recurrent("lstm", 6, 8)], AdaptiveSoftmax(8, 40)),
            "AdaptiveSoftmax",
        ),
    ],
)
def test_what_it_does_not_run(network: LanguageNetwork, why: str) -> None:
    reason = refusal(network)
    assert reason is not None
    assert why in reason
    with pytest.raises(UserError, match=why):
        Engine.of(network)


def test_what_it_runs() -> None:
    assert refusal(recurrent()) is None
    assert refusal(make("gru", towers=2), tower=1) is None


def test_without_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "native", None)
    assert "not installed" in (refusal(recurrent()) or "")


def test_the_engine_keeps_its_own_weights() -> None:
    network = make("lstm")
    engine = Engine.of(network)
    before, _ = engine.step([1], engine.start())
    with torch.no_grad():
        for weight in network.parameters():
            weight.zero_()
    after, _ = engine.step([1], engine.start())
    assert np.array_equal(before, after)


def test_dropout_is_never_used() -> None:
    network = make("lstm").train()
    engine = Engine.of(network)
    first, _ = engine.step([1], engine.start())
    second, _ = engine.step([1], engine.start())
    assert np.array_equal(first, second)


def test_wrong_number_of_threads() -> None:
    with pytest.raises(UserError, match="threads"):
        Engine.of(make("lstm"), threads=0)


def test_the_boundary_checks_for_itself() -> None:
    """Whatever is handed to the compiled part without Python's checks is refused, not run."""
    engine = Engine.of(make("lstm", labels=2))._native
    ids, none = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64)
    state = np.zeros((1, engine.state_size), dtype=np.float32)
    log_probs, after = np.empty((1, engine.vocabulary), dtype=np.float32), np.empty_like(state)
    for arguments in (
        (ids + 1000, ids, state),
        (ids - 1, ids, state),
        (ids, ids + 5, state),
        (ids, none, state),
        (none, ids, state),
        (ids, ids, state[:, :-1].copy()),
        (ids, ids, state[:0]),
    ):
        with pytest.raises(ValueError):
            engine.step(*arguments, log_probs, after, 1)
    for outputs in ((log_probs[:, :-1].copy(), after), (log_probs, after[:0]), (after, log_probs)):
        with pytest.raises(ValueError):
            engine.step(ids, ids, state, *outputs, 1)
    with pytest.raises(ValueError):
        engine.score(np.zeros((2, 3), dtype=np.int64), np.zeros((2, 3), dtype=np.int64), ids, state, 1)
    with pytest.raises(ValueError):
        engine.score(np.zeros((1, 3), dtype=np.int64), np.zeros((1, 2), dtype=np.int64), ids, state, 1)


REQUEST: dict[str, Any] = {
    "prompts": [[1]],
    "length": 5,
    "temperature": 1.0,
    "top_k": 0,
    "top_p": 1.0,
    "repetition_penalty": 1.0,
    "seed": 0,
    "stop_ids": [],
    "suppressed": [],
    "first_stream": 0,
    "label": 0,
    "threads": 1,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"prompts": []},
        {"prompts": [[]]},
        {"prompts": [[99]]},
        {"label": 2},
        {"stop_ids": [-1]},
        {"suppressed": [99]},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"top_p": 2.0},
        {"top_k": -1},
        {"temperature": float("inf")},
        {"repetition_penalty": float("inf")},
        {"repetition_penalty": float("nan")},
        {"threads": 0},
        {"threads": 2**31 - 1},
    ],
)
def test_the_boundary_checks_requests(wrong: dict[str, Any]) -> None:
    engine = Engine.of(make("lstm", labels=2))._native
    with pytest.raises(ValueError):
        kernels.native.generate(engine=engine, **REQUEST | wrong)
    writing = kernels.native.generate(engine=engine, **REQUEST)
    for steps in (0, -5, 10**8):
        with pytest.raises(ValueError):
            writing.advance(steps)
    for row in (7, -1):
        with pytest.raises(ValueError):
            writing.end(row)
