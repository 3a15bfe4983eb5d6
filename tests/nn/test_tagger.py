"""The network: nothing depends on what else is in a batch, words outside the vocabulary are learned, tags are valid."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn.functional import log_softmax

from elman.nn.crf import CRF, forbidden_transitions
from elman.nn.inputs import Inputs
from elman.nn.tagger import TagNetwork
from elman.ragged import Ragged
from elman.tasks.tag import ModelSettings, TaggerConfig, TagModel, TagRecipe
from elman.text.encoder import spelled, words
from elman.text.spans import convert
from elman.text.spelling import Speller
from tests.tasks.tag_runs import sentences

TAGS = ["B-LOC", "B-PER", "E-PER", "I-PER", "O", "S-LOC", "S-PER", "E-LOC"]
WORDS = [sentence.tokens for sentence in sentences(12)]


def speller() -> Speller:
    return Speller.fit((word for row in WORDS for word in row), prefixes=(2,), suffixes=(1, 2))


def network(**settings: object) -> TagNetwork:
    torch.manual_seed(0)
    model = ModelSettings.model_validate({"hidden": 10, "embedding": 8, "character_hidden": 5} | settings)
    config = TaggerConfig.new("tag", TagRecipe(), model=model, tags=TAGS, scheme="BIO")
    return TagModel.build(config, speller())


def inputs(sentences: Sequence[Sequence[str]]) -> Inputs:
    return Inputs.of(*spelled(speller(), words(sentences)))


def sizes(batch: Inputs) -> torch.Tensor:
    return batch.tokens.batch_sizes


def tag_ids(rows: Sequence[Sequence[str]]) -> list[np.ndarray]:
    return [np.array([TAGS.index(tag) for tag in convert(row, "BIOES")]) for row in rows]


def packed(rows: Sequence[np.ndarray]) -> torch.Tensor:
    return torch.from_numpy(Ragged.of(rows).packed())


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn", "mut1"])
def test_a_sentence_is_scored_alike_alone_and_among_others(cell: str) -> None:
    model = network(cell=cell).eval()
    scores = model(inputs(WORDS))
    for sentence, rows in zip(WORDS, words(WORDS).unpacked(np.arange(len(scores))), strict=True):
        torch.testing.assert_close(scores[torch.from_numpy(rows)], model(inputs([sentence])))


def test_the_loss_is_the_mean_over_tokens() -> None:
    gold = tag_ids([sentence.tags for sentence in sentences(12)])
    for crf in (False, True):
        model = network(crf=crf).eval()
        batch, right = inputs(WORDS), packed(gold)
        whole = model.loss(model(batch), right, sizes(batch)).detach() * len(right)
        parts = 0.0
        for sentence, ids in zip(WORDS, gold, strict=True):
            scores = model(inputs([sentence])).detach()  # T x K
            if crf:
                assert model.crf is not None
                alone = torch.from_numpy(ids)[None]
                parts -= float(model.crf(scores[None], alone, torch.tensor([len(ids)])).detach())
            else:
                parts -= float(log_softmax(scores, dim=1)[range(len(ids)), ids].sum())
        assert float(whole) == pytest.approx(parts, rel=1e-5)


def test_a_crf_never_breaks_the_scheme() -> None:
    model = network(crf=True)
    torch.nn.init.normal_(model.scores.weight, std=5.0)
    batch = inputs(WORDS)
    forbidden = forbidden_transitions(TAGS)
    for ids in words(WORDS).unpacked(model.best_tags(model(batch), sizes(batch)).numpy()):
        assert not forbidden.start[ids[0]] and not forbidden.end[ids[-1]]
        assert not any(forbidden.transitions[a, b] for a, b in pairwise(ids.tolist()))
    assert isinstance(model.crf, CRF)


def test_training_learns_the_unknown_word() -> None:
    model = network(word_dropout=100.0)
    batch, right = inputs(WORDS), packed(tag_ids([sentence.tags for sentence in sentences(12)]))
    model.loss(model(batch), right, sizes(batch)).backward()
    assert model.words is not None and model.words.weight.grad is not None
    assert float(model.words.weight.grad[0].abs().sum()) > 0


def test_parts_can_be_left_out() -> None:
    batch = inputs(WORDS)
    widths = [
        network(**left_out).body.input_size
        for left_out in ({}, {"case_embedding": 0}, {"case_embedding": 0, "affix_embedding": 3})
    ]
    assert widths[0] > widths[1] == widths[2]
    without = network(hidden=4, embedding=0, character_hidden=0)
    assert without(batch).shape == (sum(map(len, WORDS)), len(TAGS))
    with pytest.raises(ValueError, match="has to see words"):
        ModelSettings(embedding=0, character_hidden=0, case_embedding=0)
