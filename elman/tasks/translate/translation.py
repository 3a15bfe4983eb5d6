"""What a translator answers: a text, its score, the other ones it thought of, and where it looked."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from elman.metrics.alignments import hard_alignment, to_pharaoh


@dataclass(frozen=True)
class Alternative:
    """One text that the search found.

    `log_prob` is of the whole text, in nats; `score` is what the search ranked it by. `finished` is False where the
    limit of length came before its end.
    """

    text: str
    score: float
    log_prob: float
    ids: list[int]
    finished: bool = True


@dataclass(frozen=True)
class Translation:
    """The best text for a source, all those that were asked for (`n_best`, the best first), and the alignment."""

    source: str
    n_best: list[Alternative]
    source_tokens: list[str] = field(default_factory=list)
    target_tokens: list[str] = field(default_factory=list)
    weights: NDArray[np.float32] | None = None
    """T x S: how much each target token looked at each source token; None where it was not asked for."""

    @property
    def text(self) -> str:
        """The best text."""
        return self.n_best[0].text

    @property
    def score(self) -> float:
        """The score of the best text."""
        return self.n_best[0].score

    @property
    def pharaoh(self) -> str:
        """The alignment as pairs `source-target` of token numbers from 0."""
        return "" if self.weights is None else to_pharaoh(hard_alignment(self.weights))
