"""Several rows of a source share its memory, in whatever order they are picked."""

import numpy as np
import pytest
import torch

from elman.corpora.examples import pad
from elman.tasks.translate.steps import TranslationSteps
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


@pytest.mark.parametrize(("decoder", "attention"), COMBINATIONS)
def test_rows_of_a_source_equal_copies_of_it(decoder: str, attention: str) -> None:
    net = network(decoder, attention)
    steps = TranslationSteps(net, *pad(SOURCES))
    for name, picks in PICKS.items():
        _, state = steps.step(torch.tensor([1, 1, 1]), steps.start(3))
        state = steps.select(state, torch.tensor(picks))
        copies = TranslationSteps(net, *pad([SOURCES[row] for row in picks]))
        _, expected = copies.step(torch.ones(len(picks), dtype=torch.long), copies.start(len(picks)))
        for ids in ([2, 3, 4, 5, 6, 7], [5, 5, 2, 3, 3, 4]):
            given = torch.tensor(ids[: len(picks)])
            logits, state = steps.step(given, state)
            right, expected = copies.step(given, expected)
            torch.testing.assert_close(logits, right, rtol=1e-10, atol=1e-12, msg=name)
            if decoder != "plain":
                seen = steps.attention(state)[:, : copies.attention(expected).shape[1]]
                torch.testing.assert_close(seen, copies.attention(expected), rtol=1e-10, atol=1e-12, msg=name)


def test_picks_upon_picks_and_the_old_state_stays() -> None:
    net = network("luong-feeding", "additive")
    steps = TranslationSteps(net, *pad(SOURCES))
    _, first = steps.step(torch.tensor([1, 1, 1]), steps.start(3))
    before, _ = steps.step(torch.tensor([2, 3, 4]), first)
    state = steps.select(first, torch.tensor([0, 0, 1, 2, 2]))
    _, state = steps.step(torch.tensor([2, 3, 4, 5, 6]), state)
    state = steps.select(state, torch.tensor([1, 1, 3, 4]))  # the second source is gone
    logits, _ = steps.step(torch.tensor([2, 2, 3, 4]), state)
    copies = TranslationSteps(net, *pad([SOURCES[row] for row in (0, 0, 2, 2)]))
    expected = copies.start(4)
    for ids in ([1, 1, 1, 1], [3, 3, 5, 6], [2, 2, 3, 4]):
        right, expected = copies.step(torch.tensor(ids), expected)
    torch.testing.assert_close(logits, right, rtol=1e-10, atol=1e-12)
    again, _ = steps.step(torch.tensor([2, 3, 4]), first)
    assert torch.equal(before, again)


def test_a_decoder_without_attention_says_so() -> None:
    steps = TranslationSteps(network("plain"), *pad(SOURCES))
    with pytest.raises(ValueError, match="has no attention"):
        steps.attention(steps.start(3))
