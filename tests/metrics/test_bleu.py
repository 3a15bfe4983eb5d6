"""BLEU beside sacrebleu's."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import CHRF, corpus_bleu

from elman.errors import UserError
from elman.metrics import bleu, corpus_scores

MAT = [["the", "cat", "is", "on", "the", "mat"], ["there", "is", "a", "cat", "on", "the", "mat"]]
CANDIDATE = ["the", "cat", "the", "cat", "on", "the", "mat"]

line = st.lists(st.sampled_from("abc"), min_size=1, max_size=9)
corpus = st.lists(
    st.tuples(st.lists(st.sampled_from("abc"), max_size=9), st.lists(line, min_size=1, max_size=3)),
    min_size=1,
    max_size=4,
)


@settings(deadline=None, max_examples=150)
@given(corpus, st.sampled_from(["none", "exp"]))
def test_it_equals_sacrebleu(lines: list[tuple[list[str], list[list[str]]]], smoothing: str) -> None:
    hypotheses, references = [row[0] for row in lines], [row[1] for row in lines]
    ours = bleu(hypotheses, references, smoothing=smoothing)  # type: ignore[arg-type]
    most = max(map(len, references))
    streams = [[" ".join(r[n]) if n < len(r) else None for r in references] for n in range(most)]
    theirs = corpus_bleu(
        [" ".join(tokens) for tokens in hypotheses],
        streams,  # type: ignore[arg-type]
        tokenize="none",
        force=True,
        smooth_method=smoothing,
    )
    assert ours.score * 100 == pytest.approx(theirs.score, abs=1e-9)
    assert ours.lengths == (theirs.sys_len, theirs.ref_len)
    assert ours.brevity_penalty == pytest.approx(theirs.bp)


def test_the_cat_on_the_mat_clipped_and_as_the_course_counts() -> None:
    """The course counts a repeated word each time a reference has it at all; clipping is what forbids that."""
    counted = bleu([CANDIDATE], [MAT], order=2, clip=False)
    assert counted.precisions == (7 / 7, 5 / 6)
    assert counted.score == pytest.approx(math.sqrt(5 / 6))
    clipped = bleu([CANDIDATE], [MAT], order=2)
    assert clipped.precisions == (5 / 7, 4 / 6)
    assert clipped.brevity_penalty == 1.0


def test_short_answers_are_penalised_and_right_ones_score_one() -> None:
    assert bleu([MAT[0]], [MAT]).score == pytest.approx(1.0)
    short = bleu([["the", "cat", "is", "on"]], [MAT[:1]])
    assert short.score == pytest.approx(math.exp(1 - 6 / 4))
    assert bleu([[]], [MAT]).score == 0.0
    assert bleu([["the", "mat"]], [MAT]).score == 0.0 < bleu([["the", "cat", "on", "a"]], [MAT], smoothing="exp").score


def test_reports_have_sacrebleus_figures_and_signatures() -> None:
    hypotheses = ["The cat sat on the mat.", "A dog barks!"]
    references = [["The cat sat on a mat.", "A cat is on the mat."], ["a dog barks!"]]
    scores = corpus_scores(hypotheses, references, lowercase=True)
    streams = [["The cat sat on a mat.", "a dog barks!"], ["A cat is on the mat.", None]]
    assert scores.bleu == corpus_bleu(hypotheses, streams, lowercase=True).score  # type: ignore[arg-type]
    assert scores.chrf == CHRF(lowercase=True).corpus_score(hypotheses, streams).score  # type: ignore[arg-type]
    assert scores.bleu > corpus_scores(hypotheses, references).bleu
    assert "case:lc" in scores.bleu_signature and "tok:13a" in scores.bleu_signature
    assert "nc:6" in scores.chrf_signature
    assert scores.to_dict()["bleu"] == scores.bleu


def test_what_cannot_be_scored_is_refused() -> None:
    with pytest.raises(UserError, match="2 hypotheses and 1 lists"):
        bleu([["a"], ["b"]], [[["a"]]])
    with pytest.raises(UserError, match="hypothesis 2 has no reference"):
        corpus_scores(["a", "b"], [["a"], []])
    with pytest.raises(UserError, match="no hypotheses"):
        corpus_scores([], [])
