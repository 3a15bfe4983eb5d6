"""A long row of ids, on disk or in memory, of which any stretch can be read."""

import mmap
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

DROP_AFTER = 128 << 20  # bytes touched between two reliefs of the memory map
AROUND = 2 << 20  # bytes around one that is read which the system may map with it: a large page


def smallest_dtype(size: int) -> np.dtype[np.unsignedinteger]:
    """The narrowest unsigned integer that holds every id below `size`.

    >>> smallest_dtype(258).name
    'uint16'
    """
    return np.min_scalar_type(max(size - 1, 0))


def offset_dtype(length: int) -> np.dtype[np.signedinteger]:
    """The integer that holds every offset into `length` ids.

    >>> offset_dtype(1000).name
    'int32'
    """
    return np.dtype(np.int32) if length <= np.iinfo(np.int32).max else np.dtype(np.int64)


class IdStream:
    """Ids of one or more documents, one after the other.

    `documents` holds the offset at which each document starts, `document_ends` that at which it ends, `labels` the
    id of its label if there are any. `characters` is how many characters of text the ids stand for, where known.

    >>> stream = IdStream(np.array([5, 6, 1, 7, 1], dtype=np.uint8), documents=[0, 3])
    >>> len(stream), stream.read(1, 4).tolist()
    (5, [6, 1, 7])
    >>> stream.view(2, 5).documents.tolist()
    [0, 1]
    """

    def __init__(
        self,
        ids: "NDArray[np.unsignedinteger] | MappedIds",
        documents: ArrayLike = (0,),
        labels: ArrayLike | None = None,
        start: int = 0,
        stop: int | None = None,
        characters: int | None = None,
    ) -> None:
        self._ids = ids
        self._start = start
        self._stop = len(ids) if stop is None else stop
        self.characters = characters
        starts = np.asarray(documents)
        offsets = np.empty(len(starts) + 1, dtype=offset_dtype(len(self)))  # one array, since there may be millions
        offsets[:-1], offsets[-1] = starts, len(self)
        self.documents: NDArray[np.signedinteger] = offsets[:-1]
        self.document_ends: NDArray[np.signedinteger] = offsets[1:]
        self.labels: NDArray[np.integer] | None = None if labels is None else np.asarray(labels)

    def __len__(self) -> int:
        return self._stop - self._start

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """How an id is stored."""
        return self._ids.dtype

    def read(self, start: int, stop: int) -> NDArray[np.int64]:
        """The ids from `start` up to `stop`."""
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"ids {start} to {stop} of a stream of {len(self)}")
        return self._ids[self._start + start : self._start + stop].astype(np.int64)

    def fingerprint(self) -> str:
        """What tells one text from another: its length, and a sample of it."""
        digest = blake2b(str(len(self)).encode(), digest_size=16)
        for start in range(0, len(self), max(1, len(self) // 64)):
            digest.update(self.read(start, min(start + 4096, len(self))).tobytes())
        return digest.hexdigest()

    def view(self, start: int, stop: int) -> "IdStream":
        """The stretch from `start` up to `stop` as a stream of its own; nothing is copied.

        A document that began before `start` begins the view.
        """
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"ids {start} to {stop} of a stream of {len(self)}")
        first = max(int(np.searchsorted(self.documents, start, side="right")) - 1, 0)
        last = int(np.searchsorted(self.documents, stop, side="left"))
        documents = np.maximum(self.documents[first:last] - start, 0)
        labels = None if self.labels is None else self.labels[first:last]
        return IdStream(self._ids, documents, labels, self._start + start, self._start + stop)


class MappedIds:
    """Ids in a file, read through a memory map that gives its pages back now and then.

    Pages that were read stay in the process until the system wants them: a file of gigabytes would make a
    process of gigabytes.
    """

    def __init__(self, path: Path, dtype: np.dtype[np.unsignedinteger]) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._advise("MADV_RANDOM")
        self._array: NDArray[np.unsignedinteger] = np.frombuffer(self._map, dtype=dtype)
        self._read = 0

    def __len__(self) -> int:
        return len(self._array)

    @property
    def dtype(self) -> np.dtype[np.unsignedinteger]:
        """How an id is stored."""
        return self._array.dtype

    def __getitem__(self, part: slice) -> NDArray[np.unsignedinteger]:
        ids = self._array[part].copy()
        self._read += ids.nbytes + AROUND
        if self._read >= DROP_AFTER:
            self._advise("MADV_DONTNEED")
            self._read = 0
        return ids

    def _advise(self, advice: str) -> None:
        if hasattr(mmap, advice):  # not every system has them
            self._map.madvise(getattr(mmap, advice))
