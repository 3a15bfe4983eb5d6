"""Training batches for language models: windows over contiguous streams, or whole lines.

`StreamBatches` cuts a text into B streams and walks through all of them side by side, a window at a time, so that the
hidden state at the end of one window is where the next begins (here B = 3, windows of 2):

    to be or not to       to be | or not | to      window 1: to be    window 2: or not
    that is the quest     that is | the quest      targets:  be or    targets:  not to
    ion whether tis       ion whether | tis

`LineBatches` takes whole documents (names, sentences), shuffled, grouped by length.
"""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from elman.batches.examples import ExampleBatches
from elman.ragged import Ints, Ragged
from elman.text import Tokenizer


class Ids(Protocol):
    """Token ids that can be read piece by piece, with the places where documents begin."""

    documents: np.ndarray
    document_ends: np.ndarray
    labels: np.ndarray | None

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(repr=False)
class StreamWindows:
    """A window of each of several streams, and the token that follows each of theirs; shown as where it comes from."""

    inputs: Ints  # B x T
    targets: Ints  # B x T
    place: str
    fresh: bool = False  # no state is carried into this batch
    resets: dict[int, Ints] = field(default_factory=dict)  # step -> rows whose document begins there

    def __repr__(self) -> str:
        return self.place


@dataclass(frozen=True, repr=False)
class WholeLines:
    """Whole lines, each ended by the end token, which is predicted too; shown as where they come from."""

    targets: Ragged
    start_id: int
    place: str
    labels: Ints | None = None  # B

    @property
    def inputs(self) -> Ragged:
        """What stands before each target: `start_id` before the first."""
        before = np.roll(self.targets.data, 1)
        before[self.targets.starts] = self.start_id
        return self.targets.with_data(before)

    def __repr__(self) -> str:
        return self.place


class Reversed:
    """Ids from the end to the beginning, for models that read backwards; documents still end with `<eos>`.

    forwards  a b c $ x y $      backwards  y x $ c b a $
    """

    def __init__(self, ids: Ids) -> None:
        self.ids = ids
        self.labels: np.ndarray | None = None
        size = len(ids)
        self.ends = bool(size and ids.read(size - 1, size)[0] == Tokenizer.eos_id)  # else the last one was cut off
        starts = size - ids.documents[:0:-1] + (not self.ends)
        self.documents = np.concatenate([[0], starts])
        self.document_ends = np.append(starts, size)

    def __len__(self) -> int:
        return len(self.ids)

    def read(self, start: int, stop: int) -> np.ndarray:
        """The ids at backward positions start to stop."""
        size = len(self.ids)
        if not self.ends:
            return self.ids.read(size - stop, size - start)[::-1]
        body = self.ids.read(max(0, size - 1 - stop), max(0, size - 1 - start))[::-1]
        return np.append(body, Tokenizer.eos_id) if start < stop == size else body

    def in_text_order(self, values: np.ndarray) -> np.ndarray:
        """Values of all backward positions, in the order of the text."""
        if not self.ends:
            return values[::-1]
        documents = np.split(values, self.documents[1:])
        return np.concatenate([reverse_line(document) for document in reversed(documents)])


def window(ids: Ids, start: int, stop: int, start_id: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and targets for the targets at start to stop; before the first token stands `start_id`.

    >>> class Digits:
    ...     documents, document_ends, labels = np.array([0]), np.array([10]), None
    ...     def __len__(self): return 10
    ...     def read(self, start, stop): return np.arange(start, stop)
    >>> window(Digits(), 0, 3, start_id=99)
    (array([99,  0,  1]), array([0, 1, 2]))
    """
    if start > 0:
        tokens = ids.read(start - 1, stop)
    else:
        tokens = np.concatenate([[start_id], ids.read(0, stop)])
    return tokens[:-1], tokens[1:]


def stack_windows(ids: Ids, starts: np.ndarray, length: int, start_id: int, reset: bool) -> StreamWindows:
    """One window of `length` from each of several places in the ids."""
    rows = [window(ids, int(start), int(start) + length, start_id) for start in starts]
    inputs = np.stack([row[0] for row in rows]).astype(np.int64)  # B x T
    targets = np.stack([row[1] for row in rows]).astype(np.int64)  # B x T
    resets = _resets(ids.documents, starts, length) if reset else {}
    for step, begun in resets.items():  # a document does not see the last token of the one before it either
        inputs[begun, step] = start_id
    return StreamWindows(inputs, targets, f"tokens {starts[0]} to {starts[0] + length} of stream 1", resets=resets)


def _resets(documents: np.ndarray, starts: np.ndarray, length: int) -> dict[int, Ints]:
    """For each step at which documents begin, the rows in which they do."""
    begun: dict[int, list[int]] = {}
    for row, start in enumerate(starts):
        first, last = np.searchsorted(documents, [start, start + length])
        for place in documents[first:last]:
            begun.setdefault(int(place - start), []).append(row)
    return {step: np.array(begun[step]) for step in sorted(begun)}


class StreamBatches:
    """Windows over B contiguous streams, epoch after epoch; every epoch begins at another offset.

    `bptt`: "regular" windows of `steps`, "random" ones around `steps` (Merity, Keskar, Socher 2017: now and then half
    as long), or "full": the whole stream is one window. Carried states are hardly ever empty, yet a model that is used
    begins with an empty one: with the chance `forget`, a stream's state is dropped before a window.
    """

    def __init__(
        self,
        ids: Ids,
        batch_size: int,
        steps: int,
        *,
        start_id: int,
        bptt: Literal["regular", "random", "full"] = "regular",
        reset_documents: bool = True,
        forget: float = 0.0,
        seed: int = 0,
    ) -> None:
        self.ids, self.batch_size, self.steps, self.start_id = ids, batch_size, steps, start_id
        self.bptt, self.reset_documents, self.forget, self.seed = bptt, reset_documents, forget, seed
        self.epoch = self.position = 0
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        """Everything random about an epoch follows from the seed and its number."""
        self.position = 0
        generator = np.random.default_rng([self.seed, self.epoch])
        room = len(self.ids) - self.batch_size  # every stream needs at least one token
        shift = int(generator.integers(0, max(1, min(self.steps, room + 1))))
        self.length = (len(self.ids) - shift) // self.batch_size
        self.starts = shift + np.arange(self.batch_size) * self.length
        self._generator = generator

    @property
    def progress(self) -> float:
        """Epochs gone by."""
        return self.epoch + self.position / self.length

    def __len__(self) -> int:
        """How many windows an epoch has, about: they may be of random length."""
        return 1 if self.bptt == "full" else -(-self.length // self.steps)

    def _window_length(self) -> int:
        if self.bptt == "full":
            return self.length
        if self.bptt == "regular":
            return self.steps
        mean = self.steps if self._generator.random() < 0.95 else self.steps / 2
        return max(1, round(self._generator.normal(mean, min(5.0, self.steps / 8))))

    def __next__(self) -> StreamWindows:
        length = min(self._window_length(), self.length - self.position)
        batch = stack_windows(self.ids, self.starts + self.position, length, self.start_id, self.reset_documents)
        batch.fresh = self.position == 0
        self._forget_some(batch)
        self.position += length
        if self.position >= self.length:
            self.epoch += 1
            self._begin_epoch()
        return batch

    def _forget_some(self, batch: StreamWindows) -> None:
        dropped = np.flatnonzero(self._generator.random(self.batch_size) < self.forget)
        if len(dropped):
            batch.resets[0] = np.union1d(batch.resets.get(0, []), dropped).astype(np.int64)

    def state_dict(self) -> dict[str, Any]:
        """The position, and the random generator that the window lengths are drawn from."""
        return {"epoch": self.epoch, "position": self.position, "random": self._generator.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved position."""
        self.epoch = state["epoch"]
        self._begin_epoch()
        self.position = state["position"]
        self._generator.bit_generator.state = state["random"]


class LineBatches(ExampleBatches[WholeLines]):
    """Whole documents, shuffled anew each epoch and grouped by length so that little is padded."""

    def __init__(self, ids: Ids, batch_size: int, *, start_id: int, backward: bool = False, seed: int = 0) -> None:
        super().__init__(
            ids.document_ends - ids.documents,
            batch_size,
            lambda rows: stack_lines(ids, rows, start_id, backward),
            seed=seed,
        )


def reverse_line(row: np.ndarray) -> np.ndarray:
    """A line from its end, the end token still last; twice is the line itself.

    >>> reverse_line(np.array([7, 8, 9, 1]))
    array([9, 8, 7, 1])
    """
    return np.append(row[-2::-1], row[-1:])


def stack_lines(ids: Ids, documents: np.ndarray, start_id: int, backward: bool = False) -> WholeLines:
    """Some documents, each of which ends with the end token."""
    rows = [ids.read(int(ids.documents[i]), int(ids.document_ends[i])) for i in documents]
    targets = Ragged.of([reverse_line(row) for row in rows] if backward else rows)
    labels = None if ids.labels is None else ids.labels[documents].astype(np.int64)
    return WholeLines(targets, start_id, f"lines {', '.join(str(i + 1) for i in documents[:3])} ...", labels)
