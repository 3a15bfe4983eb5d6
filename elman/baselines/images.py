"""What can be said of an image without the question about it: a linear model of what it looks like as a whole."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elman.errors import UserError


@dataclass(frozen=True)
class ImageRegression:
    """Ridge regression from the vector of an image to each label; the one with the most is the answer.

    >>> vectors = np.array([[0.0, 1.0], [0.0, 0.9], [1.0, 0.0]])
    >>> ImageRegression.fit(vectors, ["yes", "yes", "no"]).predict(np.array([[0.9, 0.2]]))
    ['no']
    """

    labels: list[str]
    mean: np.ndarray
    weights: np.ndarray

    @classmethod
    def fit(cls, vectors: np.ndarray, answers: Sequence[str], ridge: float = 10.0) -> "ImageRegression":
        """Fit the model to the vectors of images (N x D) with an answer each."""
        if len(vectors) != len(answers) or not len(answers):
            raise UserError(f"there are {len(vectors)} images and {len(answers)} answers: give one for each")
        labels = sorted(set(answers))
        wanted = np.array([[answer == label for label in labels] for answer in answers], np.float64)  # N x C
        mean = vectors.mean(axis=0, dtype=np.float64)
        x = _with_one(vectors - mean)  # N x D+1
        return cls(labels, mean, np.linalg.solve(x.T @ x + ridge * np.eye(x.shape[1]), x.T @ wanted))

    def predict(self, vectors: np.ndarray) -> list[str]:
        """The answer for each image (N x D)."""
        return [self.labels[place] for place in (_with_one(vectors - self.mean) @ self.weights).argmax(axis=1)]


def _with_one(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)
