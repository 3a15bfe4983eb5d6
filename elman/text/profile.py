"""What the sources of a translator look like, so that a text in another language is noticed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elman.ragged import Ints
from elman.text.sides import Sides

STRANGE = 1.6  # times as many tokens as usual
UNKNOWN = 0.4  # share of unknown tokens
FOREIGN = 0.25  # share of tokens that are the target language's
OFTENER, KEPT = 10, 300  # how much oftener such a token stands in targets than in sources; how many are remembered


@dataclass(frozen=True)
class SourceProfile:
    """How many tokens a character of the sources makes; where both sides share a vocabulary, what marks the target's.

    >>> pairs = [(np.array([2, 3, 3]), np.array([4, 3]))] * 20
    >>> SourceProfile.of(pairs, characters=120, size=5, joint=True)
    SourceProfile(tokens_per_character=0.5, foreign=(4,))
    """

    tokens_per_character: float = 0.0
    foreign: tuple[int, ...] = ()
    """Ids of the target language."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[Ints, Ints]], *, characters: int, size: int, joint: bool) -> "SourceProfile":
        """What is usual in training pairs, whose sources have so many characters, with a vocabulary of `size`."""
        counts = [np.bincount(np.concatenate(side), minlength=size) for side in zip(*pairs, strict=True)]
        rate = float(counts[0].sum() / characters)
        if not joint:
            return cls(rate)
        ids = np.flatnonzero(counts[1] > OFTENER * (counts[0] + 1))
        return cls(rate, tuple(sorted(ids[np.argsort(-counts[1][ids], kind="stable")][:KEPT].tolist())))

    def doubt(self, ids: Ints, characters: int, sides: Sides) -> str | None:
        """Why a text of so many characters is hardly a source, in a few words; None if it may well be one."""
        tokens = max(len(ids), 1)
        unknown, foreign = float((ids == sides.source.unk_id).mean()), float(np.isin(ids, self.foreign).mean())
        more = tokens / (self.tokens_per_character * characters) if self.tokens_per_character else 1.0
        if unknown > UNKNOWN:
            return f"{unknown:.0%} of its tokens are unknown"
        if foreign > FOREIGN:
            return f"{foreign:.0%} of its tokens are the target's"
        return f"it takes {more:.1f} times the tokens" if more > STRANGE else None
