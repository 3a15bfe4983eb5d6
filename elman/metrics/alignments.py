"""Which source token each target token looks at, and the Pharaoh format for it: `0-0 1-2` is source-target."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from elman.errors import UserError

Links = list[tuple[int, int]]

THRESHOLD = 0.3
"""The attention weight from which on a source token and a target token are aligned, unless another is said."""
KINDS = ("one-to-one", "many-to-one", "one-to-many", "many-to-many", "spurious", "unaligned")
"""What groups of aligned tokens there are: sources to targets; targets without a source, sources without a target."""


def hard_alignment(weights: ArrayLike) -> Links:
    """For each target token the source token with the largest attention weight, as (source, target) from 0.

    >>> hard_alignment([[0.9, 0.1, 0.0], [0.2, 0.1, 0.7]])
    [(0, 0), (2, 1)]
    """
    table = np.asarray(weights)  # T x S
    if table.ndim != 2:
        raise ValueError(f"attention weights are targets x sources, not of shape {table.shape}")
    if not table.size:
        return []
    return [(int(source), target) for target, source in enumerate(table.argmax(axis=1))]


def soft_alignment(weights: ArrayLike, threshold: float = THRESHOLD) -> Links:
    """All pairs (source, target) of tokens, from 0, with an attention weight of `threshold` or more between them.

    A target may have several sources, or none, and a source several targets, or none.

    >>> soft_alignment([[0.5, 0.4, 0.1], [0.2, 0.1, 0.7], [0.1, 0.0, 0.9], [0.4, 0.3, 0.3]], threshold=0.41)
    [(0, 0), (2, 1), (2, 2)]
    """
    if not 0 < threshold <= 1:
        raise UserError(f"threshold must be an attention weight above 0, up to 1, not {threshold}")
    table = np.asarray(weights)  # T x S
    if table.ndim != 2:
        raise ValueError(f"attention weights are targets x sources, not of shape {table.shape}")
    return [(int(source), int(target)) for target, source in zip(*np.nonzero(table >= threshold), strict=True)]


@dataclass(frozen=True)
class Group:
    """Source and target tokens, by number from 0, that are aligned with one another and with no others."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]

    @property
    def kind(self) -> str:
        """One of KINDS: how many sources to how many targets.

        >>> Group((0,), (0, 1)).kind, Group((), (2,)).kind
        ('one-to-many', 'spurious')
        """
        if not self.sources or not self.targets:
            return "unaligned" if self.sources else "spurious"
        return f"{'one' if len(self.sources) == 1 else 'many'}-to-{'one' if len(self.targets) == 1 else 'many'}"


def alignment_groups(links: Iterable[tuple[int, int]], sources: int, targets: int) -> list[Group]:
    """What links (source, target) make of so many tokens of either side: every token is in one group.

    Groups come in the order of their first target, those of sources without a target last.

    >>> [(group.kind, group.sources, group.targets) for group in alignment_groups([(0, 0), (1, 0), (2, 2)], 4, 3)]
    [('many-to-one', (0, 1), (0,)), ('spurious', (), (1,)), ('one-to-one', (2,), (2,)), ('unaligned', (3,), ())]
    """
    of_target: list[set[int]] = [set() for _ in range(targets)]
    of_source: list[set[int]] = [set() for _ in range(sources)]
    for source, target in links:
        of_target[target].add(source)
        of_source[source].add(target)
    groups, seen = [], set[int]()
    for first in range(targets):
        if first in seen:
            continue
        found, heads, waiting = set[int](), set[int](), [first]
        while waiting:
            target = waiting.pop()
            if target not in found:
                found.add(target)
                heads |= of_target[target]
                waiting += [other for source in of_target[target] for other in of_source[source]]
        seen |= found
        groups.append(Group(tuple(sorted(heads)), tuple(sorted(found))))
    return groups + [Group((source,), ()) for source in range(sources) if not of_source[source]]


def count_kinds(groups: Iterable[Group]) -> dict[str, int]:
    """How many groups there are of each of KINDS.

    >>> count_kinds([Group((0,), (0,)), Group((1,), (1,)), Group((), (2,))])["one-to-one"]
    2
    """
    kinds = [group.kind for group in groups]
    return {kind: kinds.count(kind) for kind in KINDS}


def fertile_sources(links: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    """Source tokens with several targets, and these.

    >>> fertile_sources([(0, 0), (0, 1), (1, 2)])
    {0: [0, 1]}
    """
    found: dict[int, list[int]] = {}
    for source, target in sorted(links):
        found.setdefault(source, []).append(target)
    return {source: several for source, several in found.items() if len(several) > 1}


def to_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Links as a line of text, sorted.

    >>> to_pharaoh([(2, 1), (0, 0)])
    '0-0 2-1'
    """
    return " ".join(f"{source}-{target}" for source, target in sorted(links))


def from_pharaoh(line: str, where: str = "the alignment") -> Links:
    """The links that a line of text holds; `where` it stands is for messages.

    >>> from_pharaoh("0-0 2-1")
    [(0, 0), (2, 1)]
    >>> from_pharaoh("0-0 2:1", "test.align:3")
    Traceback (most recent call last):
    elman.errors.UserError: test.align:3 has '2:1' where a link is two numbers, source-target from 0: write such as 0-0
    """
    links = []
    for piece in line.split():
        source, _, target = piece.partition("-")
        if not (source.isdecimal() and target.isdecimal()):
            raise UserError(
                f"{where} has {piece!r} where a link is two numbers, source-target from 0: write such as 0-0"
            )
        links.append((int(source), int(target)))
    return links
