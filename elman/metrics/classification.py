"""How well labels were guessed: accuracy, F1, confusion, calibration, and the same for several labels a text.

A confusion matrix holds all that the scores of single labels need, so every one of them is read off `Confusion`.
The plain-text tables fit a terminal; `draw_confusion` makes the picture.
"""

import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.errors import UserError
from elman.files import write_aside

Ints = npt.NDArray[np.int64]

MATRIX_CLASSES = 20  # beyond, a matrix is no longer read but searched
LABEL_WIDTH = 24


@dataclass(frozen=True)
class Score:
    """How often one class was predicted, was there, and both at once; a ratio over nothing is 0.

    >>> score = Score(correct=3, predicted=4, support=6)
    >>> score.precision, score.recall, score.f1
    (0.75, 0.5, 0.6)
    """

    correct: int
    predicted: int
    support: int

    @property
    def precision(self) -> float:
        """The share of the predictions that are right."""
        return self.correct / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of what was there that was found."""
        return self.correct / self.support if self.support else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        total = self.predicted + self.support
        return 2 * self.correct / total if total else 0.0

    def to_dict(self) -> dict[str, float]:
        """As a report shows it."""
        ratios = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return {**ratios, "support": self.support, "predicted": self.predicted}


def pooled(scores: Iterable[Score]) -> Score:
    """All classes counted as one: the micro average.

    >>> pooled([Score(3, 4, 6), Score(1, 1, 1)])
    Score(correct=4, predicted=5, support=7)
    """
    scores = list(scores)
    return Score(
        sum(score.correct for score in scores),
        sum(score.predicted for score in scores),
        sum(score.support for score in scores),
    )


def macro_f1(scores: Iterable[Score]) -> float:
    """The mean F1 of the classes that were there or predicted: each counts the same.

    >>> macro_f1([Score(3, 4, 6), Score(1, 1, 1), Score(0, 0, 0)])
    0.8
    """
    present = [score.f1 for score in scores if score.support or score.predicted]
    return sum(present) / len(present) if present else 0.0


def weighted_f1(scores: Iterable[Score]) -> float:
    """The mean F1, every class weighted by how often it was there.

    >>> round(weighted_f1([Score(3, 4, 6), Score(1, 1, 1)]), 3)
    0.657
    """
    scores = list(scores)
    support = sum(score.support for score in scores)
    return sum(score.f1 * score.support for score in scores) / support if support else 0.0


@dataclass(frozen=True, eq=False)
class Confusion:
    """How often each class was taken for which; make one with `of`.

    >>> confusion = Confusion.of(gold=["cat", "cat", "dog"], predicted=["cat", "dog", "dog"])
    >>> confusion.counts.tolist()
    [[1, 1], [0, 1]]
    >>> round(confusion.accuracy, 3), confusion.most_confused()
    (0.667, [('cat', 'dog', 1)])
    """

    labels: tuple[str, ...]
    counts: Ints  # C x C, a row for what is right, a column for what was predicted

    @classmethod
    def of(cls, gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str] = ()) -> "Confusion":
        """Count the pairs; `labels` come first, in their order, then the others that occur, sorted."""
        _check_pairs(len(gold), len(predicted))
        names = _all_labels(labels, {*gold, *predicted})
        index = {name: place for place, name in enumerate(names)}
        counts = np.zeros((len(names), len(names)), np.int64)
        for (right, guess), count in Counter(zip(gold, predicted, strict=True)).items():
            counts[index[right], index[guess]] = count
        return cls(names, counts)

    @property
    def accuracy(self) -> float:
        """The share of examples that are right."""
        return float(np.trace(self.counts) / self.counts.sum())

    @property
    def by_class(self) -> dict[str, Score]:
        """The score of every class, in the order of the labels."""
        rows = np.stack([np.diag(self.counts), self.counts.sum(0), self.counts.sum(1)], axis=1)  # C x 3
        return {label: Score(*row) for label, row in zip(self.labels, rows.tolist(), strict=True)}

    def most_confused(self, n: int = 20) -> list[tuple[str, str, int]]:
        """The pairs (right, predicted, how often) of different classes, the most frequent first."""
        mistakes = [
            (right, guess, count)
            for right, row in zip(self.labels, self.counts.tolist(), strict=True)
            for guess, count in zip(self.labels, row, strict=True)
            if count and right != guess
        ]
        return sorted(mistakes, key=lambda mistake: -mistake[2])[:n]

    def to_dict(self) -> dict[str, object]:
        """As a report shows it."""
        return {"accuracy": self.accuracy, **_f1(self.by_class, "by_class"), "examples": int(self.counts.sum())}


@dataclass(frozen=True)
class MultilabelScores:
    """The scores where a text has any number of labels; make them with `multilabel_scores`."""

    by_class: dict[str, Score]
    exact: int
    examples: int

    @property
    def subset_accuracy(self) -> float:
        """The share of texts whose labels are all found, and no others."""
        return self.exact / self.examples

    def to_dict(self) -> dict[str, object]:
        """As a report shows them."""
        scores = {"subset_accuracy": self.subset_accuracy, "micro_f1": pooled(self.by_class.values()).f1}
        return {**scores, **_f1(self.by_class, "by_class"), "examples": self.examples}


def multilabel_scores(
    gold: Sequence[Collection[str]], predicted: Sequence[Collection[str]], labels: Sequence[str] = ()
) -> MultilabelScores:
    """Score texts with several labels each; `labels` as in `Confusion.of`.

    >>> scores = multilabel_scores(gold=[{"art", "law"}, {"law"}], predicted=[{"law"}, {"law"}])
    >>> scores.subset_accuracy, scores.by_class["art"].recall, pooled(scores.by_class.values()).f1
    (0.5, 0.0, 0.8)
    """
    _check_pairs(len(gold), len(predicted))
    pairs = [(set(right), set(guess)) for right, guess in zip(gold, predicted, strict=True)]
    correct = Counter(label for right, guess in pairs for label in right & guess)
    guessed = Counter(label for _, guess in pairs for label in guess)
    support = Counter(label for right, _ in pairs for label in right)
    names = _all_labels(labels, {*guessed, *support})
    by_class = {name: Score(correct[name], guessed[name], support[name]) for name in names}
    return MultilabelScores(by_class, sum(right == guess for right, guess in pairs), len(pairs))


@dataclass(frozen=True)
class Bin:
    """The predictions whose confidence lies above `low` and up to `high`: how sure they are, how often right."""

    low: float
    high: float
    count: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Whether a confidence of 0.8 is right in 8 of 10 cases; make one with `calibration`."""

    error: float
    bins: tuple[Bin, ...]

    def text(self) -> str:
        """The reliability table, without its empty rows, and the expected calibration error under it."""
        lines = [f"{'confidence':>11}  {'count':>8}  {'mean':>6}  {'right':>6}"]
        for b in self.bins:
            if b.count:
                lines.append(f"{b.low:5.2f}-{b.high:.2f}   {b.count:8}  {b.confidence:6.3f}  {b.accuracy:6.3f}")
        return "\n".join([*lines, f"expected calibration error {self.error:.3f}"])

    def to_dict(self) -> dict[str, Any]:
        """As a report holds it."""
        return {"calibration_error": self.error, "calibration": [vars(bin) for bin in self.bins]}

    @classmethod
    def from_dict(cls, scores: Mapping[str, Any]) -> "Calibration":
        """Of the scores of a report."""
        return cls(scores["calibration_error"], tuple(Bin(**entry) for entry in scores["calibration"]))


def calibration(confidences: Sequence[float], right: Sequence[bool], bins: int = 10) -> Calibration:
    """Compare how sure the predictions were with how often they were right, in `bins` of equal width.

    The error is the expected calibration error of Naeini et al. (2015): the gap of each bin, weighted by its count.

    >>> round(calibration([0.9, 0.8, 0.6, 0.55], [True, True, True, False], bins=2).error, 4)
    0.0375
    """
    _check_pairs(len(confidences), len(right))
    if bins < 1:
        raise UserError(f"{bins} bins hold no confidence: choose 1 or more")
    sure, hits = np.asarray(confidences, np.float64), np.asarray(right, np.float64)
    if not ((sure >= 0) & (sure <= 1)).all():
        raise UserError("a confidence lies outside 0 to 1: give probabilities, not scores")
    edges = np.linspace(0, 1, bins + 1)
    place = np.searchsorted(edges[1:-1], sure)
    count = np.bincount(place, minlength=bins)
    filled = np.maximum(count, 1)
    confidence = np.bincount(place, sure, minlength=bins) / filled
    accuracy = np.bincount(place, hits, minlength=bins) / filled
    error = float((np.abs(confidence - accuracy) * count).sum() / len(sure))
    rows = zip(edges.tolist(), edges[1:].tolist(), count.tolist(), confidence.tolist(), accuracy.tolist(), strict=False)
    return Calibration(error, tuple(Bin(*row) for row in rows))


def trust_in_each(probabilities: npt.NDArray[Any], targets: npt.NDArray[Any]) -> dict[str, Any]:
    """How far the yes or no of every label of several can be trusted (both N x C)."""
    sure = np.clip(np.maximum(probabilities, 1 - probabilities), 0.0, 1.0).ravel()
    right = ((probabilities >= 0.5) == (targets > 0)).ravel()
    return calibration(sure.tolist(), right.tolist()).to_dict()


def mean_loss(logits: npt.NDArray[Any], targets: npt.NDArray[Any]) -> float:
    """The mean negative log-likelihood (nats) of classes (N), or of zeros and ones for every class (N x C).

    >>> round(mean_loss(np.array([[0.0, 0.0]]), np.array([1])), 4)
    0.6931
    """
    exact = logits.astype(np.float64)
    if targets.ndim == 2:
        return float((np.logaddexp(0, exact) - targets * exact).mean())
    highest = exact.max(axis=1)
    totals = highest + np.log(np.exp(exact - highest[:, None]).sum(axis=1))
    return float((totals - exact[np.arange(len(targets)), targets]).mean())


def single_scores(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Accuracy, F1, each class and the confusion matrix, of texts with one label each, as a report holds them."""
    confusion = Confusion.of(gold, predicted, labels)
    return {"accuracy": confusion.accuracy, **_f1(confusion.by_class), "confusion": confusion.counts.tolist()}


def several_scores(
    gold: Sequence[Iterable[str]], predicted: Sequence[Iterable[str]], labels: Sequence[str]
) -> dict[str, Any]:
    """Scores of any number of labels a text; `accuracy` is the share of texts that have all of theirs."""
    found = multilabel_scores([set(row) for row in gold], [set(row) for row in predicted], labels)
    micro = {"micro_f1": pooled(found.by_class.values()).f1}
    return {"accuracy": found.subset_accuracy, **micro, **_f1(found.by_class)}


def _f1(by_class: Mapping[str, Score], name: str = "classes") -> dict[str, Any]:
    classes = {label: score.to_dict() for label, score in by_class.items()}
    return {"macro_f1": macro_f1(by_class.values()), "weighted_f1": weighted_f1(by_class.values()), name: classes}


def scores_from(classes: Mapping[str, Mapping[str, float]]) -> dict[str, Score]:
    """The counts behind the ratios that a report keeps of each class."""
    return {
        label: Score(round(entry["recall"] * entry["support"]), int(entry["predicted"]), int(entry["support"]))
        for label, entry in classes.items()
    }


def most_confident_mistakes(
    gold: Sequence[str], predicted: Sequence[str], confidences: Sequence[float], n: int = 10
) -> list[int]:
    """The places of the mistakes that the model was surest of, the surest first.

    >>> most_confident_mistakes(["a", "b", "a"], ["b", "b", "b"], [0.6, 0.9, 0.7])
    [2, 0]
    """
    _check_pairs(len(gold), len(predicted))
    _check_pairs(len(gold), len(confidences))
    wrong = [place for place, right in enumerate(gold) if right != predicted[place]]
    return sorted(wrong, key=lambda place: -confidences[place])[:n]


def score_table(scores: Mapping[str, Score]) -> str:
    """A line of precision, recall, F1 and support for each class, and their averages, as plain text.

    >>> print(score_table({"cat": Score(1, 1, 2), "dog": Score(1, 2, 1)}))
              precision  recall     f1  support
    cat           1.000   0.500  0.667        2
    dog           0.500   1.000  0.667        1
    micro         0.667   0.667  0.667        3
    macro                        0.667
    weighted                     0.667
    """
    rows = [["", "precision", "recall", "f1", "support"]]
    for label, score in [*scores.items(), ("micro", pooled(scores.values()))]:
        ratios = (f"{ratio:.3f}" for ratio in (score.precision, score.recall, score.f1))
        rows.append([_short(label), *ratios, str(score.support)])
    rows.append(["macro", "", "", f"{macro_f1(scores.values()):.3f}", ""])
    rows.append(["weighted", "", "", f"{weighted_f1(scores.values()):.3f}", ""])
    return _aligned(rows)


def confusion_table(confusion: Confusion, width: int = 80) -> str:
    """The matrix as plain text, a row for what is right; the most confused pairs where it is too large to read.

    >>> print(confusion_table(Confusion.of(["cat", "cat", "dog"], ["cat", "dog", "dog"])))
          a b
    a cat 1 1
    b dog . 1
    """
    if len(confusion.labels) > MATRIX_CLASSES:
        return _pairs_table(confusion)
    rows = [[str(count) if count else "." for count in row] for row in confusion.counts.tolist()]
    names = [f"{letter} {_short(label)}" for letter, label in zip(ascii_lowercase, confusion.labels, strict=False)]
    header = ["", *ascii_lowercase[: len(names)]]
    table = _aligned([header, *([name, *row] for name, row in zip(names, rows, strict=True))], gap=" ")
    return table if table.index("\n") <= width else _pairs_table(confusion)


def _pairs_table(confusion: Confusion) -> str:
    pairs = [[_short(right), _short(guess), str(count)] for right, guess, count in confusion.most_confused()]
    return _aligned([["right", "predicted", "count"], *pairs], names=2) if pairs else "no mistakes"


def _aligned(rows: list[list[str]], names: int = 1, gap: str = "  ") -> str:
    """Columns as wide as their longest cell: the first `names` of them to the left, the numbers to the right."""
    sides = "<" * names + ">" * (len(rows[0]) - names)
    sizes = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (gap.join(f"{c:{side}{size}}" for c, side, size in zip(row, sides, sizes, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def draw_confusion(confusion: Confusion, path: Path) -> None:
    """A PNG of the matrix; a cell is as dark as its share of its row, and small matrices show the counts."""
    from matplotlib.figure import Figure  # slow to import, and only needed here

    classes = len(confusion.labels)
    shares = confusion.counts / np.maximum(confusion.counts.sum(1, keepdims=True), 1)
    side = min(3 + 0.4 * classes, 18)
    figure = Figure(figsize=(side, side), layout="constrained")
    axes = figure.subplots()
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
    names = [_short(label) for label in confusion.labels]
    size = min(9.0, 500 / classes)
    axes.set_xticks(range(classes), names, rotation=90, fontsize=size, parse_math=False)
    axes.set_yticks(range(classes), names, fontsize=size, parse_math=False)
    if classes <= MATRIX_CLASSES:
        for row, column in zip(*np.nonzero(confusion.counts), strict=True):
            ink = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, confusion.counts[row, column], ha="center", va="center", fontsize=7, color=ink)
    axes.set_xlabel("predicted")
    axes.set_ylabel("right")
    with write_aside(path) as aside, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a sign that the font lacks is a box
        figure.savefig(aside, format="png", dpi=120)


def _short(label: str) -> str:
    return label if len(label) <= LABEL_WIDTH else label[: LABEL_WIDTH - 1] + "…"


def _all_labels(first: Sequence[str], seen: set[str]) -> tuple[str, ...]:
    return (*first, *sorted(seen.difference(first)))


def _check_pairs(gold: int, predicted: int) -> None:
    if gold != predicted:
        raise UserError(f"there are {gold} examples and {predicted} predictions: give one prediction for each example")
    if not gold:
        raise UserError("there are no examples to score: give at least one")
