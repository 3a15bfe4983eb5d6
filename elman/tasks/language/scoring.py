"""How a language model reads encoded text: the loss of a training batch, and the score of every token."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pack_padded_sequence

from elman.corpora.batches import Batch, Ids, Reversed, reverse_line, stack_lines, stack_windows
from elman.nn.language import LanguageNetwork

CONTEXT = 256  # tokens a stream reads, unscored, before the part that it scores
PART = 2048  # tokens of a long text that one stream scores, at least
STREAMS = 64  # side by side, at most
WINDOW = 128  # steps at a time


@dataclass(frozen=True)
class Reading:
    """How text is read: as one running stream or line by line, and which id stands before the first token."""

    unit: Literal["stream", "line"]
    start_id: int
    ends_text: bool  # whether the end token ends a text; in a stream of words it ends a line only
    reset_documents: bool = True

    def to_dict(self) -> dict[str, Any]:
        """For the model's config."""
        return asdict(self)

    def documents(self, ids: Ids) -> np.ndarray | None:
        """Where nothing before may be looked at any more, or None where the text runs on."""
        return ids.documents if self.unit == "line" or self.reset_documents else None


def hidden_and_targets(
    network: LanguageNetwork, batch: Batch, state: Any, tower: int = 0
) -> tuple[Tensor, Tensor, Any]:
    """What the softmax sees for a batch (N x H), what it should say (N), and the state to carry on."""
    if batch.lengths is not None:
        hidden, _ = network.hidden_of_lines(batch.inputs, batch.lengths, labels=batch.labels, tower=tower)
        packed = pack_padded_sequence(batch.targets, batch.lengths, batch_first=True, enforce_sorted=False)
        return hidden, packed.data, None
    hidden, state = _stream_hidden(network, batch, None if batch.fresh else state, tower)
    return hidden.flatten(0, 1), batch.targets.flatten(), state


def _stream_hidden(network: LanguageNetwork, batch: Batch, state: Any, tower: int) -> tuple[Tensor, Any]:
    """A window, in pieces where documents begin inside it: there the state of their rows starts anew."""
    cuts = sorted({0, *batch.resets})
    pieces = []
    for start, stop in zip(cuts, [*cuts[1:], batch.inputs.shape[1]], strict=True):
        if start in batch.resets:
            state = network.forget(state, batch.resets[start], tower)
        hidden, state = network.hidden(batch.inputs[:, start:stop], state, tower=tower)
        pieces.append(hidden)
    return torch.cat(pieces, dim=1) if len(pieces) > 1 else pieces[0], state


def network_log_probs(
    network: LanguageNetwork, ids: Ids, reading: Reading, *, backward: bool = False, tower: int = 0
) -> np.ndarray:
    """The log-probability of every token, in the order of the text. Leaves no gradient and uses no dropout."""
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            if reading.unit == "line":
                return _score_lines(network, ids, reading, backward, tower)
            if backward:
                turned = Reversed(ids)
                return turned.in_text_order(_score_stream(network, turned, reading, tower))
            return _score_stream(network, ids, reading, tower)
    finally:
        network.train(was_training)


def _score_stream(network: LanguageNetwork, ids: Ids, reading: Reading, tower: int) -> np.ndarray:
    """Long texts are divided among several streams, each of which first reads what stands before its part."""
    scores = np.empty(len(ids))
    streams = int(np.clip(len(ids) // PART, 1, STREAMS))
    part = -(-len(ids) // streams)
    part_starts = np.minimum(np.arange(streams) * part, len(ids) - part)  # the last overlaps the one before
    context = CONTEXT if streams > 1 else 0
    # The first stream has nothing before it: what it reads there instead is forgotten.
    state: Any = None
    for offset in range(-context, part, WINDOW):
        length = min(WINDOW, part - offset) if offset >= 0 else min(WINDOW, -offset)
        starts = part_starts + offset
        if offset < 0:
            starts = np.maximum(starts, 0)
        elif offset == 0 and context:
            state = network.forget(state, torch.tensor([0]), tower)
        batch = stack_windows(ids, starts, length, reading.start_id, reading.reset_documents)
        hidden, state = _stream_hidden(network, batch, state, tower)
        if offset >= 0:
            values = network.softmax.target_log_probs(hidden.flatten(0, 1), batch.targets.flatten())
            for start, row in zip(starts, values.view(streams, length).double().numpy(), strict=True):
                scores[start : start + length] = row
    return scores


def _score_lines(
    network: LanguageNetwork, ids: Ids, reading: Reading, backward: bool, tower: int, size: int = 128
) -> np.ndarray:
    scores = np.empty(len(ids))
    ends = np.append(ids.documents[1:], len(ids))
    order = np.argsort(ends - ids.documents, kind="stable")  # lines of like length together
    for first in range(0, len(order), size):
        rows = order[first : first + size]
        batch = stack_lines(ids, rows, reading.start_id, backward)
        assert batch.lengths is not None
        hidden, _ = network.hidden_of_lines(batch.inputs, batch.lengths, labels=batch.labels, tower=tower)
        packed = pack_padded_sequence(batch.targets, batch.lengths, batch_first=True, enforce_sorted=False)
        values = packed._replace(data=network.softmax.target_log_probs(hidden, packed.data))
        table, _ = torch.nn.utils.rnn.pad_packed_sequence(values, batch_first=True)
        for row, line in zip(rows, table.double().numpy(), strict=True):
            found = line[: ends[row] - ids.documents[row]]
            scores[ids.documents[row] : ends[row]] = reverse_line(found) if backward else found
    return scores
