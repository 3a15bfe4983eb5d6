"""Contextual decomposition: two parts that sum to the outputs, and what the published algorithm gives."""

import numpy as np
import pytest
import torch

from elman.inspect.decomposition import decompose, decomposition
from elman.inspect.subject import subject_of
from elman.ragged import Ragged
from elman.tasks.classify import TextClassifier
from tests.inspect.small_models import TEXTS, classifier, tagger
from tests.inspect.test_relevance import SETTINGS


@pytest.mark.parametrize("settings", [*SETTINGS, "tagger"], ids=lambda s: s if isinstance(s, str) else " ".join(s))
def test_both_parts_sum_to_the_outputs(settings: tuple[str, ...] | str) -> None:
    subject = subject_of(tagger("model.crf=true") if settings == "tagger" else classifier(*settings))
    cuts = [subject.cut(text) for text in (*TEXTS, TEXTS[0])]
    phrases = [(1, 3), (0, 1), (8, 10), (0, 7)]
    found = decompose(subject, cuts, phrases)
    for one, output in zip(found, subject.outputs([cut.tokens for cut in cuts]), strict=True):
        np.testing.assert_allclose(one.beta + one.gamma, output, atol=1e-5)
    assert abs(found[0].beta - found[3].beta).max() > 1e-3


def test_each_token_is_a_phrase_of_its_own() -> None:
    subject = subject_of(classifier())
    cut = subject.cut(TEXTS[0])
    (output,) = subject.outputs([cut.tokens])
    question = subject.ask(cut, output, "good", "bad")
    (found,) = decomposition(subject, [cut], [question])
    (alone,) = decompose(subject, [cut], [(2, 3)])
    assert found.values[2] == pytest.approx(question.score(alone.beta), abs=1e-9)
    assert found.score == pytest.approx(question.score(output), abs=1e-5)


def test_it_is_what_the_published_algorithm_gives() -> None:
    """The loop of Murdoch et al. (2018) for one LSTM layer."""
    model = classifier("model.cell=lstm", "model.pooling=last", "model.bidirectional=false", "model.edges=false")
    subject = subject_of(model)
    cut = subject.cut(TEXTS[0])
    (found,) = decompose(subject, [cut], [(1, 3)])
    np.testing.assert_allclose(found.beta[0], murdoch(model, cut.tokens, 1, 3), atol=1e-6)


def murdoch(model: TextClassifier, tokens: np.ndarray, start: int, stop: int) -> np.ndarray:
    layer, head = model.network.body.layers[0], model.network.output
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    W, U, b_x, b_h = (getattr(layer, name).detach().double().numpy() for name in names)
    with torch.no_grad():
        x = model.network.embedding(torch.from_numpy(Ragged.of([tokens]).data)).double().numpy()
    H = U.shape[1]
    b = np.split(b_x + b_h, 4)
    rel_h, irrel_h, rel_c, irrel_c = (np.zeros(H) for _ in range(4))

    def sigmoid(z: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-z))

    def three(f, a, c, d):  # type: ignore[no-untyped-def]
        first = 0.5 * (f(a + d) - f(d) + f(a + c + d) - f(c + d))
        second = 0.5 * (f(c + d) - f(d) + f(a + c + d) - f(a + d))
        return first, second, f(d)

    for t, vector in enumerate(x):
        inside = start <= t < stop
        rel, irrel = U @ rel_h, U @ irrel_h
        if inside:
            rel = rel + W @ vector
        else:
            irrel = irrel + W @ vector
        (r_i, r_f, r_g, r_o), (n_i, n_f, n_g, n_o) = np.split(rel, 4), np.split(irrel, 4)
        i, g, f = three(sigmoid, r_i, n_i, b[0]), three(np.tanh, r_g, n_g, b[2]), three(sigmoid, r_f, n_f, b[1])
        new = i[0] * (g[0] + g[2]) + i[2] * g[0]
        other = i[1] * (g[0] + g[1] + g[2]) + (i[0] + i[2]) * g[1]
        if inside:
            new = new + i[2] * g[2]
        else:
            other = other + i[2] * g[2]
        new_c = new + (f[0] + f[2]) * rel_c
        irrel_c = other + (f[0] + f[1] + f[2]) * irrel_c + f[1] * rel_c
        rel_c = new_c
        o = sigmoid(r_o + n_o + b[3])
        rel_h = o * 0.5 * (np.tanh(rel_c) + np.tanh(rel_c + irrel_c) - np.tanh(irrel_c))
        irrel_h = o * 0.5 * (np.tanh(irrel_c) + np.tanh(rel_c + irrel_c) - np.tanh(rel_c))
    return head.weight.detach().double().numpy() @ rel_h
