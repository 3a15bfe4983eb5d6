"""Rows may be picked in whatever order, and the compiled decoder writes what the network writes."""

from typing import Any

import numpy as np
import pytest

from elman import kernels
from elman.decode import StepModel
from elman.nn.translation import TranslationNetwork
from elman.ragged import Ragged
from elman.runtime import CompiledTranslator
from elman.tasks.steps import TranslationSteps
from tests.nn.translators import COMBINATIONS, network

SOURCES = [np.array([2, 3, 4]), np.array([5]), np.array([6, 7, 8, 9, 2])]
PICKS = {
    "as they are": [0, 1, 2],
    "two of each": [0, 0, 1, 1, 2, 2],
    "ragged": [0, 0, 0, 1, 2, 2],
    "one source gone": [0, 0, 2],
    "turned round": [2, 1, 0],
    "apart": [0, 2, 0, 1, 2, 2],
}
COMPILED = [False, *([True] if kernels.available() else [])]
CLOSE = {False: {"rtol": 1e-10, "atol": 1e-12}, True: {"rtol": 1e-5, "atol": 1e-5}}


def steps_of(net: TranslationNetwork, sources: list[np.ndarray], compiled: bool) -> StepModel[Any]:
    if not compiled:
        return TranslationSteps(net, Ragged.of(sources))
    return CompiledTranslator.of(net.float()).steps(Ragged.of(sources))


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize(("decoder", "attention"), COMBINATIONS)
def test_rows_of_a_source_equal_copies_of_it(decoder: str, attention: str, compiled: bool) -> None:
    net = network(decoder, attention)
    steps: Any = steps_of(net, SOURCES, compiled)
    for name, picks in PICKS.items():
        _, state = steps.step(np.array([1, 1, 1]), steps.start(3))
        state = steps.select(state, np.array(picks))
        copies: Any = steps_of(net, [SOURCES[row] for row in picks], compiled=False)  # by PyTorch
        _, expected = copies.step(np.ones(len(picks), np.int64), copies.start(len(picks)))
        for ids in ([2, 3, 4, 5, 6, 7], [5, 5, 2, 3, 3, 4]):
            given = np.array(ids[: len(picks)])
            logits, state = steps.step(given, state)
            right, expected = copies.step(given, expected)
            np.testing.assert_allclose(logits, right, **CLOSE[compiled], err_msg=name)
            if decoder != "plain":
                seen = steps.attention(state)[:, : copies.attention(expected).shape[1]]
                np.testing.assert_allclose(seen, copies.attention(expected), **CLOSE[compiled], err_msg=name)


@pytest.mark.parametrize("compiled", COMPILED)
def test_picks_upon_picks_and_the_old_state_stays(compiled: bool) -> None:
    net = network("luong-feeding", "additive")
    steps = steps_of(net, SOURCES, compiled)
    _, first = steps.step(np.array([1, 1, 1]), steps.start(3))
    before = steps.step(np.array([2, 3, 4]), first)[0].copy()
    state = steps.select(first, np.array([0, 0, 1, 2, 2]))
    _, state = steps.step(np.array([2, 3, 4, 5, 6]), state)
    state = steps.select(state, np.array([1, 1, 3, 4]))  # the second source is gone
    logits, _ = steps.step(np.array([2, 2, 3, 4]), state)
    copies = steps_of(net, [SOURCES[row] for row in (0, 0, 2, 2)], compiled=False)
    expected = copies.start(4)
    for ids in ([1, 1, 1, 1], [3, 3, 5, 6], [2, 2, 3, 4]):
        right, expected = copies.step(np.array(ids), expected)
    np.testing.assert_allclose(logits, right, **CLOSE[compiled])
    again, _ = steps.step(np.array([2, 3, 4]), first)
    assert np.array_equal(before, again)


@pytest.mark.parametrize("compiled", COMPILED)
def test_a_decoder_without_attention_says_so(compiled: bool) -> None:
    steps: Any = steps_of(network("plain"), SOURCES, compiled)
    _, state = steps.step(np.array([2, 3, 4]), steps.start(3))
    with pytest.raises(ValueError, match="has no attention"):
        steps.attention(state)
