import argparse
import inspect
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from elman.baselines import KneserNey, kneser_ney
from elman.baselines.kneser_ney import discounts
from elman.errors import UserError
from elman.metrics import perplexity, unigram_loss
from tests.baselines.kneser_ney_reference import Reference

VOCAB = 5
streams = st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=60)
orders = st.integers(1, 5)
start_ids = st.sampled_from([None, 0, VOCAB - 1])


def split(ids: list[int], offsets: list[int]) -> list[list[int]]:
    return [ids[begin:end] for begin, end in pairwise(sorted({0, *offsets, len(ids)}))]


def text_of(module: object) -> np.ndarray:
    characters = inspect.getsource(module).encode("ascii", "replace")
    return np.frombuffer(characters, np.uint8)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    ids = draw(streams)
    return ids, draw(st.lists(st.integers(0, len(ids)), max_size=6))


@settings(max_examples=150, deadline=None)
@given(corpora(), corpora(), orders, start_ids)
def test_equals_the_formula(train, held_out, order, start_id):
    ids, offsets = train
    model = KneserNey.fit(np.array(ids), VOCAB, order, np.array(offsets, int), start_id)
    reference = Reference(split(ids, offsets), VOCAB, order, VOCAB if start_id is None else start_id)
    for some_ids, some_offsets in (train, held_out):
        expected = [
            np.log(reference.probability(token, document[:place]))
            for document in split(some_ids, some_offsets)
            for place, token in enumerate(document)
        ]
        found = model.log_probs(np.array(some_ids), np.array(some_offsets, int))
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_equals_the_formula_on_a_text_with_all_its_counts_of_counts():
    ids = text_of(argparse)[:3000].tolist()
    model = KneserNey.fit(np.array(ids[:2900]), 128, order=4)
    reference = Reference([ids[:2900]], 128, order=4, start=128)
    assert all(reference.discounts[length] != {1: 0.5, 2: 1.0, 3: 1.5} for length in (2, 3, 4))
    expected = [np.log(reference.probability(ids[place], ids[2900:place])) for place in range(2900, 3000)]
    np.testing.assert_allclose(model.log_probs(np.array(ids[2900:])), expected, rtol=1e-9)


@settings(max_examples=150, deadline=None)
@given(corpora(), streams, orders, start_ids)
def test_distributions_sum_to_one_and_leave_something_to_every_token(train, context, order, start_id):
    ids, offsets = train
    model = KneserNey.fit(np.array(ids), VOCAB + 2, order, np.array(offsets, int), start_id)
    found = model.distribution(context)
    assert found.shape == (VOCAB + 2,)
    assert found.sum() == pytest.approx(1)
    assert found.min() > 0


@settings(max_examples=75, deadline=None)
@given(streams, streams, orders, start_ids)
def test_distribution_agrees_with_log_probs(train, held_out, order, start_id):
    model = KneserNey.fit(np.array(train), VOCAB, order, start_id=start_id)
    stepwise = [model.distribution(held_out[:place])[token] for place, token in enumerate(held_out)]
    np.testing.assert_allclose(model.log_probs(np.array(held_out)), np.log(stepwise))


@given(st.lists(st.integers(1, 8), min_size=1))
def test_discounts_lie_between_nothing_and_the_count(counts):
    found = discounts(np.array(counts))
    assert (found[1:] > 0).all()
    assert (found <= [0, 1, 2, 3]).all()


def test_a_repeated_pattern_is_learned():
    model = KneserNey.fit(np.tile([0, 1, 2, 3], 100), vocab_size=4, order=3)
    assert model.distribution([0, 1])[2] > 0.95
    assert model.distribution([2, 3])[0] > 0.95


def test_documents_do_not_leak_into_each_other():
    ids = np.tile([0, 1, 2], 40)
    starts = np.arange(0, len(ids), 3)
    apart = KneserNey.fit(ids, vocab_size=3, order=3, documents=starts)
    joined = KneserNey.fit(ids, vocab_size=3, order=3)
    assert joined.distribution([1, 2])[0] > 0.9  # 0 always follows 2 in the stream
    assert apart.distribution([1, 2])[0] < 0.5
    assert apart.distribution([])[0] > 0.9
    scores = apart.log_probs(ids, starts)
    np.testing.assert_array_equal(scores, np.tile(scores[:3], 40))


def test_documents_at_their_start_are_after_the_start_id():
    eos = 2
    ids = np.tile([0, 1, eos, 1, 1, eos], 20)
    model = KneserNey.fit(ids, vocab_size=3, order=2, start_id=eos)
    np.testing.assert_array_equal(model.distribution([]), model.distribution([0, eos]))


def test_batches_do_not_show(monkeypatch):
    text = text_of(argparse)[:5000]
    starts = np.array([0, 7, 8, 1000, 4999])
    model = KneserNey.fit(text, vocab_size=128, order=5)
    whole = model.log_probs(text, starts)
    monkeypatch.setattr(kneser_ney, "BATCH", 3)
    np.testing.assert_array_equal(model.log_probs(text, starts), whole)


def test_a_saved_model_gives_identical_numbers(tmp_path: Path):
    text = text_of(argparse)[:20000]
    model = KneserNey.fit(text, vocab_size=128, order=4, start_id=10)
    save_file(model.state_dict(), tmp_path / "ngrams.safetensors")
    again = KneserNey.from_state(load_file(tmp_path / "ngrams.safetensors"), vocab_size=128)
    assert again.order == 4
    np.testing.assert_array_equal(again.log_probs(text), model.log_probs(text))
    np.testing.assert_array_equal(again.distribution([100, 101]), model.distribution([100, 101]))


def test_longer_contexts_help_on_natural_text_and_never_hurt_much():
    train, held_out = text_of(argparse), text_of(inspect)[:20000]
    losses = [-KneserNey.fit(train, 128, order).log_probs(held_out).mean() for order in range(1, 9)]
    unigram = unigram_loss(np.bincount(train, minlength=128), np.bincount(held_out, minlength=128))
    assert losses[0] == pytest.approx(unigram, rel=0.01)
    assert losses[1] < losses[0] - 0.3
    assert losses[3] < losses[1] - 0.3
    assert all(perplexity(longer) < 1.05 * perplexity(shorter) for shorter, longer in pairwise(losses))


def test_a_stream_shorter_than_the_order_works():
    model = KneserNey.fit(np.array([1]), vocab_size=3, order=6)
    assert model.distribution([1, 1, 1, 1, 1, 1, 1]).sum() == pytest.approx(1)
    assert model.distribution([]).argmax() == 1


def test_no_tokens_have_no_scores():
    model = KneserNey.fit(np.array([0, 1]), vocab_size=2, order=3)
    assert model.log_probs(np.array([], int)).shape == (0,)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": np.array([0, 7])}, "token id 7 is outside the vocabulary of 3"),
        ({"ids": np.array([-1, 0])}, "token id -1 is outside"),
        ({"ids": np.array([], int)}, "no tokens"),
        ({"ids": np.zeros((2, 2), int)}, "one row of integers"),
        ({"ids": np.array([0.5])}, "one row of integers"),
        ({"order": 0}, "order 0 does not exist"),
        ({"start_id": 9}, "start_id 9 is outside"),
        ({"documents": np.array([0, 4])}, "a document starts outside the stream of 2 tokens"),
        ({"vocab_size": 1 << 62}, "too many to count"),
    ],
)
def test_wrong_input_is_said_to_be_wrong(arguments, message):
    with pytest.raises(UserError, match=message):
        KneserNey.fit(**{"ids": np.array([0, 1]), "vocab_size": 3, **arguments})


def test_a_context_outside_the_vocabulary_is_refused():
    with pytest.raises(UserError, match="token id 3 is outside"):
        KneserNey.fit(np.array([0, 1]), vocab_size=3).distribution([3])


def test_a_state_that_does_not_fit_is_refused():
    state = KneserNey.fit(np.array([0, 1, 2, 0, 1]), vocab_size=3, order=3).state_dict()
    with pytest.raises(UserError, match="does not fit a vocabulary of 4"):
        KneserNey.from_state(state, vocab_size=4)
    with pytest.raises(UserError, match="lacks some of its arrays"):
        KneserNey.from_state({name: state[name] for name in state if name != "counts.2"}, vocab_size=3)
    with pytest.raises(UserError, match="does not fit"):
        KneserNey.from_state({**state, "keys.3": state["keys.3"] + 1000}, vocab_size=3)


def words_with_eos(path: Path) -> list[str]:
    return [word for line in path.open(encoding="utf-8") for word in (*line.split(), "<eos>")]


@pytest.mark.data
def test_wikitext2_perplexity(data_dir: Path):
    words = words_with_eos(data_dir / "wikitext2" / "train.txt")
    vocabulary = {word: place for place, word in enumerate(dict.fromkeys(words))}
    train, valid = (
        np.array([vocabulary[word] for word in part])
        for part in (words, words_with_eos(data_dir / "wikitext2" / "valid.txt"))
    )
    assert (len(vocabulary), len(train), len(valid)) == (33278, 2088628, 217646)
    model = KneserNey.fit(train, len(vocabulary), order=5, start_id=vocabulary["<eos>"])
    assert 230 < perplexity(-model.log_probs(valid).mean()) < 235
