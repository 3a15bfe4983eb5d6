"""How good captions are, against several references each: BLEU-1 to 4, chrF, ROUGE-L and CIDEr-D.

All are counted over words between blanks; what a word is, is for those who call to say. The figures are those of the
evaluation of COCO captions (Chen et al. 2015), chrF that of sacrebleu.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np

from elman.metrics.bleu import bleu, corpus_scores, ngrams
from elman.metrics.edits import check_references

ORDER = 4  # words of the longest n-gram
BETA = 1.2  # of ROUGE-L: how much more recall counts than precision
SIGMA = 6.0  # of CIDEr-D: words that a caption may be longer or shorter by
Words = Sequence[str]


def caption_scores(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """All scores of captions by name, each from 0 to 100 (CIDEr-D may be above).

    >>> scores = caption_scores(["a dog runs in the snow", "a red bus"], [["a dog runs in snow"], ["a red bus"]])
    >>> {name: round(score, 1) for name, score in scores.items()}
    {'bleu_1': 88.9, 'bleu_2': 79.7, 'bleu_3': 72.5, 'bleu_4': 59.7, 'chrf': 79.6, 'rouge_l': 96.2, 'cider': 689.5}
    """
    said = [text.split() for text in hypotheses]
    right = [[text.split() for text in several] for several in references]
    found = {f"bleu_{order}": 100 * bleu(said, right, order).score for order in range(1, ORDER + 1)}
    return {
        **found,
        "chrf": corpus_scores(hypotheses, references, tokenize="none").chrf,
        "rouge_l": 100 * sum(map(rouge_l, said, right)) / len(said),
        "cider": 100 * float(np.mean(cider_d(said, right))),
    }


def rouge_l(hypothesis: Words, references: Sequence[Words]) -> float:
    """ROUGE-L of one caption, from 0 to 1 (Lin 2004): how much of it stands in the references in the same order.

        F = (1 + β²) P R / (R + β² P),   P = max_r LCS / |h|,   R = max_r LCS / |r|

    with LCS the length of the longest common subsequence of the caption h and a reference r, and β = 1.2.

    >>> round(rouge_l("a dog runs".split(), ["the dog runs away".split()]), 3)
    0.557
    """
    lengths = [longest_common(hypothesis, reference) for reference in references]
    precision = max((common / len(hypothesis) for common in lengths), default=0.0) if hypothesis else 0.0
    recall = max(common / max(len(words), 1) for common, words in zip(lengths, references, strict=True))
    if not precision or not recall:
        return 0.0
    return (1 + BETA**2) * precision * recall / (recall + BETA**2 * precision)


def longest_common(one: Words, other: Words) -> int:
    """The length of the longest common subsequence.

    >>> longest_common("a b c d".split(), "b x d".split())
    2
    """
    row = [0] * (len(other) + 1)
    for word in one:
        before = 0  # the entry above and to the left
        for place, match in enumerate(other, 1):
            above = row[place]
            row[place] = before + 1 if word == match else max(above, row[place - 1])
            before = above
    return row[-1]


def cider_d(hypotheses: Sequence[Words], references: Sequence[Sequence[Words]]) -> list[float]:
    """CIDEr-D of each caption, from 0 to 10 (Vedantam, Zitnick and Parikh 2015).

        CIDEr-D = 10/4 Σ_n mean_r [ exp(-(|h| - |r|)² / 2σ²) · min(g_n(h), g_n(r)) · g_n(r) / (‖g_n(h)‖ ‖g_n(r)‖) ]

    with g_n(x) the counts of the n-grams of x, each times log(I / d), of which d is the number of the I images whose
    references have it: what is said of every image is worth nothing. σ = 6.

    >>> captions = [["a", "dog"], ["two", "cats"]]
    >>> [round(score, 1) for score in cider_d(captions, [[caption] for caption in captions])]
    [5.0, 5.0]
    """
    check_references(hypotheses, references)
    counted = [[_counts(words) for words in several] for several in references]
    images: Counter[tuple[str, ...]] = Counter()
    for several in counted:
        images.update(set().union(*several))
    rarity = _Rarity(images, len(references))
    return [
        _cider(rarity.vector(_counts(words)), [rarity.vector(one) for one in several])
        for words, several in zip(hypotheses, counted, strict=True)
    ]


def _counts(words: Words) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for order in range(1, ORDER + 1):
        found.update(ngrams(words, order))
    return found


class _Vector:
    """The n-grams of a caption, weighted by how rare they are: for each order, and its length."""

    def __init__(self, weights: list[dict[tuple[str, ...], float]], length: int) -> None:
        self.weights, self.length = weights, length
        self.norms = [math.sqrt(sum(value**2 for value in one.values())) for one in weights]


class _Rarity:
    """In how many images' references each n-gram is."""

    def __init__(self, images: Counter[tuple[str, ...]], count: int) -> None:
        self.images, self.all = images, math.log(float(count))

    def vector(self, counts: Counter[tuple[str, ...]]) -> _Vector:
        weights: list[dict[tuple[str, ...], float]] = [{} for _ in range(ORDER)]
        for ngram, count in counts.items():
            weights[len(ngram) - 1][ngram] = count * (self.all - math.log(max(1.0, self.images[ngram])))
        pairs = sum(count for ngram, count in counts.items() if len(ngram) == 2)  # as the published code has a length
        return _Vector(weights, pairs)


def _cider(hypothesis: _Vector, references: Sequence[_Vector]) -> float:
    total = 0.0
    for reference in references:
        closeness = math.exp(-((hypothesis.length - reference.length) ** 2) / (2 * SIGMA**2))
        for order in range(ORDER):
            own, right = hypothesis.weights[order], reference.weights[order]
            norm = hypothesis.norms[order] * reference.norms[order]
            common = sum(min(value, right.get(ngram, 0.0)) * right.get(ngram, 0.0) for ngram, value in own.items())
            total += closeness * (common / norm if norm else common)
    return 10 * total / ORDER / len(references)
