"""The baselines that a classifier or tagger has to beat: counting, and a linear model over character n-grams."""

import warnings
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from elman.errors import UserError

Label = TypeVar("Label", bound=Hashable)


@dataclass(frozen=True)
class MostFrequentClass(Generic[Label]):
    """Always answers with the class that training saw most often; a label may be a frozenset of several.

    >>> MostFrequentClass.fit(["so so", "fine", "good"], ["bad", "good", "good"]).predict(["awful"])
    ['good']
    """

    label: Label

    @classmethod
    def fit(cls, texts: Sequence[str], labels: Sequence[Label]) -> "MostFrequentClass[Label]":
        """Count `labels`; the texts are there so that all baselines are fitted alike."""
        _check_examples(texts, labels)
        return cls(_most_frequent(labels))

    def predict(self, texts: Sequence[str]) -> list[Label]:
        """The one label, for each text."""
        return [self.label] * len(texts)


@dataclass(frozen=True)
class MostFrequentTag:
    """Gives every word the tag that it had most often, and a word never seen the most frequent tag of all.

    >>> baseline = MostFrequentTag.fit([["the", "cat"], ["the", "dog"]], [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> baseline.predict([["the", "axolotl"]])
    [['DET', 'DET']]
    """

    tags: dict[str, str]
    unseen: str

    @classmethod
    def fit(cls, sentences: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> "MostFrequentTag":
        """Count the tags of every word."""
        _check_examples(sentences, tags)
        by_word: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for number, (words, their_tags) in enumerate(zip(sentences, tags, strict=True), start=1):
            if len(words) != len(their_tags):
                raise UserError(
                    f"sentence {number} has {len(words)} tokens and {len(their_tags)} tags: give one tag for each token"
                )
            for word, tag in zip(words, their_tags, strict=True):
                by_word[word][tag] += 1
        if not by_word:
            raise UserError("the training sentences have no tokens: give at least one")
        overall = _most_frequent(tag for sentence in tags for tag in sentence)
        return cls({word: _most_frequent(counts) for word, counts in by_word.items()}, overall)

    def predict(self, sentences: Sequence[Sequence[str]]) -> list[list[str]]:
        """A tag for each word."""
        return [[self.tags.get(word, self.unseen) for word in words] for words in sentences]


class CharacterNgrams:
    """Logistic regression on the TF-IDF of character n-grams of 1 to 4; needs the extra `baselines`.

    `CharacterNgrams.fit(texts, labels).predict(new_texts)` gives one label a text.

    >>> CharacterNgrams.fit(["one"], ["number", "colour"])
    Traceback (most recent call last):
    elman.errors.UserError: there are 1 texts and 2 labels: give one entry of labels for each text
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    @classmethod
    def fit(cls, texts: Sequence[str], labels: Sequence[str]) -> "CharacterNgrams":
        """Fit the model to texts with one label each."""
        _check_examples(texts, labels)
        if len(set(labels)) < 2:
            raise UserError(f"all labels are {labels[0]!r}: give examples of at least two classes")
        return cls(_fitted(texts, np.asarray(labels)))

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most probable class of each text."""
        return [str(label) for label in self._model.predict(texts)] if len(texts) else []


class MultilabelCharacterNgrams:
    """Logistic regressions on character n-grams for texts with any number of labels: one yes or no for each label.

    >>> MultilabelCharacterNgrams.fit(["one"], [set()])
    Traceback (most recent call last):
    elman.errors.UserError: no training text has a label: give at least one that has
    """

    def __init__(self, model: Any, labels: list[str]) -> None:
        self._model = model
        self._labels = labels

    @classmethod
    def fit(cls, texts: Sequence[str], labels: Sequence[Collection[str]]) -> "MultilabelCharacterNgrams":
        """Fit the model to every label that occurs."""
        _check_examples(texts, labels)
        names = sorted({name for row in labels for name in row})
        if not names:
            raise UserError("no training text has a label: give at least one that has")
        flags = np.array([[name in row for name in names] for row in labels], np.int64)  # N x C
        return cls(_fitted(texts, flags), names)

    def predict(self, texts: Sequence[str]) -> list[frozenset[str]]:
        """The labels that are more probable than not, for each text."""
        rows = np.reshape(self._model.predict(texts) if len(texts) else [], (len(texts), len(self._labels)))
        return [frozenset(name for name, flag in zip(self._labels, row, strict=True) if flag) for row in rows]


class BagOfVectors:
    """Logistic regression on the mean of a text's word vectors (N x E); needs the extra `baselines`.

    >>> rows = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    >>> BagOfVectors.fit(rows, ["good", "good", "bad"]).predict(rows[2:])  # doctest: +SKIP
    ['bad']
    """

    def __init__(self, model: Any) -> None:
        self._model = model

    @classmethod
    def fit(cls, rows: npt.NDArray[Any], labels: Sequence[str]) -> "BagOfVectors":
        """Fit the model to means with one label each, scaled to one spread in every direction."""
        regression = _sklearn("linear_model").LogisticRegression(max_iter=500, random_state=0)
        scaled = _sklearn("preprocessing").StandardScaler()
        return cls(_sklearn("pipeline").make_pipeline(scaled, regression).fit(rows, labels))

    def predict(self, rows: npt.NDArray[Any]) -> list[str]:
        """The most probable class of each."""
        return [str(label) for label in self._model.predict(rows)]


def _fitted(texts: Sequence[str], targets: npt.NDArray[Any]) -> Any:
    """One regression a class, each against the rest: as accurate as one over all classes, and several times faster.

    N-grams stay inside a word and see its edges.
    """
    if not any(text.strip() for text in texts):
        raise UserError("all training texts are empty: give at least one with characters in it")
    regression = _sklearn("linear_model").LogisticRegression(C=10.0, solver="liblinear", random_state=0)
    pipeline = _sklearn("pipeline").make_pipeline(
        _sklearn("feature_extraction.text").TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4)),
        _sklearn("multiclass").OneVsRestClassifier(regression),
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Label .* is present in all", UserWarning)  # so it is always predicted
        return pipeline.fit(texts, targets)


def _sklearn(module: str) -> Any:
    try:
        return import_module(f"sklearn.{module}")
    except ImportError:
        raise UserError(
            "this baseline needs scikit-learn, which is not installed: pip install 'elman[baselines]'"
        ) from None


def _most_frequent(values: Iterable[Label]) -> Label:
    """The first seen among those seen most often; a Counter counts as itself."""
    return Counter(values).most_common(1)[0][0]


def _check_examples(texts: Sequence[object], labels: Sequence[object]) -> None:
    if len(texts) != len(labels):
        raise UserError(
            f"there are {len(texts)} texts and {len(labels)} labels: give one entry of labels for each text"
        )
    if not len(texts):
        raise UserError("there are no examples to fit a baseline to: give at least one")
