"""Occlusion is the edited text read again."""

import numpy as np
import pytest

from elman.inspect.occlusion import occlusion, score_without
from elman.inspect.saliency import saliency
from elman.inspect.subject import subject_of
from elman.ragged import Ragged
from tests.inspect.small_models import classifier, tagger

TEXT = "a fine film with a good end"


@pytest.mark.parametrize("settings", [(), ("model.edges=false",), ("model.characters=4",)], ids=str)
@pytest.mark.parametrize("edit", ["drop", "unknown"])
def test_a_token_is_worth_what_the_score_loses_in_the_edited_text(settings: tuple[str, ...], edit: str) -> None:
    model = classifier(*settings)
    (found,) = saliency(model, [TEXT], ["occlusion"], target="good", against="bad", edit=edit)  # type: ignore[arg-type]
    words = TEXT.split()
    put = [] if edit == "drop" else ["<unk>"]
    edited = [" ".join([*words[:n], *put, *words[n + 1 :]]) for n in range(len(words))]

    def score(texts: list[str]) -> np.ndarray:
        table = model.scores(model.vocabulary.encode(texts))
        return table[:, model.labels.index("good")] - table[:, model.labels.index("bad")]

    expected = score([TEXT]) - score(edited)
    np.testing.assert_allclose(found.methods["occlusion"].values, expected, atol=2e-6)


def test_of_a_tagger_the_tokens_are_made_unknown() -> None:
    model = tagger()
    (found,) = saliency(model, [TEXT], ["occlusion"], target="O", position=3)
    words = TEXT.split()
    edited = [[*words[:n], "<unk>", *words[n + 1 :]] for n in range(len(words))]
    subject = subject_of(model)
    outputs = subject.outputs([subject.cut(one).tokens for one in [words, *edited]])
    column = [float(output[2, model.tags.index("O")]) for output in outputs]
    np.testing.assert_allclose(found.methods["occlusion"].values, column[0] - np.array(column[1:]), atol=2e-6)


def test_a_token_that_is_dropped_before_the_one_asked_for_shifts_it() -> None:
    subject = subject_of(tagger())
    cut = subject.cut(TEXT)
    (output,) = subject.outputs([cut.tokens])
    question = subject.ask(cut, output, "O", position=3)
    (shorter,) = subject.outputs([np.delete(cut.tokens, 0)])
    assert score_without(subject, cut, question, [0], "drop") == pytest.approx(float(shorter[1, 2]), abs=2e-6)
    (own,) = subject.outputs([subject.removed(cut, [2])])  # which cannot be dropped: its tag is asked for
    assert score_without(subject, cut, question, [2], "drop") == pytest.approx(float(own[2, 2]), abs=2e-6)


def test_the_only_token_can_be_dropped() -> None:
    model = classifier("model.edges=false")
    subject = subject_of(model)
    cut = subject.cut("dull")
    (output,) = subject.outputs([cut.tokens])
    question = subject.ask(cut, output, "bad")
    (found,) = occlusion(subject, [cut], [question])
    empty = model.scores(Ragged.of([np.array([1])]))[0, 0]  # as the encoder reads a text of nothing
    assert found.values[0] == pytest.approx(float(output[0, 0] - empty), abs=2e-6)
