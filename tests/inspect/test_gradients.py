"""Gradient x input and integrated gradients: as Captum computes them, complete, and in batches as one by one."""

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from elman.inspect.gradients import GAP, gradient_input, integrated_gradients
from elman.inspect.subject import Cut, Question, Subject, subject_of
from elman.ragged import Ragged
from tests.inspect.small_models import TEXTS, classifier, tagger

CLASSIFIERS = [
    ("model.cell=gru", "model.pooling=max"),
    ("model.cell=lstm", "model.pooling=attention", "model.layers=2"),
    ("model.cell=rnn", "model.pooling=last"),
    ("model.cell=mut2", "model.pooling=mean", "model.edges=false"),
]


def asked(subject: Subject) -> tuple[list[Cut], list[Question]]:
    cuts = [subject.cut(text) for text in TEXTS]
    outputs = subject.outputs([cut.tokens for cut in cuts])
    return cuts, [subject.ask(cut, output, None) for cut, output in zip(cuts, outputs, strict=True)]


def captum_input(subject: Subject, cut: Cut, question: Question):  # type: ignore[no-untyped-def]
    """A text's vectors (1 x T x E), and a function from such to scores: what Captum takes."""
    with torch.no_grad():
        vectors = subject.embed(Ragged.of([cut.tokens])).data.unsqueeze(0)

    def forward(x: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(x, torch.full((len(x),), x.size(1)), batch_first=True)
        outputs = subject.score(packed)
        rows = outputs.view(x.size(1), len(x), -1).transpose(0, 1) if question.positions else outputs.unsqueeze(1)
        return (rows * torch.from_numpy(question.weights.astype(np.float32))).sum((1, 2))

    return vectors, forward


@pytest.mark.parametrize("settings", [*CLASSIFIERS, "tagger"], ids=lambda s: s if isinstance(s, str) else s[0])
def test_both_are_captums(settings: tuple[str, ...] | str) -> None:
    from captum.attr import InputXGradient, IntegratedGradients

    subject = subject_of(tagger("model.crf=true") if settings == "tagger" else classifier(*settings))
    cuts, questions = asked(subject)
    simple = gradient_input(subject, cuts, questions)
    integrated = integrated_gradients(subject, cuts, questions, steps=32)
    for cut, question, one, two in zip(cuts, questions, simple, integrated, strict=True):
        vectors, forward = captum_input(subject, cut, question)
        vectors.requires_grad_()
        theirs = InputXGradient(forward).attribute(vectors).sum(-1)[0].detach().numpy()
        np.testing.assert_allclose(one.values, cut.own(theirs), atol=1e-5)
        theirs = IntegratedGradients(forward).attribute(vectors, n_steps=32, method="gausslegendre").sum(-1)[0]
        np.testing.assert_allclose(two.values, cut.own(theirs.detach().numpy()), atol=1e-5)
        assert one.score == pytest.approx(float(forward(vectors).detach()), abs=1e-5)


@pytest.mark.parametrize("settings", CLASSIFIERS, ids=lambda s: s[0])
def test_integrated_gradients_add_up_to_the_score_but_for_one_per_cent(settings: tuple[str, ...]) -> None:
    subject = subject_of(classifier(*settings))
    for one in integrated_gradients(subject, *asked(subject)):
        assert one.gap is not None and one.gap <= GAP
        assert one.rest is not None and one.steps is not None
        difference = one.score - one.rest
        assert abs(sum(one.values) + one.edges - difference) <= 1.01 * GAP * max(abs(difference), 0.1)


def test_many_texts_are_explained_in_batches_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    subject, sizes, score = subject_of(classifier()), list[int](), Subject.score
    cuts, questions = asked(subject)

    def counted(self: Subject, embedded: PackedSequence) -> torch.Tensor:
        sizes.append(int(embedded.batch_sizes[0]))
        return score(self, embedded)

    monkeypatch.setattr(Subject, "score", counted)
    together = gradient_input(subject, cuts * 100, questions * 100)
    assert len(together) == sum(sizes) == 300 and len(sizes) == 2
    for number, (cut, question) in enumerate(zip(cuts, questions, strict=True)):
        (alone,) = gradient_input(subject, [cut], [question])
        np.testing.assert_allclose(together[number + 297].values, alone.values, atol=1e-6)


def test_a_network_in_training_is_explained_without_its_dropout_and_trains_on() -> None:
    model = classifier("model.input_dropout=0.9")
    subject = subject_of(model)
    cuts, questions = asked(subject)
    quiet = gradient_input(subject, cuts, questions)
    model.network.train()
    assert gradient_input(subject, cuts, questions)[0].values == quiet[0].values
    assert model.network.training
    assert all(weight.grad is None for weight in model.network.parameters())
