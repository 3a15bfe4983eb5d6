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
import torch
from torch import Tensor

from elman.text import Tokenizer


class Ids(Protocol):
    """Token ids that can be read piece by piece, with the places where documents begin."""

    documents: np.ndarray
    document_ends: np.ndarray
    labels: np.ndarray | None

    def __len__(self) -> int: ...

    def read(self, start: int, stop: int) -> np.ndarray: ...


@dataclass(repr=False)
class Batch:
    """Inputs, and the token that follows each of them; shown in messages as the place it comes from."""

    inputs: Tensor  # B x T
    targets: Tensor  # B x T
    place: str  # where the batch comes from, for messages
    fresh: bool = False  # no state is carried into this batch
    resets: dict[int, Tensor] = field(default_factory=dict)  # step -> rows whose document begins there
    lengths: Tensor | None = None  # B, for lines: what comes after is padding
    labels: Tensor | None = None  # B

    def __repr__(self) -> str:
        return self.place


class Reversed:
    """The same ids from the end to the beginning, for models that read backwards; documents still end with `<eos>`.

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
        """What was found for every backward position, as it belongs to the text."""
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


def stack_windows(ids: Ids, starts: np.ndarray, length: int, start_id: int, reset: bool) -> Batch:
    """One window of `length` from each of several places in the ids."""
    rows = [window(ids, int(start), int(start) + length, start_id) for start in starts]
    inputs = torch.from_numpy(np.stack([row[0] for row in rows]).astype(np.int64))  # B x T
    targets = torch.from_numpy(np.stack([row[1] for row in rows]).astype(np.int64))  # B x T
    resets = _resets(ids.documents, starts, length) if reset else {}
    for step, begun in resets.items():  # a document does not see the last token of the one before it either
        inputs[begun, step] = start_id
    return Batch(inputs, targets, f"tokens {starts[0]} to {starts[0] + length} of stream 1", resets=resets)


def _resets(documents: np.ndarray, starts: np.ndarray, length: int) -> dict[int, Tensor]:
    """For each step at which documents begin, the rows in which they do."""
    found: dict[int, list[int]] = {}
    for row, start in enumerate(starts):
        first, last = np.searchsorted(documents, [start, start + length])
        for place in documents[first:last]:
            found.setdefault(int(place - start), []).append(row)
    return {step: torch.tensor(found[step]) for step in sorted(found)}


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

    def _window_length(self) -> int:
        if self.bptt == "full":
            return self.length
        if self.bptt == "regular":
            return self.steps
        mean = self.steps if self._generator.random() < 0.95 else self.steps / 2
        return max(1, round(self._generator.normal(mean, min(5.0, self.steps / 8))))

    def __next__(self) -> Batch:
        length = min(self._window_length(), self.length - self.position)
        batch = stack_windows(self.ids, self.starts + self.position, length, self.start_id, self.reset_documents)
        batch.fresh = self.position == 0
        self._forget_some(batch)
        self.position += length
        if self.position >= self.length:
            self.epoch += 1
            self._begin_epoch()
        return batch

    def _forget_some(self, batch: Batch) -> None:
        dropped = np.flatnonzero(self._generator.random(self.batch_size) < self.forget)
        if len(dropped):
            already = batch.resets.get(0, torch.empty(0, dtype=torch.long)).numpy()
            batch.resets[0] = torch.from_numpy(np.union1d(already, dropped).astype(np.int64))

    def state_dict(self) -> dict[str, Any]:
        """The position, and the random generator that the window lengths are drawn from."""
        return {"epoch": self.epoch, "position": self.position, "random": self._generator.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved position."""
        self.epoch = state["epoch"]
        self._begin_epoch()
        self.position = state["position"]
        self._generator.bit_generator.state = state["random"]


class LineBatches:
    """Whole documents, shuffled anew each epoch and grouped by length so that little is padded."""

    GROUP = 50  # batches that are sorted by length together

    def __init__(self, ids: Ids, batch_size: int, *, start_id: int, backward: bool = False, seed: int = 0) -> None:
        self.ids, self.batch_size, self.start_id, self.backward = ids, batch_size, start_id, backward
        self.seed = seed
        self.epoch = self.position = 0
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.position = 0
        generator = np.random.default_rng([self.seed, self.epoch])
        starts, ends = self.ids.documents, self.ids.document_ends
        self._order = np.arange(len(starts), dtype=starts.dtype)  # there may be millions: no larger than need be
        generator.shuffle(self._order)
        size = self.batch_size * self.GROUP
        for first in range(0, len(self._order), size):
            group = self._order[first : first + size]
            group[:] = group[np.argsort(ends[group] - starts[group], kind="stable")]
        self._batches = generator.permutation(-(-len(self._order) // self.batch_size))

    @property
    def progress(self) -> float:
        """Epochs gone by."""
        return self.epoch + self.position / len(self._batches)

    def __next__(self) -> Batch:
        first = int(self._batches[self.position]) * self.batch_size
        rows = self._order[first : first + self.batch_size]
        batch = stack_lines(self.ids, rows, self.start_id, self.backward)
        self.position += 1
        if self.position >= len(self._batches):
            self.epoch += 1
            self._begin_epoch()
        return batch

    def state_dict(self) -> dict[str, Any]:
        """The position."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved position."""
        self.epoch = state["epoch"]
        self._begin_epoch()
        self.position = state["position"]


def reverse_line(row: np.ndarray) -> np.ndarray:
    """A line from its end, the end token still last; twice is the line itself.

    >>> reverse_line(np.array([7, 8, 9, 1]))
    array([9, 8, 7, 1])
    """
    return np.append(row[-2::-1], row[-1:])


def stack_lines(ids: Ids, documents: np.ndarray, start_id: int, backward: bool = False) -> Batch:
    """Some documents as one padded batch; each ends with the end token, which is predicted too."""
    rows = [ids.read(int(ids.documents[i]), int(ids.document_ends[i])) for i in documents]
    if backward:
        rows = [reverse_line(row) for row in rows]
    lengths = torch.tensor([len(row) for row in rows])
    targets = torch.full((len(rows), int(lengths.max())), start_id)  # B x T
    for index, row in enumerate(rows):
        targets[index, : len(row)] = torch.from_numpy(row.astype(np.int64))
    inputs = torch.cat([torch.full((len(rows), 1), start_id), targets[:, :-1]], dim=1)  # B x T
    labels = None if ids.labels is None else torch.from_numpy(ids.labels[documents].astype(np.int64))
    place = f"lines {', '.join(str(i + 1) for i in documents[:3])} ..."
    return Batch(inputs, targets, place, fresh=True, lengths=lengths, labels=labels)
