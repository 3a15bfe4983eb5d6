"""Estimators for scikit-learn: Elman's classifiers and taggers in pipelines, grids and cross-validation.

from elman.sklearn import TextClassifier
cross_val_score(TextClassifier(settings={"train.epochs": 5}), texts, labels)
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from elman.errors import UserError
from elman.records.tables import is_missing

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.metrics import accuracy_score
    from sklearn.utils.validation import check_is_fitted, column_or_1d
except ImportError:
    raise UserError("elman.sklearn needs scikit-learn: pip install 'elman[baselines]'") from None

__all__ = ["Tagger", "TextClassifier"]

NO_ROWS = "give a list, an array or a column of them, one a text"


class _Estimator(BaseEstimator):  # type: ignore[misc]
    def __init__(
        self,
        recipe: str | Path | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int = 1,
        verbose: bool = False,
    ) -> None:
        self.recipe, self.settings, self.seed, self.verbose = recipe, settings, seed, verbose

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; `settings__model.hidden` is one of the settings."""
        own = {name: value for name, value in params.items() if name.startswith("settings__")}
        super().set_params(**{name: value for name, value in params.items() if name not in own})
        if own:
            more = {name.removeprefix("settings__"): value for name, value in own.items()}
            self.settings = {**(self.settings or {}), **more}
        return self

    def _fit(self, task: str, rows: list[Any]) -> None:
        from elman.tasks import fit

        settings = {**(self.settings or {}), "train.seed": self.seed}
        self.model_ = fit(task, self.recipe, train=rows, settings=settings, verbose=self.verbose)


class TextClassifier(ClassifierMixin, _Estimator):  # type: ignore[misc]
    """A classifier of texts. `recipe` and `settings` are those of `elman.fit`; `seed` goes over them.

    >>> texts, labels = ["good film", "fine film", "bad film", "dull film"] * 8, ["yes", "yes", "no", "no"] * 8
    >>> small = {"train.steps": 40, "text.kind": "words", "model.hidden": 8}
    >>> classifier = TextClassifier(settings=small).fit(texts, labels)
    >>> classifier.predict(["good film"]).tolist(), classifier.classes_.tolist()
    (['yes'], ['no', 'yes'])
    """

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> Self:
        """Train on texts and their labels, or on texts and lists of labels each."""
        flat = column_or_1d(y, warn=True) if len(getattr(y, "shape", ())) == 2 else y
        texts, labels = _texts(X), flat.tolist() if hasattr(flat, "tolist") else list(flat)
        if len(texts) != len(labels):
            raise ValueError(f"there are {len(texts)} texts and {len(labels)} labels: give one for each text")
        classes = _classes(labels)
        name = {label: str(label).strip() for label in classes.tolist()}  # 1 and 1.0 are one label
        names = [[name[label] for label in row] if _is_list(row) else name[row] for row in labels]
        rows = list(zip(texts, names, strict=True))
        self._fit("classify", rows)
        known = self.model_.labels
        self.classes_ = classes if len(classes) == len(known) else np.unique(known)  # the settings may join some
        self._order = [known.index(str(label).strip()) for label in self.classes_.tolist()]  # of the model's own
        return self

    def predict(self, X: Iterable[str]) -> np.ndarray[Any, Any]:
        """The label of each text; of several labels each, lists of them."""
        check_is_fitted(self, "model_")
        named = {str(label).strip(): label for label in self.classes_.tolist()}
        answers = self.model_.predict(_texts(X))
        if not self.model_.several:
            return np.array([named[answer.labels[0]] for answer in answers])
        lists = np.empty(len(answers), object)
        lists[:] = [[named[label] for label in answer.labels] for answer in answers]
        return lists

    def predict_proba(self, X: Iterable[str]) -> np.ndarray[Any, Any]:
        """The probability of each of `classes_` (N x C)."""
        check_is_fitted(self, "model_")
        return np.asarray(self.model_.probabilities(_texts(X)), np.float64)[:, self._order]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        return tags


class Tagger(_Estimator):
    """A tagger of sentences: lists of words to lists of tags.

    >>> sentences, tags = [["a", "cat", "sat"], ["the", "dog", "ran"]] * 12, [["D", "N", "V"]] * 24
    >>> tagger = Tagger(settings={"train.steps": 60, "model.hidden": 8}).fit(sentences, tags)
    >>> tagger.predict([["the", "cat", "ran"]])
    [['D', 'N', 'V']]
    """

    def fit(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> Self:
        """Train on sentences of words, and a tag for each word."""
        self._fit("tag", _aligned(X, y))
        return self

    def predict(self, X: Iterable[Sequence[str]]) -> list[list[str]]:
        """A tag for each word of each sentence."""
        check_is_fitted(self, "model_")
        return [list(tags) for tags in self.model_.tag_tokens([list(words) for words in X])]

    def score(self, X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> float:
        """The share of words whose tag is right."""
        rows = _aligned(X, y)
        found = self.predict([words for words, _ in rows])
        return float(accuracy_score([tag for _, tags in rows for tag in tags], [tag for tags in found for tag in tags]))


def _texts(X: Any) -> list[str]:
    """Texts as a list; a column, and a data frame or an array of one column, are taken for what they are."""
    if hasattr(X, "columns"):
        if len(X.columns) != 1:
            raise ValueError(f"texts are one column, and there are {len(X.columns)}: {NO_ROWS}")
        X = X[X.columns[0]]
    if isinstance(X, str | Mapping) or not isinstance(X, Iterable):
        raise ValueError(f"texts are several: {NO_ROWS}")
    values = X.ravel().tolist() if isinstance(X, np.ndarray) else X.tolist() if hasattr(X, "tolist") else list(X)
    if not all(isinstance(text, str) for text in values):
        raise ValueError(f"texts are strings: {NO_ROWS}")
    return values


def _classes(labels: list[Any]) -> np.ndarray[Any, Any]:
    """The different labels, sorted, as scikit-learn has them; those that could be taken for each other are refused."""
    every = [label for row in labels for label in (row if _is_list(row) else [row])]
    for number, row in enumerate(labels, 1):
        if any(map(is_missing, row if _is_list(row) else [row])):
            raise ValueError(f"label {number} of {len(labels)} is missing: give one, or leave its text out")
    if len({isinstance(label, str) for label in every}) > 1:
        raise ValueError("some labels are strings and others are not: give labels of one kind")
    classes = np.unique(np.array(every))
    if len({str(label).strip() for label in classes.tolist()}) < len(classes):
        raise ValueError("some labels differ in the blanks around them alone: strip them")
    return classes


def _aligned(X: Iterable[Sequence[str]], y: Iterable[Sequence[str]]) -> list[tuple[list[str], list[str]]]:
    """Sentences with a tag for each word."""
    sentences, tags = [list(words) for words in X], [list(row) for row in y]
    if len(sentences) != len(tags):
        raise ValueError(f"there are {len(sentences)} sentences and {len(tags)} lists of tags: give one for each")
    for number, (words, row) in enumerate(zip(sentences, tags, strict=True), 1):
        if len(words) != len(row):
            raise ValueError(f"sentence {number} has {len(words)} words and {len(row)} tags: give a tag for each word")
    return list(zip(sentences, tags, strict=True))


def __dir__() -> list[str]:
    return __all__


def _is_list(row: Any) -> bool:
    return isinstance(row, list | tuple | set | frozenset)
