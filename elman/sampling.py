"""How the next id is chosen from a distribution; `docs/sampling.md` is the specification."""

import math
import secrets
from dataclasses import dataclass
from numbers import Integral, Real

from elman.errors import UserError


@dataclass(frozen=True)
class Sampling:
    """How the next id is chosen.

    `temperature` 0 takes the likeliest id; above 0 the logits are divided by it. `top_k` keeps the k
    likeliest ids (0: all). `top_p` keeps the fewest likeliest ids that hold that much probability (1: all).
    `repetition_penalty` (Keskar et al. 2019) makes ids that the text already has less likely (1: off).
    `seed` None takes another one each time.

    >>> Sampling(temperature=0.8, top_p=0.95)
    Sampling(temperature=0.8, top_k=0, top_p=0.95, repetition_penalty=1.0, seed=0)
    >>> Sampling(top_p=1.5)
    Traceback (most recent call last):
    elman.errors.UserError: top_p must be above 0 and at most 1, not 1.5
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0
    seed: int | None = 0

    def __post_init__(self) -> None:
        for name in ("temperature", "top_p", "repetition_penalty"):
            if not isinstance(value := getattr(self, name), Real):
                raise UserError(f"{name} must be a number, not {value!r}")
        for name in ("top_k", "seed"):
            if not isinstance(value := getattr(self, name), Integral) and not (name == "seed" and value is None):
                raise UserError(f"{name} must be an integer, not {value!r}")
        if not 0 <= self.temperature < math.inf:
            raise UserError(f"temperature must be 0 (the likeliest) or a number above it, not {self.temperature}")
        if self.top_k < 0:
            raise UserError(f"top_k must be 0 (keep every id) or the number of ids to keep, not {self.top_k}")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p must be above 0 and at most 1, not {self.top_p}")
        if not 0 < self.repetition_penalty < math.inf:
            raise UserError(
                f"repetition_penalty must be a number above 0 (1 turns it off), not {self.repetition_penalty}"
            )
        if self.seed is not None and not 0 <= self.seed < 2**64:
            raise UserError(f"seed must be an integer from 0 to 2**64 - 1, not {self.seed}")

    @property
    def greedy(self) -> bool:
        """Whether the likeliest id is taken and nothing is sampled."""
        return self.temperature == 0


def fresh_seed() -> int:
    """A seed from the operating system, short enough to be copied from a screen and used again."""
    return secrets.randbits(32)
