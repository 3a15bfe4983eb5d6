from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elman.errors import UserError
from elman.metrics.classification import (
    Confusion,
    calibration,
    confusion_table,
    draw_confusion,
    most_confident_mistakes,
    multilabel_scores,
    score_table,
)

label = st.sampled_from(["ham", "spam", "news", "ads"])
label_pairs = st.lists(st.tuples(label, label), min_size=1, max_size=40)
label_sets = st.frozensets(label)


@pytest.mark.filterwarnings("ignore:A single label was found")
@settings(deadline=None)
@given(pairs=label_pairs)
def test_single_label_scores_equal_scikit_learns(pairs: list[tuple[str, str]]) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    gold, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    confusion = Confusion.of(gold, predicted)
    report = confusion.to_dict()
    precision, recall, f1, support = sklearn.precision_recall_fscore_support(gold, predicted, zero_division=0)
    scores = confusion.by_class.values()
    assert confusion.counts.tolist() == sklearn.confusion_matrix(gold, predicted, labels=confusion.labels).tolist()
    assert confusion.accuracy == pytest.approx(sklearn.accuracy_score(gold, predicted))
    assert [score.precision for score in scores] == pytest.approx(precision.tolist())
    assert [score.recall for score in scores] == pytest.approx(recall.tolist())
    assert [score.f1 for score in scores] == pytest.approx(f1.tolist())
    assert [score.support for score in scores] == support.tolist()
    for average in ("macro", "weighted"):
        theirs = sklearn.f1_score(gold, predicted, average=average, zero_division=0)
        assert report[f"{average}_f1"] == pytest.approx(theirs)


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(label_sets, label_sets), min_size=1, max_size=20))
def test_multilabel_scores_equal_scikit_learns(pairs: list[tuple[frozenset[str], frozenset[str]]]) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    gold, predicted = [a for a, _ in pairs], [b for _, b in pairs]
    report = multilabel_scores(gold, predicted).to_dict()
    names = sorted(frozenset().union(*gold, *predicted))
    if not names:
        assert (report["subset_accuracy"], report["micro_f1"], report["macro_f1"]) == (1.0, 0.0, 0.0)
        return
    there, found = (np.array([[name in row for name in names] for row in rows], int) for rows in (gold, predicted))
    for average in ("micro", "macro", "weighted"):
        if len(names) > 1:
            theirs = sklearn.f1_score(there, found, average=average, zero_division=0)
        else:  # which scikit-learn would take for two classes
            theirs = sklearn.f1_score(there.ravel(), found.ravel(), zero_division=0)
        assert report[f"{average}_f1"] == pytest.approx(theirs)
    assert report["subset_accuracy"] == pytest.approx((there == found).all(1).mean())


@settings(deadline=None)
@given(
    pairs=st.lists(st.tuples(st.floats(0, 1) | st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.booleans()), min_size=1),
    bins=st.integers(1, 15),
)
def test_the_reliability_table_equals_scikit_learns(pairs: list[tuple[float, bool]], bins: int) -> None:
    sklearn = pytest.importorskip("sklearn.calibration")
    confidences, right = [a for a, _ in pairs], [b for _, b in pairs]
    ours = calibration(confidences, right, bins)
    accuracy, confidence = sklearn.calibration_curve(np.array(right, int), confidences, n_bins=bins)
    filled = [row for row in ours.bins if row.count]
    assert [row.accuracy for row in filled] == pytest.approx(accuracy.tolist())
    assert [row.confidence for row in filled] == pytest.approx(confidence.tolist())
    gaps = [abs(row.accuracy - row.confidence) * row.count for row in filled]
    assert ours.error == pytest.approx(sum(gaps) / len(pairs))


def test_perfect_confidence_has_no_calibration_error_and_boasting_has() -> None:
    assert calibration([1.0, 1.0, 0.0], [True, True, False]).error == 0.0
    assert calibration([1.0, 1.0], [True, False]).error == 0.5
    text = calibration([0.95, 0.85], [True, False], bins=5).text().splitlines()
    assert text[-2].split() == ["0.80-1.00", "2", "0.900", "0.500"]
    assert text[-1] == "expected calibration error 0.400"


def test_labels_keep_their_order_and_strangers_come_last() -> None:
    confusion = Confusion.of(["low", "odd"], ["high", "low"], labels=["low", "mid", "high"])
    assert confusion.labels == ("low", "mid", "high", "odd")
    assert confusion.by_class["mid"].support == 0
    assert confusion.to_dict()["macro_f1"] == Confusion.of(["low", "odd"], ["high", "low"]).to_dict()["macro_f1"]


def test_the_surest_mistakes_come_first() -> None:
    gold, predicted = ["a", "a", "b", "b"], ["a", "b", "a", "a"]
    assert most_confident_mistakes(gold, predicted, [0.99, 0.5, 0.8, 0.8]) == [2, 3, 1]
    assert most_confident_mistakes(gold, predicted, [0.99, 0.5, 0.8, 0.8], n=1) == [2]


def test_eighteen_classes_fit_a_terminal() -> None:
    draw = np.random.default_rng(0)
    names = [f"language {number}" for number in range(18)]
    gold = draw.choice(names, 800).tolist()
    predicted = [right if draw.random() < 0.8 else draw.choice(names) for right in gold]
    confusion = Confusion.of(gold, predicted)
    matrix = confusion_table(confusion).splitlines()
    assert len(matrix) == 19
    assert max(map(len, matrix)) <= 80
    assert confusion_table(confusion, width=40).split()[:3] == ["right", "predicted", "count"]
    assert max(map(len, score_table(confusion.by_class).splitlines())) <= 80


def test_many_classes_show_the_most_confused_pairs() -> None:
    names = [f"{number:02}" for number in range(30)]
    confusion = Confusion.of([*names, "03", "03", "07"], [*names, "04", "04", "x" * 50])
    rows = [line.split() for line in confusion_table(confusion).splitlines()]
    assert rows == [["right", "predicted", "count"], ["03", "04", "2"], ["07", "x" * 23 + "…", "1"]]
    assert confusion_table(Confusion.of(names, names)) == "no mistakes"


@pytest.mark.parametrize("classes", [1, 3, 40])
def test_the_picture_is_a_png(tmp_path: Path, classes: int) -> None:
    names = [f"$money {number}$ _{{" for number in range(classes)]  # no formula, whatever it looks like
    draw_confusion(Confusion.of(names, names[::-1]), tmp_path / "confusion.png")
    assert (tmp_path / "confusion.png").read_bytes().startswith(b"\x89PNG")


def test_wrong_input_is_one_sentence() -> None:
    with pytest.raises(UserError, match="2 examples and 1 predictions"):
        Confusion.of(["a", "b"], ["a"])
    with pytest.raises(UserError, match="no examples to score"):
        multilabel_scores([], [])
    with pytest.raises(UserError, match="outside 0 to 1"):
        calibration([1.5], [True])
    with pytest.raises(UserError, match="outside 0 to 1"):
        calibration([float("nan")], [True])
    with pytest.raises(UserError, match="0 bins"):
        calibration([0.5], [True], bins=0)
