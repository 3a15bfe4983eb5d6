"""What a language model's loss means: perplexity and bits, beside the unigram baseline."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.errors import UserError


def perplexity(nats: float) -> float:
    """Of a mean loss in nats: among how many equally likely tokens the model is left to guess.

    >>> round(perplexity(math.log(50)), 6)
    50.0
    >>> perplexity(1e6)
    inf
    """
    try:
        return math.exp(nats)
    except OverflowError:
        return math.inf


def bits(nats: float) -> float:
    """Nats as bits.

    >>> bits(math.log(8))
    3.0
    """
    return nats / math.log(2)


@dataclass(frozen=True)
class Scores:
    """A language model's scores on a text: the mean loss in nats, over how many tokens.

    >>> Scores(loss=math.log(4), tokens=10).to_dict(characters=40)["bits_per_character"]
    0.5
    """

    loss: float
    tokens: int

    @classmethod
    def from_total(cls, nats: float, tokens: int) -> "Scores":
        """The scores where `nats` is the sum over all tokens.

        >>> Scores.from_total(30.0, tokens=10)
        Scores(loss=3.0, tokens=10)
        """
        if tokens < 1:
            raise UserError("there are no tokens to score: give a text with at least one token")
        return cls(float(nats) / tokens, int(tokens))

    @property
    def perplexity(self) -> float:
        """The perplexity; infinite where the loss is too large for a number."""
        return perplexity(self.loss)

    @property
    def bits_per_token(self) -> float:
        """The mean loss in bits."""
        return bits(self.loss)

    def to_dict(self, characters: int | None = None) -> dict[str, float]:
        """As a report shows them; with the number of characters that the tokens stand for, bits for each of those."""
        report = {"loss": self.loss, "perplexity": self.perplexity, "bits_per_token": self.bits_per_token}
        if characters:
            report["bits_per_character"] = self.bits_per_token * self.tokens / characters
        return report | {"tokens": self.tokens}


def unigram_loss(train_counts: npt.NDArray[Any], eval_counts: npt.NDArray[Any]) -> float:
    """The mean loss in nats of guessing by frequency alone, with one added to every count.

    Both have one entry for each id of the vocabulary: how often it stood in the text.

    >>> round(perplexity(unigram_loss(np.array([9, 0]), np.array([2, 1]))), 3)
    2.37
    """
    if not eval_counts.sum():
        raise UserError("there are no tokens to score: give a text with at least one token")
    if len(eval_counts) != len(train_counts):
        raise UserError(f"a token id is outside the vocabulary of {len(train_counts)}: encode with the model's own")
    smoothed = np.asarray(train_counts, np.float64) + 1
    return float(-np.log(smoothed / smoothed.sum()) @ eval_counts / eval_counts.sum())
