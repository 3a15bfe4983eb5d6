"""What a translator answers: a text, its score, the other ones it thought of, and where it looked."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

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
    parts: int = 1
    """In how many parts the source was translated; more than one where it is longer than the model knows."""

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


def joined(text: str, parts: Sequence[Translation]) -> Translation:
    """The translations of the parts of a text as one; their n-best lists go together rank by rank.

    >>> parts = [Translation(one, [Alternative(one.upper(), -1.0, -2.0, [7])]) for one in ("a b.", "c.")]
    >>> whole = joined("a b. c.", parts)
    >>> whole.text, whole.score, whole.n_best[0].log_prob, whole.parts
    ('A B. C.', -1.0, -4.0, 2)
    """
    if len(parts) == 1:
        return replace(parts[0], source=text)
    n_best = [_in_a_row(several) for several in zip(*(part.n_best for part in parts), strict=False)]
    tables = [part.weights for part in parts if part.weights is not None]
    return Translation(
        text,
        n_best,
        [token for part in parts for token in part.source_tokens],
        [token for part in parts for token in part.target_tokens],
        _diagonal(tables) if tables else None,
        len(parts),
    )


def _in_a_row(several: Sequence[Alternative]) -> Alternative:
    return Alternative(
        " ".join(one.text for one in several),
        sum(one.score for one in several) / len(several),
        sum(one.log_prob for one in several),
        [id for one in several for id in one.ids],
        all(one.finished for one in several),
    )


def _diagonal(tables: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """The tables of the parts along the diagonal of one: no part looks at another."""
    whole = np.zeros((sum(len(table) for table in tables), sum(table.shape[1] for table in tables)), np.float32)
    row = column = 0
    for table in tables:
        whole[row : row + len(table), column : column + table.shape[1]] = table
        row, column = row + len(table), column + table.shape[1]
    return whole
