"""N-grams that are scored beside a network: by PyTorch, compiled, and one by one."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elman.inspect.gradients import integrated_gradients
from elman.inspect.relevance import relevance
from elman.inspect.subject import subject_of
from elman.nn.inputs import packed_sequence
from elman.nn.ngrams import NGramScores
from elman.nn.pooling import sum_over_steps
from elman.ragged import Ragged
from elman.runtime.encoder import ngram_scores
from elman.tasks.classify import TextClassifier
from tests.inspect.small_models import TEXTS, classifier

Texts = list[list[int]]
texts_of_ids = st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), min_size=1, max_size=6)


def scores_of(buckets: int, order: int) -> NGramScores:
    torch.manual_seed(3)
    found = NGramScores(buckets, 3, order)
    torch.nn.init.normal_(found.weight)
    return found.eval()


@given(texts_of_ids, st.integers(1, 5))
def test_they_are_the_sum_over_all_ngrams_by_the_root_of_their_number(texts: Texts, order: int) -> None:
    module = scores_of(97, order)
    found = sum_over_steps(
        packed := packed_sequence(Ragged.of(texts))._replace(data=module(packed_sequence(Ragged.of(texts))))
    )
    assert len(found) == len(texts) == int(packed.batch_sizes[0])
    for text, row in zip(texts, found, strict=True):
        every = [text[i : i + n] for n in range(1, order + 1) for i in range(len(text) - n + 1)]
        rows = [int(Ragged.of([gram]).ngrams(len(gram), 97)[0][-1, -1]) for gram in every]
        expected = 10 * module.weight[rows].sum(0) / len(every) ** 0.5
        assert torch.allclose(row, expected, atol=1e-4)


@given(texts_of_ids)
def test_compiled_they_are_the_same(texts: Texts) -> None:
    module, ragged = scores_of(50, 4), Ragged.of(texts)
    packed = packed_sequence(ragged)
    expected = sum_over_steps(packed._replace(data=module(packed))).detach().numpy()
    np.testing.assert_allclose(ngram_scores(module.weight.detach().numpy(), ragged, 4), expected, atol=1e-4)


def test_ngrams_seldom_share_a_row() -> None:
    pairs = [[one, two] for one in range(100) for two in range(100)]
    rows = Ragged.of(pairs).ngrams(2, 1 << 20)[0][1::2, 1]
    assert len(np.unique(rows)) > 9_900  # of 10,000; by chance it would be 9,950


def with_ngrams(*settings: str) -> TextClassifier:
    model = classifier("model.ngrams=3", "model.ngram_buckets=500", *settings)
    torch.manual_seed(5)
    with torch.no_grad():
        torch.nn.init.normal_(model.network.ngrams.weight)  # type: ignore[union-attr]
    return model


def test_a_model_says_the_same_compiled_by_pytorch_and_nearly_so_in_int8() -> None:
    model = with_ngrams("model.pooling=max")
    scores, runtime = model.scores(model.vocabulary.encode(TEXTS)), model._runtime()
    assert runtime is not None
    np.testing.assert_allclose(runtime.scores(model.vocabulary.encode(TEXTS)), scores, atol=1e-5)
    with torch.no_grad():
        model.network.ngrams.weight.zero_()  # type: ignore[union-attr]
    assert np.abs(model.scores(model.vocabulary.encode(TEXTS)) - scores).max() > 0.1
    model = with_ngrams("model.pooling=max")
    np.testing.assert_allclose(model.to_int8().probabilities(TEXTS), model.probabilities(TEXTS), atol=0.1)


@pytest.mark.parametrize("settings", [("model.cell=lstm",), ("model.cell=gru", "model.pooling=last-max-mean")])
def test_explanations_add_up_with_them(settings: tuple[str, ...]) -> None:
    subject = subject_of(with_ngrams(*settings))
    cuts = [subject.cut(text) for text in TEXTS]
    outputs = subject.outputs([cut.tokens for cut in cuts])
    questions = [subject.ask(cut, out, "good") for cut, out in zip(cuts, outputs, strict=True)]
    by_relevance, by_path = relevance(subject, cuts, questions), integrated_gradients(subject, cuts, questions)
    for question, output, one, other in zip(questions, outputs, by_relevance, by_path, strict=True):
        assert one.rest is not None and other.rest is not None
        assert sum(one.values) + one.edges + one.rest == pytest.approx(question.score(output), abs=1e-5)
        assert sum(other.values) + other.edges + other.rest == pytest.approx(question.score(output), rel=0.02, abs=0.01)


def test_texts_that_were_packed_as_they_came() -> None:
    module = scores_of(97, 2)
    texts = [torch.tensor([4, 1, 5]), torch.tensor([3, 1])]  # the longest first: nothing to sort
    packed = torch.nn.utils.rnn.pack_sequence(texts)
    assert packed.sorted_indices is None
    found = module(packed)
    torch.testing.assert_close(found, module(packed_sequence(Ragged.of([text.tolist() for text in texts]))))


@pytest.mark.parametrize("how", ["gaussian", "uniform-0.1"])
def test_ngrams_that_were_never_met_say_nothing_however_weights_are_drawn(how: str) -> None:
    model = classifier("model.ngrams=2", f"model.initialise={how}")
    network = TextClassifier.build(model.config, model.vocabulary)
    assert network.ngrams is not None and not network.ngrams.weight.any() and network.output.weight.any()
