"""Counting the n-grams of a token stream, all positions at once.

An n-gram is known by its rank among the distinct n-grams of its order, and found by its key: the rank of its
first n-1 tokens, times the base, plus its last token. The base is one above the vocabulary, so that a start
mark outside the vocabulary fits as well. A unigram's rank is its token.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from elman.errors import UserError

Ints = npt.NDArray[np.int64]
AnyInts = npt.NDArray[Any]

UNSEEN = -1


@dataclass(frozen=True)
class MarkedTokens:
    """Tokens with one start mark before each document, and how far each stands from its mark.

    ids     7 8 9 | 5 6
    tokens  ^ 7 8 9 ^ 5 6
    depth   0 1 2 3 0 1 2
    """

    tokens: Ints
    depth: Ints

    def part(self, begin: int, end: int) -> "MarkedTokens":
        """The tokens from `begin` up to `end`, still knowing their documents."""
        return MarkedTokens(self.tokens[begin:end], self.depth[begin:end])


@dataclass(frozen=True)
class NgramTable:
    """The distinct n-grams of one order: sorted keys, and how often each counts."""

    keys: Ints
    counts: Ints


def lay_out(ids: AnyInts, documents: AnyInts | None, start: int) -> MarkedTokens:
    """Put the mark `start` before every document; `documents` are start offsets, None is one document.

    >>> lay_out(np.array([7, 8, 9, 5, 6]), np.array([0, 3]), start=1).tokens.tolist()
    [1, 7, 8, 9, 1, 5, 6]
    """
    given = np.zeros(0, np.int64) if documents is None else np.asarray(documents)
    if given.size and (given.min() < 0 or given.max() > len(ids)):
        raise UserError(f"a document starts outside the stream of {len(ids)} tokens: give offsets from 0 to {len(ids)}")
    starts = np.unique(np.append(given.astype(np.int64), 0))
    starts = starts[starts < len(ids)]  # an empty document at the end has nothing to count
    marks = starts + np.arange(len(starts))
    tokens = np.full(len(ids) + len(starts), start, np.int64)
    is_token = np.ones(len(tokens), bool)
    is_token[marks] = False
    tokens[is_token] = ids
    lengths = np.diff(np.append(marks, len(tokens)))
    depth = np.arange(len(tokens)) - np.repeat(marks, lengths)
    return MarkedTokens(tokens, depth)


def count_ngrams(stream: MarkedTokens, base: int, order: int) -> list[NgramTable]:
    """The tables of orders 1 to `order`, with Kneser-Ney's counts.

    The highest order has plain counts. An n-gram of a lower order counts once for each different token seen
    before it; where it begins with a document's start mark nothing stands before it, and it counts each time.

    >>> stream = lay_out(np.array([0, 1, 0, 1, 1]), None, start=2)
    >>> [table.counts.tolist() for table in count_ngrams(stream, base=3, order=2)]
    [[2, 2, 0], [2, 1, 1, 1]]
    """
    tokens, depth = stream.tokens, stream.depth
    if len(tokens) > np.iinfo(np.int64).max // base - 1:
        raise UserError(
            f"{len(tokens)} tokens of a vocabulary of {base - 1} are too many to count: use fewer of either"
        )
    tables: list[NgramTable] = []
    ranks, keys = tokens, np.arange(base)
    counts = np.bincount(tokens[depth > 0], minlength=base)
    for length in range(2, order + 1):
        at = np.flatnonzero(depth >= length - 1)
        longer, inverse, plain = np.unique(ranks[at - 1] * base + tokens[at], return_inverse=True, return_counts=True)
        suffix = np.empty(len(longer), np.int64)
        suffix[inverse] = ranks[at]
        preceded = np.bincount(suffix, minlength=len(keys))
        if length > 2:
            preceded += np.bincount(ranks[depth == length - 2], minlength=len(keys))
        tables.append(NgramTable(keys, preceded))
        ranks = np.full(len(tokens), UNSEEN)
        ranks[at] = inverse
        keys, counts = longer, plain
    return [*tables, NgramTable(keys, counts)]


def find(keys: Ints, wanted: Ints) -> Ints:
    """The rank of each wanted key among the sorted keys, -1 where it is not among them.

    >>> find(np.array([3, 5, 8]), np.array([5, 4, 9])).tolist()
    [1, -1, -1]
    """
    if not len(keys):
        return np.full(len(wanted), UNSEEN)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, at, UNSEEN)
