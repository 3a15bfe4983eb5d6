"""Sentences that nobody wrote keep what they are there to teach: the tags, the case, the spans."""

from pathlib import Path

import numpy as np
import pytest

from elman.batches.noise import MadeUpWords, SwappedSpans
from elman.records.tagged import Sentence
from elman.text.spans import detect_scheme, read_spans, repair
from elman.text.spelling import case_of
from elman.train import loop as loop_module
from tests.tasks.tag_runs import run, sentences, write


@pytest.fixture(autouse=True)
def _seeded() -> None:
    np.random.seed(3)


def test_made_up_words_keep_case_and_leave_numbers_alone() -> None:
    noise = MadeUpWords(sentences(), share=1.0)
    changed = 0
    for sentence in [*sentences(20, seed=1), Sentence(("42", "!", "went"), ("O", "O", "O"))]:
        noisy = noise(sentence)
        assert noisy.tags == sentence.tags
        for before, after in zip(sentence.tokens, noisy.tokens, strict=True):
            assert case_of(before) == case_of(after)
            assert before.isalpha() or before == after
            changed += before != after
    assert changed > 50


def test_no_share_changes_nothing() -> None:
    for noise in (MadeUpWords(sentences(), 0.0), SwappedSpans(sentences(), "BIO", 0.0)):
        assert [noise(sentence).tokens for sentence in sentences(9)] == [s.tokens for s in sentences(9)]
        assert [noise(sentence).tags for sentence in sentences(9)] == [s.tags for s in sentences(9)]


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "IOB1"])
def test_swapped_spans_are_those_of_the_training_set(scheme: str) -> None:
    pool = {
        (span.type, sentence.tokens[span.start : span.end])
        for sentence in sentences()
        for span in read_spans(sentence.tags)
    }
    noise = SwappedSpans(sentences(), scheme, share=1.0)  # type: ignore[arg-type]
    moved = 0
    for sentence in sentences(20, seed=2):
        noisy = noise(sentence)
        assert len(noisy.tokens) == len(noisy.tags)
        assert repair(noisy.tags, scheme).changed == 0  # type: ignore[arg-type]
        spans, before = read_spans(noisy.tags), read_spans(sentence.tags)
        assert len(spans) == len(before)
        assert all((span.type, noisy.tokens[span.start : span.end]) in pool for span in spans)
        moved += [span.type for span in spans] != [span.type for span in before]
        outside = [token for token, tag in zip(sentence.tokens, sentence.tags, strict=True) if tag == "O"]
        assert [token for token, tag in zip(noisy.tokens, noisy.tags, strict=True) if tag == "O"] == outside
    assert moved > 5
    assert detect_scheme([noisy.tags]) is not None


def test_noise_follows_from_the_seed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)
    path = write(tmp_path / "a.conll")
    settings = ("train.steps=6", "batch.made_up=0.5", "batch.swapped=0.5")
    for name in ("one", "two"):
        run(path, tmp_path / name, *settings)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two
