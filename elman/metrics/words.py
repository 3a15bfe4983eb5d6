"""How good word vectors are: analogies, and how their cosines agree with what people say of pairs of words."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.records.word_tests import Analogies, Similarities
from elman.text.vectors import WordVectors

BLOCK = 256  # questions that are answered together
Floats = NDArray[np.floating]


def ranks(values: Floats) -> NDArray[np.float64]:
    """The place of each value in their order, from 1; equal ones share the mean of their places.

    >>> ranks(np.array([3.0, 1.0, 3.0])).tolist()
    [2.5, 1.0, 2.5]
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def spearman(one: Floats, other: Floats) -> float:
    """The correlation of the ranks of two rows of numbers; 0 where one of them does not vary.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))
    1.0
    """
    a, b = (found - found.mean() for found in (ranks(one), ranks(other)))
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale else 0.0


def similarity_scores(vectors: WordVectors, test: Similarities) -> dict[str, Any]:
    """Spearman's correlation on the pairs whose words have vectors, and the share of those pairs; any case will do.

    Where that are fewer than two there is no correlation.
    """
    known = [(a, b, score) for one, other, score in test.pairs if (a := _row(vectors, one)) is not None
             and (b := _row(vectors, other)) is not None]  # fmt: skip
    found = {"questions": len(test.pairs), "coverage": len(known) / len(test.pairs)}
    if len(known) < 2:
        return found
    left, right, truth = (np.array(column) for column in zip(*known, strict=True))
    return {"spearman": spearman((vectors.unit[left] * vectors.unit[right]).sum(axis=1), truth), **found}


def spelling_scores(vectors: WordVectors, test: Similarities) -> dict[str, Any]:
    """What the same pairs score by how many pairs of letters their words share: no model at all."""
    pairs = [(one, other, score) for one, other, score in test.pairs
             if _row(vectors, one) is not None and _row(vectors, other) is not None]  # fmt: skip
    found = {"questions": len(test.pairs), "coverage": len(pairs) / len(test.pairs)}
    if len(pairs) < 2:
        return found
    alike = np.array([shared_letters(one.casefold(), other.casefold()) for one, other, _ in pairs])
    return {"spearman": spearman(alike, np.array([score for _, _, score in pairs])), **found}


def shared_letters(one: str, other: str) -> float:
    """The share of pairs of letters that two words have in common (Dice 1945).

    >>> shared_letters("night", "nacht"), shared_letters("a", "a")
    (0.25, 1.0)
    """
    if one == other:
        return 1.0
    a, b = ({word[at : at + 2] for at in range(len(word) - 1)} for word in (one, other))
    return 2 * len(a & b) / max(len(a) + len(b), 1)


def analogy_scores(vectors: WordVectors, test: Analogies, *, offset: bool = True) -> dict[str, Any]:
    """The share of the analogies whose fourth word is found by 3CosAdd, of those whose words all have vectors.

    Whatever their case: of several spellings the most frequent stands for all. Without the `offset` the answer is what
    is nearest to the third word alone: how far one gets without any relation (Linzen 2016).
    """
    rows = np.fromiter(vectors.folded.values(), np.int64)
    place = {word: at for at, word in enumerate(vectors.folded)}
    unit = vectors.unit[rows]
    sections: dict[str, dict[str, float]] = {}
    right = asked = 0
    for name, questions in test.sections.items():
        places = [[place.get(word.casefold(), -1) for word in question] for question in questions]
        known = np.array([four for four in places if min(four) >= 0], np.int64).reshape(-1, 4)
        hits = sum(
            int((_answers(unit, known[at : at + BLOCK], offset) == known[at : at + BLOCK, 3]).sum())
            for at in range(0, len(known), BLOCK)
        )
        if len(known):
            sections[name] = {"analogies": hits / len(known), "questions": len(known)}
        right, asked = right + hits, asked + len(known)
    total = sum(len(questions) for questions in test.sections.values())
    found = {"questions": total, "coverage": asked / total, "sections": sections}
    return {"analogies": right / asked, **found} if asked else found


def _answers(unit: Floats, known: NDArray[np.int64], offset: bool) -> NDArray[np.int64]:
    a, b, c = (unit[known[:, column]] for column in range(3))
    scores = (b - a + c if offset else c) @ unit.T  # B x N
    np.put_along_axis(scores, known[:, :3], -np.inf, axis=1)
    return np.asarray(scores.argmax(axis=1), np.int64)


def _row(vectors: WordVectors, word: str) -> int | None:
    row = vectors.index.get(word)
    return vectors.folded.get(word.casefold()) if row is None else row
