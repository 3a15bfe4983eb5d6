"""The network: nothing depends on what else is in a batch, words outside the vocabulary are learned, tags are valid."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch.nn.functional import log_softmax

from elman.metrics.spans import convert
from elman.nn.crf import CRF, forbidden_transitions
from elman.tasks.tag.batch import make_batch
from elman.tasks.tag.network import TagNetwork, set_vectors
from elman.tasks.tag.settings import ModelSettings
from elman.text.spelling import Speller
from tests.tasks.tag.runs import sentences

TAGS = ["B-LOC", "B-PER", "E-PER", "I-PER", "O", "S-LOC", "S-PER", "E-LOC"]
WORDS = [sentence.tokens for sentence in sentences(12)]


def speller() -> Speller:
    return Speller.fit((word for row in WORDS for word in row), prefixes=(2,), suffixes=(1, 2))


def network(**settings: object) -> TagNetwork:
    torch.manual_seed(0)
    return TagNetwork(ModelSettings(hidden=10, embedding=8, character_hidden=5, **settings), speller(), TAGS)  # type: ignore[arg-type]


def tag_ids(rows: Sequence[Sequence[str]]) -> list[np.ndarray]:
    return [np.array([TAGS.index(tag) for tag in convert(row, "BIOES")]) for row in rows]


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn", "mut1"])
def test_a_sentence_is_scored_alike_alone_and_among_others(cell: str) -> None:
    model = network(cell=cell).eval()
    together = make_batch(speller(), WORDS)
    scores = model(together)
    for words, rows in zip(WORDS, together.unpack(torch.arange(len(together.rows))), strict=True):
        torch.testing.assert_close(scores[torch.from_numpy(rows)], model(make_batch(speller(), [words])))


def test_the_loss_is_the_mean_over_tokens() -> None:
    gold = tag_ids([sentence.tags for sentence in sentences(12)])
    for crf in (False, True):
        model = network(crf=crf).eval()
        batch = make_batch(speller(), WORDS, gold)
        whole = model.loss(model(batch), batch).detach() * len(batch.rows)
        parts = 0.0
        for words, ids in zip(WORDS, gold, strict=True):
            single = make_batch(speller(), [words], [ids])
            scores = model(single).detach()  # T x K
            if crf:
                assert model.crf is not None
                right = torch.from_numpy(ids)[None]
                parts -= float(model.crf(scores[None], right, torch.tensor([len(ids)])).detach())
            else:
                parts -= float(log_softmax(scores, dim=1)[range(len(ids)), ids].sum())
        assert float(whole) == pytest.approx(parts, rel=1e-5)


def test_a_crf_never_breaks_the_scheme() -> None:
    model = network(crf=True)
    torch.nn.init.normal_(model.scores.weight, std=5.0)
    batch = make_batch(speller(), WORDS)
    forbidden = forbidden_transitions(TAGS)
    for ids in batch.unpack(model.best_tags(model(batch), batch)):
        assert not forbidden.start[ids[0]] and not forbidden.end[ids[-1]]
        assert not any(forbidden.transitions[a, b] for a, b in pairwise(ids.tolist()))
    assert isinstance(model.crf, CRF)


def test_training_learns_the_unknown_word() -> None:
    model = network(word_dropout=100.0)
    batch = make_batch(speller(), WORDS, tag_ids([sentence.tags for sentence in sentences(12)]))
    model.loss(model(batch), batch).backward()
    assert model.words is not None and model.words.weight.grad is not None
    assert float(model.words.weight.grad[0].abs().sum()) > 0


def test_parts_can_be_left_out() -> None:
    batch = make_batch(speller(), WORDS)
    sizes = [
        network(**left_out).body.input_size
        for left_out in ({}, {"case_embedding": 0}, {"case_embedding": 0, "affix_embedding": 3})
    ]
    assert sizes[0] > sizes[1] == sizes[2]
    without = TagNetwork(ModelSettings(hidden=4, embedding=0, character_hidden=0), speller(), TAGS)
    assert without(batch).shape == (len(batch.rows), len(TAGS))
    with pytest.raises(ValueError, match="has to see words"):
        ModelSettings(embedding=0, character_hidden=0, case_embedding=0)


@pytest.mark.parametrize("frozen", [True, False])
def test_pre_trained_vectors_stay_or_move_as_the_settings_say(frozen: bool) -> None:
    model = network(freeze_vectors=frozen, word_dropout=1.0)
    assert model.words is not None
    vectors = np.ones((2, 8), np.float32)
    set_vectors(model, np.array([1, 2]), vectors)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    batch = make_batch(speller(), WORDS, tag_ids([sentence.tags for sentence in sentences(12)]))
    before = model.words.weight.detach().clone()
    model.loss(model(batch), batch).backward()
    optimizer.step()
    moved = (model.words.weight.detach() != before).any(dim=1)
    assert bool(moved[1:3].any()) != frozen
    assert bool(moved[0])
    assert bool((before[1:3] == 1).all())
