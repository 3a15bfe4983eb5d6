"""Batches of whole examples (texts with a label, sentences with tags), grouped by length so that little is padded.

`ExampleBatches` is for training: shuffled, endless, and taken up again at any batch. `by_length` and `in_order` are
for prediction: the first for examples that are all at hand, the second for a stream of any size in constant memory.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from elman.batches.stream import offset_dtype
from elman.errors import ElmanError, UserError
from elman.ragged import Ints

B = TypeVar("B")
X = TypeVar("X")
Y = TypeVar("Y")

GROUP = 50  # batches that are sorted by length together


class ExampleBatches(Generic[B]):
    """Endless training batches; `make` turns the numbers of some examples into whatever the task calls a batch.

    Every epoch has each example once, in an order that follows from the seed and the epoch's number alone, so a
    position is all that there is to save. `text` tells one training set from another (see `fingerprint`): a run
    does not go on with other data. A batch has `batch_size` examples or, where `tokens` is given, as many as make no
    more than so many of them, padding included. Of examples with several lengths (N x 2) the first counts; the second
    only says which of those that are alike in it stand together.

    >>> batches = ExampleBatches([5, 2, 9, 3], 2, lambda rows: sorted(rows.tolist()), seed=1)
    >>> sorted(next(batches) + next(batches)), batches.progress
    ([0, 1, 2, 3], 1.0)
    """

    def __init__(
        self,
        lengths: Sequence[int] | NDArray[np.integer],
        batch_size: int | None,
        make: Callable[[Ints], B],
        *,
        tokens: int | None = None,
        seed: int = 0,
        text: str = "",
    ) -> None:
        self.lengths = np.asarray(lengths).reshape(len(lengths), -1)  # N x 1 or N x 2
        if not len(self.lengths) or (batch_size is None) == (tokens is None) or (batch_size or tokens or 0) < 1:
            raise ValueError(f"cannot make batches of {batch_size or tokens} from {len(self.lengths)} examples")
        self.batch_size, self.tokens, self.make, self.seed, self.text = batch_size, tokens, make, seed, text
        self.epoch = 0
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.position = 0
        generator = np.random.default_rng([self.seed, self.epoch])
        order = np.arange(len(self.lengths), dtype=offset_dtype(len(self.lengths)))  # there may be millions
        generator.shuffle(order)
        usual = self.batch_size or max(1, int((self.tokens or 0) // self.lengths[:, 0].mean()))
        cuts = range(usual * GROUP, len(order), usual * GROUP)
        groups = [group[np.lexsort(self.lengths[group].T[::-1])] for group in np.split(order, cuts)]
        batches = [batch for group in groups for batch in self._cut(group)]
        self._batches = [batches[number] for number in generator.permutation(len(batches))]

    def _cut(self, group: NDArray[np.integer]) -> Iterator[NDArray[np.integer]]:
        """Examples of rising length in batches."""
        first = 0
        while first < len(group):
            size = self.batch_size
            if size is None:
                room = self.lengths[group[first:], 0] * np.arange(1, len(group) - first + 1) <= (self.tokens or 0)
                size = max(1, int(room.sum()))  # what so many cost grows with each, so those with room come first
            yield group[first : first + size]
            first += size

    def __len__(self) -> int:
        """Batches of this epoch."""
        return len(self._batches)

    @property
    def progress(self) -> float:
        """Epochs gone by."""
        return self.epoch + self.position / len(self._batches)

    def __next__(self) -> B:
        batch = self.make(self._batches[self.position].astype(np.int64))
        self.position += 1
        if self.position >= len(self._batches):
            self.epoch += 1
            self._begin_epoch()
        return batch

    def state_dict(self) -> dict[str, Any]:
        """The position, and the data that it is a position in."""
        return {"text": self.text, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved position."""
        if state.get("text", "") != self.text:
            raise UserError("the training data have changed since the run began: bring them back, or use --force")
        self.epoch = state["epoch"]
        self._begin_epoch()
        self.position = state["position"]


def fingerprint(examples: Iterable[Hashable]) -> str:
    """What tells one set of examples from another: a hash of all of them, in order, the same in every process.

    >>> fingerprint([("Abel", "English")]) == fingerprint([("Abel", "German")])
    False
    """
    digest = blake2b(digest_size=16)
    for example in examples:
        digest.update(repr(example).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()


def by_length(lengths: Sequence[int] | Ints, batch_size: int, *, tokens: int | None = None) -> Iterator[Ints]:
    """The numbers of all examples in batches of similar length, the longest first, so that too much shows at once.

    With `tokens`, a batch of long examples has fewer of them: no more than make so many tokens, padding included.

    >>> [rows.tolist() for rows in by_length([5, 2, 9, 3], 2)]
    [[2, 0], [3, 1]]
    >>> [rows.tolist() for rows in by_length([5, 2, 9, 3], 2, tokens=10)]
    [[2], [0, 3], [1]]
    """
    lengths = np.asarray(lengths, np.int64)
    order = np.argsort(-lengths, kind="stable")
    first = 0
    while first < len(order):
        room = batch_size if tokens is None else max(1, tokens // max(1, int(lengths[order[first]])))
        yield order[first : first + min(batch_size, room)]
        first += min(batch_size, room)


def in_order(
    items: Iterable[X],
    length: Callable[[X], int],
    work: Callable[[list[X]], Sequence[Y]],
    *,
    batch_size: int = 64,
    window: int = 4096,
    more: Callable[[], bool] | None = None,
) -> Iterator[tuple[X, Y]]:
    """Each item with what `work` made of it, in the order in which they came, in constant memory.

    `window` items are read ahead, cut into batches by their length, and given back before more are read; no more than
    are at hand where items come as they are made, which `more` says: whether the next will come without waiting. Where
    an item cannot be had, those before it are still given back before its error is raised.

    >>> list(in_order(["ccc", "a", "bb"], len, lambda batch: [item.upper() for item in batch], batch_size=2))
    [('ccc', 'CCC'), ('a', 'A'), ('bb', 'BB')]
    """
    source = iter(items)
    failure: ElmanError | None = None
    while failure is None:
        ahead: list[X] = []
        try:
            for item in islice(source, window):
                ahead.append(item)
                if more is not None and not more():
                    break
        except ElmanError as error:
            failure = error
        if not ahead:
            break
        results: list[Y | None] = [None] * len(ahead)
        for rows in by_length([length(item) for item in ahead], batch_size):
            for row, result in zip(rows, work([ahead[row] for row in rows]), strict=True):
                results[row] = result
        yield from zip(ahead, results, strict=True)
    if failure is not None:
        raise failure
