"""What a classifier has to beat: the most frequent class, and a linear model over character n-grams."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from elman.baselines.lexicon import CharacterNgrams, MostFrequentClass, MultilabelCharacterNgrams
from elman.errors import UserError
from elman.records.labelled import LabelledText
from elman.tasks.classify.scoring import several_scores, single_scores
from elman.tasks.classify.settings import BaselineSettings

MOST_FREQUENT = "most frequent class"
NGRAMS = "character n-grams"

Guess = Callable[[list[str]], Sequence[Any]]


def baseline_scores(
    train: Sequence[LabelledText],
    sets: Mapping[str, Sequence[LabelledText]],
    labels: Sequence[str],
    several: bool,
    settings: BaselineSettings,
) -> tuple[dict[str, dict[str, Any]], str]:
    """The scores of each baseline on each set, and a sentence for the user where one had to be left out."""
    texts = [record.text for record in train]
    guesses: dict[str, Guess] = {}
    note = ""
    if several:
        rows = [frozenset(record.labels) for record in train]
        guesses[MOST_FREQUENT] = MostFrequentClass.fit(texts, rows).predict
    else:
        guesses[MOST_FREQUENT] = MostFrequentClass.fit(texts, [record.labels[0] for record in train]).predict
    if settings.ngrams:
        try:
            guesses[NGRAMS] = _ngrams(train[: settings.texts], several)
        except UserError as error:
            note = f"no n-gram baseline: {error}"
    return {who: _scores(guess, sets, labels, several) for who, guess in guesses.items()}, note


def _ngrams(train: Sequence[LabelledText], several: bool) -> Guess:
    texts = [record.text for record in train]
    if several:
        return MultilabelCharacterNgrams.fit(texts, [record.labels for record in train]).predict
    return CharacterNgrams.fit(texts, [record.labels[0] for record in train]).predict


def _scores(
    guess: Guess, sets: Mapping[str, Sequence[LabelledText]], labels: Sequence[str], several: bool
) -> dict[str, Any]:
    """Without the confusion matrix: whoever wants that can fit the baseline."""
    found: dict[str, Any] = {}
    for name, records in sets.items():
        predicted = guess([record.text for record in records])
        if several:
            scores = several_scores([record.labels for record in records], predicted, labels)
        else:
            scores = single_scores([record.labels[0] for record in records], predicted, labels)
        right = [set(_several(p)) == set(r.labels) for p, r in zip(predicted, records, strict=True)]
        found[name] = {key: value for key, value in scores.items() if key not in ("confusion", "classes")}
        found[name]["right"] = right
    return found


def _several(predicted: Any) -> Sequence[str]:
    return [predicted] if isinstance(predicted, str) else list(predicted)
