"""How a language model reads text that it gets used to: in order, piece by piece, each scored before it is learned.

Without dynamic evaluation the hidden states do not depend on what was read long before, so many parts of the text are
read side by side, as `elman.tasks.scoring` does it, and only the cache follows the text.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from elman.batches.batches import Ids, Reversed, StreamWindows, WholeLines, reverse_line, stack_lines, stack_windows
from elman.batches.stream import IdStream
from elman.nn.cache import ContinuousCache
from elman.nn.dynamic import DynamicEvaluation
from elman.nn.language import LanguageNetwork, detach
from elman.tasks.reading import Reading
from elman.tasks.scoring import (
    PART,
    STREAMS,
    WINDOW,
    NetworkReader,
    hidden_and_targets,
    score_lines,
    score_stream,
)

HELD = 1 << 26
"""Numbers of hidden states that are held at once."""

Look = Callable[[Tensor, Tensor, ContinuousCache | None], object]
"""Is shown every piece as it is read: hidden states (N x H), targets (N), and the cache before they are added to it."""

Progress = Callable[[int, int], object]
"""Is told how many tokens have been read, and of how many."""


class Piece(NamedTuple):
    """Some tokens that were read one after the other, and what the softmax said of them."""

    hidden: Tensor  # N x H
    targets: Tensor  # N
    log_probs: np.ndarray  # N
    begins: bool
    """Whether nothing before it may be remembered."""


class HiddenReader(NetworkReader):
    """Reads as its base does and keeps hidden states; gives each token's number in them for its log-probability."""

    def __init__(self, network: LanguageNetwork, tower: int) -> None:
        super().__init__(network, tower)
        self._hidden: list[Tensor] = []
        self._log_probs: list[Tensor] = []
        self._count = 0

    @torch.no_grad()
    def window(self, batch: StreamWindows, state: Any) -> tuple[np.ndarray, Any]:
        """The number of each target (B x T), and the state after the window."""
        hidden, targets, state = hidden_and_targets(self.network, batch, state, self.tower)
        return self._numbers(hidden, targets).view(batch.targets.shape).numpy(), state

    @torch.no_grad()
    def lines(self, batch: WholeLines) -> np.ndarray:
        """The number of each target of whole lines (B x T)."""
        hidden, targets, _ = hidden_and_targets(self.network, batch, None, self.tower)
        packed = _packed_places(batch)
        table, _ = pad_packed_sequence(packed._replace(data=self._numbers(hidden, targets)), batch_first=True)
        return table.numpy()

    def _numbers(self, hidden: Tensor, targets: Tensor) -> Tensor:
        self._hidden.append(hidden)
        self._log_probs.append(self.network.softmax.target_log_probs(hidden, targets))
        self._count += len(targets)
        return torch.arange(self._count - len(targets), self._count, dtype=torch.float64)

    def kept(self, numbers: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """The hidden states (N x H) and log-probabilities (N) of some tokens by their numbers."""
        places = torch.from_numpy(numbers.astype(np.int64))
        return torch.cat(self._hidden)[places], torch.cat(self._log_probs)[places].double().numpy()


def _packed_places(batch: WholeLines) -> PackedSequence:
    """The places of lines one after the other, in the order in which packed lines are read."""
    lengths = torch.from_numpy(batch.targets.lengths)
    places = torch.zeros(len(lengths), int(lengths.max()), dtype=torch.int64)  # B x T
    for row, (start, length) in enumerate(zip(batch.targets.starts.tolist(), lengths.tolist(), strict=True)):
        places[row, :length] = torch.arange(start, start + length)
    return pack_padded_sequence(places, lengths, batch_first=True, enforce_sorted=False)


@dataclass
class Follower:
    """Reads text from its beginning to its end, or the other way round, and gets used to it.

    Each text starts from the `cache` that is given and from the weights that `dynamic` takes for the trained ones, and
    so does each document of a running text whose state starts anew there; lines follow one another in a file, so what
    was got used to is kept from line to line. `segment` is how many tokens are read between updates.
    """

    network: LanguageNetwork
    reading: Reading
    tower: int = 0
    backward: bool = False
    cache: ContinuousCache | None = None
    dynamic: DynamicEvaluation | None = None
    segment: int = 20
    look: Look | None = None
    progress: Progress | None = None

    def read(self, ids: Ids) -> tuple[np.ndarray, np.ndarray]:
        """The log-probability of every token in the order of the text: with the cache, and without."""
        mixed, alone = np.empty(len(ids)), np.empty(len(ids))
        done, self.filled = 0, None if self.cache is None else self.cache.copy()
        for piece in self.pieces(ids):
            if piece.begins and self.cache is not None:
                self.filled = self.cache.copy()
            if self.look is not None:
                self.look(piece.hidden, piece.targets, self.filled)
            part = slice(done, done + len(piece.targets))
            mixed[part] = alone[part] = piece.log_probs
            if self.filled is not None:
                mixed[part] = self.filled.mixed(piece.log_probs, self.filled.shares(piece.hidden, piece.targets))
                self.filled.add(piece.hidden, piece.targets)
            done += len(piece.targets)
            if self.progress is not None:
                self.progress(done, len(ids))
        return self.in_text_order(mixed, ids), self.in_text_order(alone, ids)

    def pieces(self, ids: Ids) -> Iterator[Piece]:
        """The text in the order in which it is read; what was read is learned when the next is asked for."""
        if self.reading.unit == "line":
            return self._learned_lines(ids) if self.dynamic else self._recorded_lines(ids)
        turned = Reversed(ids) if self.backward else ids
        return self._learned_stream(turned) if self.dynamic else self._recorded_stream(turned)

    def in_text_order(self, values: np.ndarray, ids: Ids) -> np.ndarray:
        """Values of all tokens as they were read, in the order of the text."""
        if not self.backward:
            return values
        return values[_turned_lines(ids)] if self.reading.unit == "line" else Reversed(ids).in_text_order(values)

    # Hidden states that are known before they are looked at

    def _recorded_stream(self, ids: Ids) -> Iterator[Piece]:
        size = self._block()
        for first in range(0, len(ids), size):
            stop = min(first + size, len(ids))
            reader = HiddenReader(self.network, self.tower)
            hidden, log_probs = reader.kept(score_stream(reader, ids, self.reading, first, stop))
            targets = torch.from_numpy(ids.read(first, stop).astype(np.int64))
            for start, end, begins in self._segments(ids, WINDOW, first, stop):
                part = slice(start - first, end - first)
                yield Piece(hidden[part], targets[part], log_probs[part], begins)

    def _recorded_lines(self, ids: Ids) -> Iterator[Piece]:
        for number, (first, last) in enumerate(_line_groups(ids, self._block())):
            lines = cast(IdStream, ids).view(int(ids.documents[first]), int(ids.document_ends[last - 1]))
            reader = HiddenReader(self.network, self.tower)
            numbers = score_lines(reader, lines, self.reading, self.backward)
            targets = lines.read(0, len(lines)).astype(np.int64)
            if self.backward:
                turned = _turned_lines(lines)
                numbers, targets = numbers[turned], targets[turned]
            hidden, log_probs = reader.kept(numbers)
            for start in range(0, len(targets), WINDOW):
                part = slice(start, start + WINDOW)
                begins = number == 0 and start == 0
                yield Piece(hidden[part], torch.from_numpy(targets[part]), log_probs[part], begins)

    def _block(self) -> int:
        return max(PART, min(STREAMS * PART, HELD // self.network.softmax.hidden_size))

    # Weights that follow the text

    def _learned_stream(self, ids: Ids) -> Iterator[Piece]:
        assert self.dynamic is not None
        state: Any = None
        for start, stop, begins in self._segments(ids, self.segment, 0, len(ids)):
            batch = stack_windows(
                ids, np.array([start]), stop - start, self.reading.start_id, self.reading.reset_documents
            )
            if begins:
                self.dynamic.restore()
                state = None
            with torch.enable_grad():
                hidden, targets, state = hidden_and_targets(self.network, batch, state, self.tower)
            yield self._scored(hidden, targets, begins)
            self._learn(hidden, targets)
            state = detach(state)

    def _learned_lines(self, ids: Ids) -> Iterator[Piece]:
        assert self.dynamic is not None
        self.dynamic.restore()
        for first, last in _line_groups(ids, self.segment):
            batch = stack_lines(ids, np.arange(first, last), self.reading.start_id, self.backward)
            with torch.enable_grad():
                packed, told, _ = hidden_and_targets(self.network, batch, None, self.tower)
                in_order = _packed_places(batch).data.argsort()
                hidden, targets = packed[in_order], told[in_order]
            yield self._scored(hidden, targets, first == 0)
            self._learn(hidden, targets)

    def _scored(self, hidden: Tensor, targets: Tensor, begins: bool) -> Piece:
        with torch.no_grad():
            seen = hidden.detach()
            log_probs = self.network.softmax.target_log_probs(seen, targets).double().numpy()
        return Piece(seen, targets, log_probs, begins)

    def _learn(self, hidden: Tensor, targets: Tensor) -> None:
        assert self.dynamic is not None
        with torch.enable_grad():
            # A shorter segment, at the end of a text, moves the weights less.
            loss = self.network.softmax.loss(hidden, targets) * min(1.0, len(targets) / self.segment)
        loss.backward()  # type: ignore[no-untyped-call]
        self.dynamic.update()

    def _segments(self, ids: Ids, length: int, first: int, stop: int) -> Iterator[tuple[int, int, bool]]:
        """Stretches of at most `length` of the tokens from `first` to `stop`, and whether a document begins there."""
        begun = self.reading.documents(ids)
        starts = np.zeros(1, np.int64) if begun is None else np.append(0, begun)
        inside = starts[(starts > first) & (starts < stop)]
        for start, end in zip([first, *inside.tolist()], [*inside.tolist(), stop], strict=True):
            for place in range(start, end, length):
                yield place, min(place + length, end), place == start and bool(np.isin(start, starts))


def _line_groups(ids: Ids, tokens: int) -> Iterator[tuple[int, int]]:
    """Lines that follow one another, the fewest that have so many tokens together: the first, and behind the last."""
    first = 0
    while first < len(ids.documents):
        last = int(np.searchsorted(ids.document_ends, ids.documents[first] + tokens)) + 1
        last = min(last, len(ids.documents))
        yield first, last
        first = last


def _turned_lines(ids: Ids) -> np.ndarray:
    """The places of a text's tokens, each line from its end."""
    lines = zip(ids.documents.tolist(), ids.document_ends.tolist(), strict=True)
    return np.concatenate([reverse_line(np.arange(start, end)) for start, end in lines])
