"""How far hypotheses are from what is right: edit distance, error rates, exact matches, accuracy of tokens.

Each hypothesis has one or several references, and is compared with the one that it is nearest to.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from elman.errors import UserError

Tokens = Sequence[Hashable]


@dataclass(frozen=True)
class EditScores:
    """The sums over a set of lines; make them with `edit_scores`.

    `tokens` are those of the nearest references, `places` those of the longer of hypothesis and reference.
    """

    lines: int
    exact: int
    edits: int
    tokens: int
    agreeing: int
    places: int

    @property
    def exact_match(self) -> float:
        """The share of hypotheses that equal one of their references."""
        return self.exact / self.lines

    @property
    def word_error_rate(self) -> float:
        """The share of hypotheses that equal none, as pronunciations are scored: a line is a word there."""
        return 1 - self.exact_match

    @property
    def error_rate(self) -> float:
        """Edits for each token of the references: the phoneme error rate where tokens are sounds."""
        return self.edits / self.tokens if self.tokens else 0.0

    @property
    def token_accuracy(self) -> float:
        """The share of places at which hypothesis and reference have the same token; a missing one is wrong."""
        return self.agreeing / self.places if self.places else 1.0

    def to_dict(self) -> dict[str, float]:
        """As a report shows them."""
        return {
            "exact_match": self.exact_match,
            "word_error_rate": self.word_error_rate,
            "error_rate": self.error_rate,
            "token_accuracy": self.token_accuracy,
            "lines": self.lines,
        }


def edit_scores(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> EditScores:
    """Score lines of tokens (or strings, whose tokens are characters), each against the nearest of its references.

    >>> tomato = ["T AH M EY T OW".split(), "T AH M AA T OW".split()]
    >>> scores = edit_scores(["T AH M AA T OW".split(), "G OW".split()], [tomato, ["G AO".split()]])
    >>> scores.word_error_rate, scores.error_rate, scores.token_accuracy
    (0.5, 0.125, 0.875)
    """
    check_references(hypotheses, references)
    exact = edits = tokens = agreeing = places = 0
    for hypothesis, several in zip(hypotheses, references, strict=True):
        distance, reference = _nearest(hypothesis, several)
        exact += distance == 0
        edits += distance
        tokens += len(reference)
        agreeing += sum(one == other for one, other in zip(hypothesis, reference, strict=False))
        places += max(len(hypothesis), len(reference))
    return EditScores(len(hypotheses), exact, edits, tokens, agreeing, places)


def edit_distance(one: Tokens, other: Tokens) -> int:
    """The fewest insertions, deletions and replacements of one token that make `other` of `one` (Levenshtein 1966).

    d[i][j] is the distance of the first i tokens to the first j; only the row before is kept.

    >>> edit_distance("kitten", "sitting"), edit_distance("AH0 B AW1 T".split(), "B AW1 T".split())
    (3, 1)
    """
    first, last_one, last_other = 0, len(one), len(other)
    while first < min(last_one, last_other) and one[first] == other[first]:
        first += 1  # what both begin or end with costs nothing
    while first < min(last_one, last_other) and one[last_one - 1] == other[last_other - 1]:
        last_one, last_other = last_one - 1, last_other - 1
    one, other = one[first:last_one], other[first:last_other]
    above = list(range(len(other) + 1))
    for i, token in enumerate(one, 1):
        row = [i]
        for j, against in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (token != against)))
        above = row
    return above[-1]


def _nearest(hypothesis: Tokens, several: Sequence[Tokens]) -> tuple[int, Tokens]:
    """The smallest distance, and the first reference that has it."""
    distances = [edit_distance(hypothesis, reference) for reference in several]
    smallest = min(distances)
    return smallest, several[distances.index(smallest)]


def check_references(hypotheses: Sequence[object], references: Sequence[Sequence[object]]) -> None:
    """Refuse hypotheses that have not each a list of references.

    >>> check_references(["a"], [[]])
    Traceback (most recent call last):
    elman.errors.UserError: hypothesis 1 has no reference: give at least one
    """
    if len(hypotheses) != len(references):
        raise UserError(
            f"there are {len(hypotheses)} hypotheses and {len(references)} lists of references: give one for each"
        )
    if not len(hypotheses):
        raise UserError("there are no hypotheses to score: give at least one")
    for number, several in enumerate(references, 1):
        if not len(several):
            raise UserError(f"hypothesis {number} has no reference: give at least one")
