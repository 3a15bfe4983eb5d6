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

    >>> Scores(loss=math.log(4), tokens=10).to_dict(characters=True)["bits_per_character"]
    2.0
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

    def to_dict(self, characters: bool = False) -> dict[str, float]:
        """As a report shows them; `characters` says that a token is a character."""
        return {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "bits_per_character" if characters else "bits_per_token": self.bits_per_token,
            "tokens": self.tokens,
        }


def unigram_loss(train_counts: npt.NDArray[Any], eval_ids: npt.NDArray[Any]) -> float:
    """The mean loss in nats of guessing by frequency alone, with one added to every count.

    `train_counts` has one entry for each id of the vocabulary.

    >>> round(perplexity(unigram_loss(np.array([9, 0]), np.array([0, 0, 1]))), 3)
    2.37
    """
    if not len(eval_ids):
        raise UserError("there are no tokens to score: give a text with at least one token")
    if eval_ids.min() < 0 or eval_ids.max() >= len(train_counts):
        raise UserError(f"a token id is outside the vocabulary of {len(train_counts)}: encode with the model's own")
    smoothed = np.asarray(train_counts, np.float64) + 1
    return float(-np.log(smoothed / smoothed.sum())[eval_ids].mean())
