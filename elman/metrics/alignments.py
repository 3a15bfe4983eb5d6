"""Which source token each target token looks at, and the Pharaoh format for it: `0-0 1-2` is source-target."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from elman.errors import UserError

Links = list[tuple[int, int]]


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
