"""The weights of attention pooling."""

import pytest

from elman.errors import UserError
from elman.inspect import explain, views_of
from tests.inspect.small_models import TEXTS, classifier


def test_they_sum_to_one_with_the_ends() -> None:
    explanation = explain(classifier("model.pooling=attention"), TEXTS, "attention")
    for text, data in zip(TEXTS, explanation.data, strict=True):
        assert data.tokens == text.split() and len(data.weights) == len(data.tokens)
        assert sum(data.weights) + data.edges == pytest.approx(1, abs=1e-5)
    note = explanation.page().columns[0].panels[1].note  # type: ignore[attr-defined]
    assert "not why a class was chosen" in note


def test_another_pooling_has_none() -> None:
    model = classifier("model.pooling=mean")
    assert "attention" not in views_of(model)
    with pytest.raises(UserError, match="this model has no view 'attention': it has no attention: its pooling is mean"):
        explain(model, TEXTS[0], "attention")
