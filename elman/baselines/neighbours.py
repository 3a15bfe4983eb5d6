"""The baselines that a sequence-to-sequence model has to beat: the target of the most similar source, and a copy.

Two texts are similar as the angle between their TF-IDF vectors of character n-grams is small. No vector is ever made:
for each n-gram there is the list of the training texts that have it, and a new text adds up the lists of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from elman.errors import UserError

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.uint32]
Weights = npt.NDArray[np.float32]

ORDERS = (3, 4)  # characters of an n-gram; a blank is put before and behind every text, so that the shortest has one
BUCKETS = 1 << 22  # n-grams are hashed to so many numbers
CHUNK = 1 << 22  # characters that are cut at a time
MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class CopySource:
    """Gives back the source as it is: right wherever there is nothing to do.

    >>> CopySource().predict(["2026-11-16"])
    ['2026-11-16']
    """

    def predict(self, sources: Sequence[str]) -> list[str]:
        """Each source."""
        return list(sources)


class NearestPair:
    """Gives back the target of the training pair whose source is most similar; of several, that of the first.

    >>> baseline = NearestPair.fit(["a dog runs", "a cat sleeps"], ["ein Hund rennt", "eine Katze schläft"])
    >>> baseline.predict(["the cat sleeps"])
    ['eine Katze schläft']
    """

    def __init__(
        self, targets: Sequence[str], starts: Ints, rows: npt.NDArray[np.int32], weights: Weights, rarity: Weights
    ) -> None:
        self.targets = targets
        self._starts, self._rows, self._weights = starts, rows, weights  # the texts of bucket b: starts[b] to [b + 1]
        self._rarity = rarity  # of each bucket

    @classmethod
    def fit(cls, sources: Sequence[str], targets: Sequence[str]) -> "NearestPair":
        """Index the n-grams of the sources: 16 bytes for each character, several times that while it is made."""
        if len(sources) != len(targets):
            raise UserError(f"there are {len(sources)} sources and {len(targets)} targets: give one for each")
        if not len(sources):
            raise UserError("there are no pairs to fit a baseline to: give at least one")
        chunks = list(_counted(sources))
        buckets = np.concatenate([chunk[0] for chunk in chunks])
        rows = np.concatenate([chunk[1] for chunk in chunks])
        weights = np.concatenate([chunk[2] for chunk in chunks])
        chunks.clear()
        sizes = np.bincount(buckets, minlength=BUCKETS)
        rarity = _rarity(sizes, len(sources))
        weights *= rarity[buckets]
        norms = np.sqrt(np.bincount(rows, np.square(weights), minlength=len(sources)))
        weights /= np.maximum(norms, 1e-12)[rows].astype(np.float32)
        order = np.argsort(buckets, kind="stable")
        starts = np.concatenate([[0], sizes.cumsum()])
        return cls(targets, starts, rows[order], weights[order], rarity)

    def predict(self, sources: Sequence[str]) -> list[str]:
        """The target of the nearest training pair, for each source."""
        return [self.targets[row] for row in self.nearest(sources)[0]]

    def nearest(self, sources: Sequence[str]) -> tuple[list[int], list[float]]:
        """The number of the training pair that is nearest to each source, and the cosine of the angle between them.

        A source that shares no n-gram with any gets the first pair, and 0.

        >>> baseline = NearestPair.fit(["a dog", "a cat"], ["ein Hund", "eine Katze"])
        >>> rows, cosines = baseline.nearest(["a cat", "xyz"])
        >>> rows, [round(cosine, 3) for cosine in cosines]
        ([1, 0], [1.0, 0.0])
        """
        found, cosines = [0] * len(sources), [0.0] * len(sources)
        for buckets, rows, counts in _counted(sources):
            edges = [0, *(np.flatnonzero(np.diff(rows)) + 1).tolist(), len(rows)]
            for start, stop in pairwise(edges if len(rows) else []):
                query = counts[start:stop] * self._rarity[buckets[start:stop]]
                scores = self._scores(buckets[start:stop], query)
                place, best = int(rows[start]), int(scores.argmax())
                found[place], cosines[place] = best, float(scores[best] / np.linalg.norm(query))
        return found, cosines

    def _scores(self, buckets: Codes, query: Weights) -> npt.NDArray[np.float64]:
        """The products of a text with all training texts."""
        slices = [slice(self._starts[bucket], self._starts[bucket + 1]) for bucket in buckets.tolist()]
        sizes = [part.stop - part.start for part in slices]
        rows = np.concatenate([self._rows[part] for part in slices])
        weights = np.concatenate([self._weights[part] for part in slices])
        products = (weights * np.repeat(query, sizes)).astype(np.float64)
        return np.bincount(rows, products, minlength=len(self.targets)).astype(np.float64, copy=False)


class NearestVector:
    """Finds the training example whose vector has the smallest angle to a new one; of several, the first.

    >>> NearestVector(np.array([[1.0, 0.0], [0.0, 2.0]])).nearest(np.array([[0.1, 0.9]]))
    [1]
    """

    def __init__(self, vectors: npt.NDArray[np.floating]) -> None:
        self._vectors = _unit(vectors)  # N x D

    def nearest(self, vectors: npt.NDArray[np.floating]) -> list[int]:
        """The number of the training example that is nearest to each vector (M x D)."""
        return [int((self._vectors @ vector).argmax()) for vector in _unit(vectors)]


def _unit(vectors: npt.NDArray[np.floating]) -> Weights:
    norms = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return np.asarray(vectors / norms, np.float32)


def _rarity(texts_with: Ints, texts: int) -> Weights:
    """The inverse document frequency of each bucket, never below 1."""
    return (np.log((1 + texts) / (1 + texts_with)) + 1).astype(np.float32)


def _counted(texts: Sequence[str]) -> Iterator[tuple[Codes, npt.NDArray[np.int32], Weights]]:
    """Chunk by chunk, sorted by text: the buckets of each text, its number, and 1 + log of how often it has them."""
    for first, stop in _chunks(texts):
        codes, rows = _hashed(texts[first:stop])
        both, counts = np.unique(rows << np.uint64(32) | codes, return_counts=True)
        weights = (1 + np.log(counts)).astype(np.float32)
        yield both.astype(np.uint32), (both >> np.uint64(32)).astype(np.int32) + np.int32(first), weights


def _chunks(texts: Sequence[str]) -> Iterator[tuple[int, int]]:
    """From where to where, so that no more characters than need be are cut at a time."""
    first = size = 0
    for place, text in enumerate(texts):
        if size > CHUNK:
            yield first, place
            first, size = place, 0
        size += len(text) + 2
    if len(texts):
        yield first, len(texts)


def _hashed(texts: Sequence[str]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """The bucket of every n-gram of some texts, and the number of the text that it is in."""
    joined = "".join(f" {text} " for text in texts)
    characters = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    lengths = np.array([len(text) + 2 for text in texts])
    rows = np.repeat(np.arange(len(texts), dtype=np.uint64), lengths)
    codes, places = [], []
    for order in ORDERS:
        size = max(0, len(characters) - order + 1)
        mixed = np.full(size, order, np.uint64)
        for step in range(order):
            mixed = (mixed ^ characters[step : step + size]) * MIX  # wraps around, as a hash may
            mixed ^= mixed >> np.uint64(29)
        inside = rows[:size] == rows[order - 1 :]
        codes.append(mixed[inside] & np.uint64(BUCKETS - 1))
        places.append(rows[:size][inside])
    return np.concatenate(codes), np.concatenate(places)
