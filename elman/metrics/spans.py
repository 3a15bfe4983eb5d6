"""Span precision, recall and F1, as the CoNLL shared tasks' script conlleval counts them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from elman.errors import UserError
from elman.metrics.classification import Score, macro_f1, pooled, score_table
from elman.text.spans import Scheme, read_spans


@dataclass(frozen=True)
class SpanScores:
    """Span precision, recall and F1 of every type that is there or predicted, sorted; make them with `span_scores`."""

    by_type: dict[str, Score]

    @property
    def overall(self) -> Score:
        """All types together: the score that conlleval names first."""
        return pooled(self.by_type.values())

    @property
    def macro_f1(self) -> float:
        """The mean F1 of the types."""
        return macro_f1(self.by_type.values())

    def text(self) -> str:
        """A table for the terminal."""
        return score_table(self.by_type)

    def to_dict(self) -> dict[str, object]:
        """As a report shows them."""
        by_type = {name: score.to_dict() for name, score in self.by_type.items()}
        return {**self.overall.to_dict(), "macro_f1": self.macro_f1, "by_type": by_type}


def span_scores(
    gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], strict: Scheme | None = None
) -> SpanScores:
    """Score predicted tags by the spans they hold: right are those with both ends and the type right.

    >>> scores = span_scores([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "I-PER", "O", "B-PER"]])
    >>> scores.overall.f1, scores.by_type["PER"].precision, scores.by_type["LOC"].recall
    (0.5, 0.5, 0.0)
    """
    if len(gold) != len(predicted):
        raise UserError(f"there are {len(gold)} tagged sentences and {len(predicted)} predictions: give one for each")
    correct, guessed, support = Counter[str](), Counter[str](), Counter[str]()
    for number, (right, guess) in enumerate(zip(gold, predicted, strict=True), start=1):
        if len(right) != len(guess):
            raise UserError(
                f"sentence {number} has {len(right)} tags and {len(guess)} predicted: give one for each token"
            )
        there, found = read_spans(right, strict), read_spans(guess, strict)
        correct.update(span.type for span in set(there) & set(found))
        guessed.update(span.type for span in found)
        support.update(span.type for span in there)
    types = sorted({*guessed, *support})
    return SpanScores({name: Score(correct[name], guessed[name], support[name]) for name in types})
