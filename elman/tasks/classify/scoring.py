"""What a classifier scored on texts whose classes are known: the numbers, and all that a report shows of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from elman.metrics.classification import (
    Confusion,
    calibration,
    macro_f1,
    most_confident_mistakes,
    multilabel_scores,
    pooled,
    weighted_f1,
)
from elman.records.labelled import LabelledText

MISTAKES = 10
THRESHOLD = 0.5  # a label of several is given to a text from this probability on


def targets_of(records: Sequence[LabelledText], labels: Sequence[str], several: bool) -> Tensor:
    """The class of each text (N), or zeros and ones for every class (N x C).

    >>> records = [LabelledText("a fine film", ("good",), "a.csv:1")]
    >>> targets_of(records, ["bad", "good"], several=False), targets_of(records, ["bad", "good"], several=True)
    (tensor([1]), tensor([[0., 1.]]))
    """
    place = {label: index for index, label in enumerate(labels)}
    if not several:
        return torch.tensor([place[record.labels[0]] for record in records])
    flags = torch.zeros(len(records), len(labels))
    for index, record in enumerate(records):
        flags[index, [place[label] for label in record.labels]] = 1.0
    return flags


def loss_of(logits: Tensor, targets: Tensor) -> float:
    """The mean negative log-likelihood (nats), as it is without weights and smoothing."""
    if targets.is_floating_point():
        return float(functional.binary_cross_entropy_with_logits(logits.double(), targets.double()))
    return float(functional.cross_entropy(logits.double(), targets))


def quick_scores(logits: Tensor, targets: Tensor) -> dict[str, float]:
    """Loss and accuracy (for several labels the share of texts with all of them right): what training looks at."""
    if targets.is_floating_point():
        right = ((logits > 0) == (targets > 0)).all(dim=1)
    else:
        right = logits.argmax(dim=1) == targets
    return {"loss": loss_of(logits, targets), "accuracy": float(right.double().mean())}


def single_scores(gold: Sequence[str], predicted: Sequence[str], labels: Sequence[str]) -> dict[str, Any]:
    """Accuracy, F1 and the confusion matrix of texts with one label each; for baselines too."""
    confusion = Confusion.of(gold, predicted, labels)
    each = confusion.by_class
    return {
        "texts": len(gold),
        "accuracy": confusion.accuracy,
        "macro_f1": macro_f1(each.values()),
        "weighted_f1": weighted_f1(each.values()),
        "classes": {label: score.to_dict() | {"predicted": score.predicted} for label, score in each.items()},
        "confusion": confusion.counts.tolist(),
    }


def several_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], labels: Sequence[str]
) -> dict[str, Any]:
    """The same for any number of labels a text; `accuracy` is the share of texts that have all of theirs."""
    found = multilabel_scores([set(row) for row in gold], [set(row) for row in predicted], labels)
    each = found.by_class
    return {
        "texts": len(gold),
        "accuracy": found.subset_accuracy,
        "micro_f1": pooled(each.values()).f1,
        "macro_f1": macro_f1(each.values()),
        "weighted_f1": weighted_f1(each.values()),
        "classes": {label: score.to_dict() | {"predicted": score.predicted} for label, score in each.items()},
    }


def full_scores(
    records: Sequence[LabelledText], logits: np.ndarray, labels: Sequence[str], several: bool
) -> dict[str, Any]:
    """Everything that a report says of one set of texts."""
    scores, targets = torch.from_numpy(logits), targets_of(records, labels, several)
    loss = loss_of(scores, targets)
    if several:
        chances = scores.sigmoid().double().numpy()
        predicted = [tuple(label for label, p in zip(labels, row, strict=True) if p >= THRESHOLD) for row in chances]
        found = several_scores([record.labels for record in records], predicted, labels)
        return {"loss": loss, **found, **_several_trust(chances, targets.numpy())}
    chances = scores.softmax(dim=1).double().numpy()
    best = chances.argmax(axis=1)
    gold, guesses = [record.labels[0] for record in records], [labels[index] for index in best]
    sure = np.minimum(chances[np.arange(len(best)), best], 1.0).tolist()
    trust = calibration(sure, [right == guess for right, guess in zip(gold, guesses, strict=True)])
    mistakes = [
        {"text": records[i].text, "right": gold[i], "predicted": guesses[i], "probability": sure[i]}
        for i in most_confident_mistakes(gold, guesses, sure, MISTAKES)
    ]
    return {
        "loss": loss,
        **single_scores(gold, guesses, labels),
        "calibration_error": trust.error,
        "calibration": [vars(bin) for bin in trust.bins],
        "mistakes": mistakes,
    }


def _several_trust(chances: np.ndarray, targets: np.ndarray) -> dict[str, Any]:
    """How far the yes or no of every label can be trusted."""
    sure = np.clip(np.maximum(chances, 1 - chances), 0.0, 1.0).ravel()
    right = ((chances >= THRESHOLD) == (targets > 0)).ravel()
    trust = calibration(sure.tolist(), right.tolist())
    return {"calibration_error": trust.error, "calibration": [vars(bin) for bin in trust.bins]}
