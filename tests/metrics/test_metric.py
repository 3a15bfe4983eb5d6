"""A metric finds its value, knows which way is better, and writes itself."""

import pytest

from elman.metrics.metric import Metric, first_of

ACCURACY, SPANS = Metric("accuracy", percent=True), Metric("spans.f1", "span F1", percent=True)
PERPLEXITY = Metric("perplexity", lower_is_better=True)


def test_a_dot_leads_into_a_table() -> None:
    assert SPANS.of({"spans": {"f1": 0.25}}) == 0.25
    for scores in ({}, {"spans": None}, {"spans": {}}, {"spans": 3}):
        assert SPANS.of(scores) is None
    assert ACCURACY.of({"accuracy": 0}) == 0.0  # nought is a score


@pytest.mark.parametrize(
    ("metric", "value", "shown"),
    [
        (ACCURACY, 0.8551, "85.51 %"),
        (PERPLEXITY, 1234.567, "1,234.57"),
        (Metric("loss", digits=4), 0.5, "0.5000"),
        (ACCURACY, None, ""),
    ],
)
def test_a_value_as_tables_have_it(metric: Metric, value: float | None, shown: str) -> None:
    assert metric.shown(value) == shown


def test_a_spread_is_in_the_unit_of_its_mean() -> None:
    assert ACCURACY.shown_with_spread(0.9, 0.015) == "90.00 ± 1.50 %"
    assert PERPLEXITY.shown_with_spread(9.0, 0.25) == "9.00 ± 0.25"


def test_the_best_comes_first_whichever_way_is_better() -> None:
    assert sorted([0.1, 0.3, 0.2], key=ACCURACY.worse) == [0.3, 0.2, 0.1]
    assert sorted([9.0, 3.0, 5.0], key=PERPLEXITY.worse) == [3.0, 5.0, 9.0]


def test_the_first_that_the_scores_have() -> None:
    assert first_of((SPANS, ACCURACY), {"accuracy": 0.5, "spans": {"f1": 0.2}}) is SPANS
    assert first_of((SPANS, ACCURACY), {"accuracy": 0.5}) is ACCURACY
    assert first_of((SPANS, ACCURACY), {}) is ACCURACY


def test_names() -> None:
    assert (SPANS.name, ACCURACY.name) == ("span F1", "accuracy")
