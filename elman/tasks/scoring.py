"""How a language model reads encoded text: the loss of a training batch, and the score of every token."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import dropout
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from elman.batches.batches import Ids, Reversed, StreamWindows, WholeLines, reverse_line, stack_lines, stack_windows
from elman.nn.forcing import Forcing, LanguageSteps, SelfFeeding
from elman.nn.language import LanguageNetwork
from elman.runtime import Engine
from elman.tasks.reading import Reading

CONTEXT = 256  # tokens a stream reads, unscored, before the part that it scores
PART = 2048  # tokens of a long text that one stream scores, at least
STREAMS = 64  # side by side, at most
WINDOW = 128  # steps at a time


def hidden_and_targets(
    network: LanguageNetwork, batch: StreamWindows | WholeLines, state: Any, tower: int = 0
) -> tuple[Tensor, Tensor, Any]:
    """What the softmax sees for a batch (N x H), what it should say (N), and the state to carry on."""
    if isinstance(batch, WholeLines):
        hidden, packed = _line_hidden(network, batch, tower)
        return hidden, packed.data, None
    hidden, state = _stream_hidden(network, batch, None if batch.fresh else state, tower)
    return hidden.flatten(0, 1), torch.from_numpy(batch.targets).flatten(), state


def fed_hidden_and_targets(
    network: LanguageNetwork, batch: StreamWindows | WholeLines, state: Any, forcing: Forcing, tower: int = 0
) -> tuple[Tensor, Tensor, Any]:
    """As `hidden_and_targets`, with a network that is told the right tokens only as often as `forcing` says.

    What follows the end of a line that the network itself has written is left out.
    """
    if isinstance(batch, WholeLines):
        return *_fed_lines(network, batch, forcing, tower), None
    inputs, targets = torch.from_numpy(batch.inputs), torch.from_numpy(batch.targets)  # B x T
    feeding = SelfFeeding(replace(forcing, end=None), len(inputs))
    steps = LanguageSteps(network, None if batch.fresh else state, len(inputs), tower=tower)
    outputs: list[Tensor] = []
    for place, right in enumerate(inputs.unbind(1)):
        begins = torch.zeros(len(inputs), dtype=torch.bool)
        if place in batch.resets:
            rows = torch.from_numpy(batch.resets[place])
            steps.forget(rows)
            begins[rows] = True
        outputs.append(steps(feeding(right, steps.best(outputs[-1]) if outputs else None, begins)))
    hidden = network.finish(network.output_dropout(torch.stack(outputs, dim=1)))  # B x T x H
    return hidden.flatten(0, 1), targets.flatten(), steps.state


def _fed_lines(network: LanguageNetwork, batch: WholeLines, forcing: Forcing, tower: int) -> tuple[Tensor, Tensor]:
    lengths, feeding = torch.from_numpy(batch.targets.lengths), SelfFeeding(forcing, len(batch.targets))
    inputs, targets = (
        pack_padded_sequence(torch.from_numpy(part.padded()), lengths, batch_first=True, enforce_sorted=False)
        for part in (batch.inputs, batch.targets)
    )
    labels = None if batch.labels is None else torch.from_numpy(batch.labels)[inputs.sorted_indices]
    steps, outputs = LanguageSteps(network, None, len(lengths), labels=labels, tower=tower), list[Tensor]()
    for right in torch.split(inputs.data, inputs.batch_sizes.tolist()):
        outputs.append(steps(feeding(right, steps.best(outputs[-1][: len(right)]) if outputs else None)))
    rows = dropout(torch.cat(outputs), network.output_dropout.p, network.training)  # N x H
    return network.finish(rows)[feeding.trained], targets.data[feeding.trained]


def _line_hidden(network: LanguageNetwork, batch: WholeLines, tower: int) -> tuple[Tensor, PackedSequence]:
    """What the softmax sees of whole lines (N x H), and their targets, packed."""
    inputs, targets = (torch.from_numpy(part.padded(batch.start_id)) for part in (batch.inputs, batch.targets))
    lengths = torch.from_numpy(batch.targets.lengths)
    labels = None if batch.labels is None else torch.from_numpy(batch.labels)
    hidden, _ = network.hidden_of_lines(inputs, lengths, labels=labels, tower=tower)
    return hidden, pack_padded_sequence(targets, lengths, batch_first=True, enforce_sorted=False)


def _stream_hidden(network: LanguageNetwork, batch: StreamWindows, state: Any, tower: int) -> tuple[Tensor, Any]:
    """What the softmax sees of a window (B x T x H), and the state after it."""
    found = []
    inputs = torch.from_numpy(batch.inputs)
    for piece, rows in _pieces(batch):
        state = network.forget(state, torch.from_numpy(rows), tower) if rows is not None else state
        hidden, state = network.hidden(inputs[:, piece], state, tower=tower)
        found.append(hidden)
    return torch.cat(found, dim=1) if len(found) > 1 else found[0], state


def _pieces(batch: StreamWindows) -> Iterator[tuple[slice, np.ndarray | None]]:
    """A window's parts between the places where documents begin, with the rows whose state starts anew there."""
    cuts = sorted({0, *batch.resets})
    for start, stop in zip(cuts, [*cuts[1:], batch.inputs.shape[1]], strict=True):
        yield slice(start, stop), batch.resets.get(start)


class ScoringReader(Protocol):
    """What reads windows and lines and says how likely each of their tokens was."""

    def window(self, batch: StreamWindows, state: Any) -> tuple[np.ndarray, Any]:
        """The log-probability of each target (B x T), and the state after the window; documents begin where told."""

    def lines(self, batch: WholeLines) -> np.ndarray:
        """The log-probability of each target of whole lines (B x T, whatever behind their ends)."""

    def forget(self, state: Any, rows: np.ndarray) -> Any:
        """The state with some rows put back to the beginning."""


class NetworkReader:
    """A network; it leaves no gradient."""

    def __init__(self, network: LanguageNetwork, tower: int = 0) -> None:
        self.network, self.tower = network, tower

    @torch.no_grad()
    def window(self, batch: StreamWindows, state: Any) -> tuple[np.ndarray, Any]:
        """Documents begin where told."""
        hidden, state = _stream_hidden(self.network, batch, state, self.tower)
        targets = torch.from_numpy(batch.targets).flatten()
        values = self.network.softmax.target_log_probs(hidden.flatten(0, 1), targets)
        return values.view(batch.targets.shape).double().numpy(), state

    @torch.no_grad()
    def lines(self, batch: WholeLines) -> np.ndarray:
        """Packed: nothing is computed behind a line's end."""
        hidden, packed = _line_hidden(self.network, batch, self.tower)
        values = packed._replace(data=self.network.softmax.target_log_probs(hidden, packed.data))
        table, _ = torch.nn.utils.rnn.pad_packed_sequence(values, batch_first=True)
        return table.double().numpy()

    def forget(self, state: Any, rows: np.ndarray) -> Any:
        """The state with some rows put back to the beginning."""
        return self.network.forget(state, torch.from_numpy(rows), self.tower)


class EngineReader:
    """The compiled engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def window(self, batch: StreamWindows, state: Any) -> tuple[np.ndarray, Any]:
        """Documents begin where told."""
        inputs, targets = batch.inputs, batch.targets
        found = np.empty(targets.shape)
        for piece, rows in _pieces(batch):
            state = self.forget(state, rows) if rows is not None else state
            found[:, piece], state = self.engine.log_probs(inputs[:, piece], targets[:, piece], state)
        return found, state

    def lines(self, batch: WholeLines) -> np.ndarray:
        """Lines of like length stand together, so little is read behind their ends."""
        inputs, targets = (part.padded(batch.start_id) for part in (batch.inputs, batch.targets))
        return self.engine.log_probs(inputs, targets, None, batch.labels)[0]

    def forget(self, state: Any, rows: np.ndarray) -> Any:
        """The state with some rows put back to the beginning; None, a state before any text, stays so."""
        return None if state is None else self.engine.forget(state, rows.tolist())


def text_log_probs(reader: ScoringReader, ids: Ids, reading: Reading, *, backward: bool = False) -> np.ndarray:
    """The log-probability of every token, in the order of the text."""
    if reading.unit == "line":
        return score_lines(reader, ids, reading, backward)
    if backward:
        turned = Reversed(ids)
        return turned.in_text_order(score_stream(reader, turned, reading))
    return score_stream(reader, ids, reading)


def network_log_probs(
    network: LanguageNetwork, ids: Ids, reading: Reading, *, backward: bool = False, tower: int = 0
) -> np.ndarray:
    """The log-probability of every token by a network, without its dropout."""
    was_training = network.training
    network.eval()
    try:
        return text_log_probs(NetworkReader(network, tower), ids, reading, backward=backward)
    finally:
        network.train(was_training)


def score_stream(
    reader: ScoringReader, ids: Ids, reading: Reading, first: int = 0, stop: int | None = None
) -> np.ndarray:
    """The scores of a running text, or of its tokens from `first` up to `stop`.

    Long texts are divided among several streams, each of which first reads what stands before its part.
    """
    size = (len(ids) if stop is None else stop) - first
    scores = np.empty(size)
    streams = int(np.clip(size // PART, 1, STREAMS))
    part = -(-size // streams)
    part_starts = first + np.minimum(np.arange(streams) * part, size - part)  # the last overlaps the one before
    context = CONTEXT if streams > 1 or first else 0
    # The first stream of a text has nothing before it: what it reads there instead is forgotten.
    state: Any = None
    for offset in range(-context, part, WINDOW):
        length = min(WINDOW, part - offset) if offset >= 0 else min(WINDOW, -offset)
        starts = part_starts + offset
        if offset < 0:
            starts = np.maximum(starts, 0)
        elif offset == 0 and context and not first:
            state = reader.forget(state, np.array([0]))
        batch = stack_windows(ids, starts, length, reading.start_id, reading.reset_documents)
        values, state = reader.window(batch, state)
        if offset >= 0:
            for start, row in zip(starts - first, values, strict=True):
                scores[start : start + length] = row
    return scores


def score_lines(reader: ScoringReader, ids: Ids, reading: Reading, backward: bool, size: int = 128) -> np.ndarray:
    """The scores of texts of a line each, which are read on their own."""
    scores = np.empty(len(ids))
    ends = np.append(ids.documents[1:], len(ids))
    order = np.argsort(ends - ids.documents, kind="stable")  # lines of like length together
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        table = reader.lines(stack_lines(ids, rows, reading.start_id, backward))
        for row, line in zip(rows, table, strict=True):
            found = line[: ends[row] - ids.documents[row]]
            scores[ids.documents[row] : ends[row]] = reverse_line(found) if backward else found
    return scores
