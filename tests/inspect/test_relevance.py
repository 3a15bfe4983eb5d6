"""Layer-wise relevance: conserved, and what the published rules give step by step."""

import numpy as np
import pytest
import torch

from elman.inspect.relevance import relevance
from elman.inspect.subject import subject_of
from elman.ragged import Ragged
from elman.tasks.classify import TextClassifier
from tests.inspect.small_models import TEXTS, classifier, tagger

SETTINGS = [
    ("model.cell=lstm", "model.pooling=last"),
    ("model.cell=lstm", "model.pooling=max", "model.layers=3", "model.connections=residual"),
    ("model.cell=lstm", "model.pooling=attention", "model.bidirectional=false", "model.edges=false"),
    ("model.cell=gru", "model.pooling=max"),
    ("model.cell=gru", "model.pooling=mean", "model.layers=2", "model.connections=dense"),
    ("model.cell=gru", "model.pooling=last", "model.bidirectional=false"),
    ("model.cell=gru-cho", "model.pooling=attention", "model.layers=2"),
    ("model.cell=gru", "model.characters=4"),
    ("model.cell=gru", "model.merge=mean", "model.layers=2", "model.pooling=last"),
    ("model.cell=lstm", "model.projection=3", "model.learned_state=true", "model.merge=mean", "model.layers=2"),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=" ".join)
@pytest.mark.parametrize("against", [None, "bad"])
def test_with_the_biases_it_sums_to_the_score(settings: tuple[str, ...], against: str | None) -> None:
    subject = subject_of(classifier(*settings))
    cuts = [subject.cut(text) for text in TEXTS]
    outputs = subject.outputs([cut.tokens for cut in cuts])
    questions = [subject.ask(cut, out, "good", against) for cut, out in zip(cuts, outputs, strict=True)]
    for question, output, one in zip(questions, outputs, relevance(subject, cuts, questions), strict=True):
        assert one.rest is not None
        assert sum(one.values) + one.edges + one.rest == pytest.approx(question.score(output), abs=1e-5)


@pytest.mark.parametrize("settings", [("model.crf=true",), ("model.cell=gru", "model.layers=2")], ids=" ".join)
def test_so_it_does_for_the_tags_of_a_tagger(settings: tuple[str, ...]) -> None:
    subject = subject_of(tagger(*settings))
    cuts = [subject.cut(text) for text in TEXTS]
    outputs = subject.outputs([cut.tokens for cut in cuts])
    questions = [subject.ask(cut, out, None) for cut, out in zip(cuts, outputs, strict=True)]
    for question, output, one in zip(questions, outputs, relevance(subject, cuts, questions), strict=True):
        assert one.rest is not None
        assert sum(one.values) + one.rest == pytest.approx(question.score(output), abs=1e-5)


def test_it_is_what_the_rules_of_arras_give_step_by_step() -> None:
    """The published rules as loops: ε for sums (here tiny), all to the signal in products (Arras et al., 2017)."""
    model = classifier("model.cell=lstm", "model.pooling=last", "model.bidirectional=false", "model.edges=false")
    subject = subject_of(model)
    cut = subject.cut(TEXTS[0])
    (output,) = subject.outputs([cut.tokens])
    (found,) = relevance(subject, [cut], [subject.ask(cut, output, "good")])
    np.testing.assert_allclose(found.values, lstm_rules(model, cut.tokens, model.labels.index("good")), atol=1e-6)


def lstm_rules(model: TextClassifier, tokens: np.ndarray, label: int) -> list[float]:
    layer, head = model.network.body.layers[0], model.network.output
    names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    W, U, b_x, b_h = (getattr(layer, name).detach().double().numpy() for name in names)
    with torch.no_grad():
        x = model.network.embedding(torch.from_numpy(Ragged.of([tokens]).data)).double().numpy()
    H, T, b = U.shape[1], len(x), b_x + b_h
    h, c = np.zeros((T + 1, H)), np.zeros((T + 1, H))
    pre, i, f = np.zeros((T, H)), np.zeros((T, H)), np.zeros((T, H))
    for t in range(T):
        gates = W @ x[t] + U @ h[t] + b
        i[t], f[t], o = (1 / (1 + np.exp(-gates[k * H : (k + 1) * H])) for k in (0, 1, 3))
        pre[t] = gates[2 * H : 3 * H]
        c[t + 1] = f[t] * c[t] + i[t] * np.tanh(pre[t])
        h[t + 1] = o * np.tanh(c[t + 1])
    out = head.weight.detach().double().numpy()[label]
    R_h, R_c, found = out * h[T], np.zeros(H), []
    W_g, U_g = W[2 * H : 3 * H], U[2 * H : 3 * H]
    for t in reversed(range(T)):
        R_c = R_c + R_h
        share = R_c / c[t + 1]
        R_g, R_c = share * i[t] * np.tanh(pre[t]), share * f[t] * c[t]
        R_x = (W_g * x[t] * (R_g / pre[t])[:, None]).sum(0)
        R_h = (U_g * h[t] * (R_g / pre[t])[:, None]).sum(0)
        found.append(float(R_x.sum()))
    return found[::-1]
