"""What a translator answers: a text, its score, the other ones it thought of, and where it looked."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.errors import UserError
from elman.metrics.alignments import (
    THRESHOLD,
    Group,
    Links,
    alignment_groups,
    hard_alignment,
    soft_alignment,
    to_pharaoh,
)
from elman.tasks.writer import Alternative, Written
from elman.text.settings import UNK
from elman.text.sides import Sides


@dataclass(frozen=True)
class Translation(Written):
    """The best text for a source, all those that were asked for (`n_best`, the best first), and the alignment."""

    what = "translation"
    source: str
    n_best: list[Alternative]
    source_tokens: list[str] = field(default_factory=list)
    target_tokens: list[str] = field(default_factory=list)
    weights: NDArray[np.float32] | None = None
    """T x S: how much each target token looked at each source token; None where it was not asked for."""
    parts: int = 1
    """In how many parts the source was translated; more than one where it is longer than the model knows."""

    def to_dict(self) -> dict[str, Any]:
        """As one line of JSON has it."""
        value = self.best_to_dict()
        if self.parts > 1:
            value["parts"] = self.parts
        value |= self.others_to_dict()
        if self.weights is not None:
            value |= {"source_tokens": self.source_tokens, "target_tokens": self.target_tokens}
            value["alignment"] = self.pharaoh
        return value

    @property
    def pharaoh(self) -> str:
        """The alignment as pairs `source-target` of token numbers from 0."""
        return "" if self.weights is None else to_pharaoh(hard_alignment(self.weights))

    def links(self, threshold: float = THRESHOLD) -> Links:
        """The pairs (source, target) of token numbers from 0 that have an attention weight of `threshold` or more."""
        if self.weights is None:
            raise UserError("the attention was not asked for: predict with alignments=True")
        return soft_alignment(self.weights, threshold)

    def groups(self, threshold: float = THRESHOLD) -> list[Group]:
        """The tokens that `links` align with one another: one-to-one, many-to-one, one-to-many or many-to-many.

        Targets without a source are spurious, sources without a target unaligned; each is a group of its own.
        """
        return alignment_groups(self.links(threshold), len(self.source_tokens), len(self.target_tokens))


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


def replace_unknown(found: Translation, sides: Sides) -> Translation:
    """The translation with every `<unk>` of its best text replaced; for vocabularies of words on both sides.

    >>> from elman.text import TokenizerSettings
    >>> words = TokenizerSettings(kind="words")
    >>> sides = Sides.fit([("der Hund", "the dog")], words, words)
    >>> found = Translation("der Waschbär", [Alternative("the <unk>", -1, -1, sides.say("the raccoon").tolist())])
    >>> replace_unknown(replace(found, weights=np.eye(2)), sides).text
    'the Waschbär'
    """
    if found.weights is None or not sides.source.settings.kind == sides.target.settings.kind == "words":
        raise UserError("unknown words are replaced where both sides are words, and here they are not: leave that out")
    best, words = found.n_best[0], found.source.split()
    if len(words) != len(found.source_tokens or words):  # normalised, it has other blanks
        words = found.source_tokens
    pieces = [
        words[int(found.weights[place].argmax())] if id == sides.target.unk_id else sides.target.tokens[id]
        for place, id in enumerate(best.ids)
    ]
    names = [piece if name == UNK else name for piece, name in zip(pieces, found.target_tokens, strict=False)]
    fixed: Alternative = replace(best, text=" ".join(pieces))
    return replace(found, n_best=[fixed, *found.n_best[1:]], target_tokens=names or found.target_tokens)
