"""BLEU: as one readable function over tokens, and as sacrebleu computes it, with chrF beside it, for reports.

Reports show sacrebleu's figures with their signatures, so that they compare with published ones. `bleu` is the
equation to read, and equal to them on the same tokens.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from elman.metrics.edits import check_references

Smoothing = Literal["none", "exp"]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Bleu:
    """The score from 0 to 1 and what it is made of; `lengths` are tokens of the hypotheses and of the references."""

    score: float
    precisions: tuple[float, ...]
    brevity_penalty: float
    lengths: tuple[int, int]


@dataclass(frozen=True)
class CorpusScores:
    """sacrebleu's BLEU and chrF, from 0 to 100, and the signatures that say how they were computed."""

    bleu: float
    chrf: float
    bleu_signature: str
    chrf_signature: str

    def to_dict(self) -> dict[str, float | str]:
        """As a report shows them."""
        return asdict(self)


def bleu(
    hypotheses: Sequence[Sequence[str]],
    references: Sequence[Sequence[Sequence[str]]],
    order: int = 4,
    smoothing: Smoothing = "none",
    clip: bool = True,
) -> Bleu:
    """BLEU of a whole corpus of tokens, each hypothesis with one or several references (Papineni et al. 2002).

        BLEU = BP · exp(Σ w_n log p_n),  w_n = 1 / N,  BP = 1 if c > r else exp(1 - r / c)

    p_n is the share of the hypotheses' n-grams that a reference has too, each counted no more often than in the one
    reference that has it most often; c is the length of all hypotheses, r that of the nearest references (of two
    equally near, the shorter). Smoothing "exp" halves an invented match for each order that has none (Chen and Cherry
    2014, method 3); without, one such order makes the score 0. Without `clip` every n-gram counts that a reference
    has at all, so that saying "the" three times is as good as saying the right thing.

    >>> mat = ["the cat is on the mat".split(), "there is a cat on the mat".split()]
    >>> bleu(["the cat the cat on the mat".split()], [mat], order=2).precisions == (5 / 7, 4 / 6)
    True
    >>> bleu(["the cat the cat on the mat".split()], [mat], order=2, clip=False).precisions == (7 / 7, 5 / 6)
    True
    """
    check_references(hypotheses, references)
    counts = sum(
        (_counts(hypothesis, several, order, clip) for hypothesis, several in zip(hypotheses, references, strict=True)),
        start=np.zeros(2 + 2 * order, np.int64),
    )
    return _from_counts(counts, smoothing)


def _counts(hypothesis: Sequence[str], several: Sequence[Sequence[str]], order: int, clip: bool) -> Ints:
    """Of one sentence: its length, that of the nearest reference, the matches of each order, the n-grams of each."""
    length = min((abs(len(reference) - len(hypothesis)), len(reference)) for reference in several)[1]
    matches, totals = [], []
    for n in range(1, order + 1):
        counts = ngrams(hypothesis, n)
        most: Counter[tuple[str, ...]] = Counter()
        for reference in several:
            most |= ngrams(reference, n)  # the larger of the two counts
        clipped = counts & most  # the smaller of the two
        matches.append(clipped.total() if clip else sum(counts[ngram] for ngram in clipped))
        totals.append(counts.total())
    return np.array([len(hypothesis), length, *matches, *totals], np.int64)


def _from_counts(counts: Ints, smoothing: Smoothing) -> Bleu:
    """The score of the summed counts of all sentences."""
    c, r, *rest = counts.tolist()
    order = len(rest) // 2
    brevity_penalty = 1.0 if c > r else math.exp(1 - r / c) if c else 0.0
    precisions = _precisions(rest[:order], rest[order:], smoothing)
    if not any(rest[:order]) or not all(precisions):
        return Bleu(0.0, precisions, brevity_penalty, (c, r))
    score = brevity_penalty * math.exp(sum(math.log(p) for p in precisions) / order)
    return Bleu(score, precisions, brevity_penalty, (c, r))


class BleuCounts:
    """The n-grams of every hypothesis that may be chosen, counted once: BLEU of thousands of choices is then quick.

    Lines are cut as sacrebleu does it (see `corpus_scores`), and the score from 0 to 100 is the same.

    >>> counts = BleuCounts([["a cat sat down here", "the cat sat down"]], [["the cat sat down here"]])
    >>> round(counts.bleu([0]), 1), round(counts.bleu([1]), 1)
    (66.9, 77.9)
    """

    def __init__(
        self,
        hypotheses: Sequence[Sequence[str]],
        references: Sequence[Sequence[str]],
        *,
        lowercase: bool = False,
        tokenize: str | None = None,
    ) -> None:
        from sacrebleu import BLEU  # slow to import, and only needed here

        check_references(hypotheses, references)
        tokenizer = BLEU(tokenize=tokenize).tokenizer

        def cut(line: str) -> list[str]:
            return str(tokenizer((line.lower() if lowercase else line).rstrip())).split()

        self.tables = []  # of each sentence H x (2 + 2 * 4)
        for several, right in zip(hypotheses, references, strict=True):
            wanted = [cut(line) for line in right]
            self.tables.append(np.stack([_counts(cut(line), wanted, 4, clip=True) for line in several]))

    def bleu(self, chosen: Sequence[int]) -> float:
        """BLEU of the corpus that has the chosen hypothesis of each sentence."""
        picked = [table[place] for table, place in zip(self.tables, chosen, strict=True)]
        return 100 * _from_counts(np.sum(picked, axis=0), "exp").score


def ngrams(tokens: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """How often each run of n tokens occurs.

    >>> ngrams("a b a b".split(), 2)
    Counter({('a', 'b'): 2, ('b', 'a'): 1})
    """
    return Counter(tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1))


def corpus_scores(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    lowercase: bool = False,
    tokenize: str | None = None,
) -> CorpusScores:
    """BLEU and chrF of detokenised lines, each with one or several references, as sacrebleu computes them.

    `tokenize` is sacrebleu's name of how lines are cut for BLEU ("13a" where it is not given; "zh", "ja-mecab",
    "char", "none").

    >>> scores = corpus_scores(["The cat sat on the mat."], [["The cat sat on a mat.", "A cat sits here."]])
    >>> round(scores.bleu, 1), scores.bleu_signature.split("|")[0]
    (48.9, 'nrefs:2')
    """
    from sacrebleu import BLEU, CHRF  # slow to import, and only needed here

    check_references(hypotheses, references)
    streams = [list(stream) for stream in zip_longest(*references)]  # None where a line has fewer references
    by_words, by_characters = BLEU(lowercase=lowercase, tokenize=tokenize), CHRF(lowercase=lowercase)
    return CorpusScores(
        by_words.corpus_score(hypotheses, streams).score,
        by_characters.corpus_score(hypotheses, streams).score,
        str(by_words.get_signature()),
        str(by_characters.get_signature()),
    )


def _precisions(matches: list[int], totals: list[int], smoothing: Smoothing) -> tuple[float, ...]:
    found, invented = [], 1.0
    for match, total in zip(matches, totals, strict=True):
        if not match and total and smoothing == "exp":
            invented /= 2
            found.append(invented / total)
        else:
            found.append(match / total if total else 0.0)
    return tuple(found)
