"""How well tokens were tagged: accuracy, also on the words that training never saw, and spans where there are any."""

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from elman.errors import UserError
from elman.metrics.classification import Confusion
from elman.metrics.spans import SpanScores, span_scores
from elman.text.spans import Scheme, detect_scheme


@dataclass(frozen=True, eq=False)
class TagScores:
    """The scores of a tagger; `spans` is None where the tags mark none. Make them with `tag_scores`."""

    confusion: Confusion
    unseen_tokens: int
    unseen_correct: int
    spans: SpanScores | None

    @property
    def accuracy(self) -> float:
        """The share of tokens whose tag is right."""
        return self.confusion.accuracy

    @property
    def unseen_accuracy(self) -> float | None:
        """The share of words that training never saw whose tag is right; None where every word is known."""
        return self.unseen_correct / self.unseen_tokens if self.unseen_tokens else None

    def to_dict(self) -> dict[str, Any]:
        """As a report shows them, with what was taken for what: (right, predicted, how often)."""
        tokens = self.confusion.to_dict()
        tokens["by_tag"] = tokens.pop("by_class")
        tokens["tokens"] = tokens.pop("examples")
        report = {**tokens, "unseen_tokens": self.unseen_tokens, "unseen_accuracy": self.unseen_accuracy}
        report |= {} if self.spans is None else {"spans": self.spans.to_dict()}
        return report | {"confused": self.confusion.most_confused(len(self.confusion.labels) ** 2)}


def tag_scores(
    words: Sequence[Sequence[str]],
    gold: Sequence[Sequence[str]],
    predicted: Sequence[Sequence[str]],
    seen: Container[str],
    strict: Scheme | None = None,
) -> TagScores:
    """Score tagged sentences; `seen` are the words of the training set, `strict` is that of `span_scores`.

    >>> scores = tag_scores([["the", "cat"]], [["DET", "NOUN"]], [["DET", "VERB"]], seen={"the"})
    >>> scores.accuracy, scores.unseen_accuracy, scores.spans
    (0.5, 0.0, None)
    """
    if not len(words) == len(gold) == len(predicted):
        raise UserError(
            f"there are {len(words)} sentences, {len(gold)} tagged and {len(predicted)} predicted: give one for each"
        )
    for number, row in enumerate(zip(words, gold, predicted, strict=True), start=1):
        if len({len(part) for part in row}) > 1:
            raise UserError(f"sentence {number} has tokens and tags of different number: give one tag for each token")
    tokens = [word for sentence in words for word in sentence]
    right = [tag for sentence in gold for tag in sentence]
    guess = [tag for sentence in predicted for tag in sentence]
    unseen = [place for place, word in enumerate(tokens) if word not in seen]
    has_spans = detect_scheme([*gold, *predicted]) is not None
    return TagScores(
        Confusion.of(right, guess),
        len(unseen),
        sum(right[place] == guess[place] for place in unseen),
        span_scores(gold, predicted, strict) if has_spans else None,
    )
