"""What a language model thought of every token of encoded text: its rank, and the distribution that it stood in.

Text is read by the same path as `LanguageModel.log_probs` reads it, so the log-probabilities are the same to the last
digit; of each distribution only a summary is kept, so that a vocabulary of any size does.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elman.batches.batches import Ids, StreamWindows, WholeLines
from elman.tasks.adapting import AdaptingModel
from elman.tasks.language import LanguageModel
from elman.tasks.reading import Reading

if TYPE_CHECKING:
    from torch import Tensor

    from elman.baselines.kneser_ney import KneserNey
    from elman.nn.cache import ContinuousCache
    from elman.nn.language import LanguageNetwork
    from elman.runtime import Engine

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BEST = 10  # of each distribution, that are kept
HELD = 1 << 22  # log-probabilities that are held at once


@dataclass(frozen=True)
class Distributions:
    """N tokens, and of the distribution that each stood in what is looked at."""

    log_probs: Floats
    """In nats."""
    ranks: Ints
    """1 for the likeliest; equally likely tokens share the better rank."""
    entropies: Floats
    """Of the whole distribution, in nats."""
    relative: Floats
    """The token's probability over that of the likeliest."""
    best_ids: Ints
    """N x K, the likeliest first."""
    best_probabilities: Floats
    """N x K."""

    @classmethod
    def of(cls, rows: NDArray[Any], targets: Ints, log_probs: Floats) -> "Distributions":
        """From the whole distributions: log-probabilities of every token (N x V).

        >>> seen = Distributions.of(np.log([[0.5, 0.25, 0.25]]), np.array([2]), np.log([0.25]))
        >>> seen.ranks.tolist(), seen.relative.tolist(), seen.best_ids.tolist()
        ([2], [0.5], [[0, 1, 2]])
        """
        own = np.take_along_axis(rows, targets[:, None], axis=1)  # N x 1
        exact = rows.astype(np.float64)
        probabilities = np.exp(exact)
        surprise = np.multiply(probabilities, exact, out=np.zeros_like(exact), where=probabilities > 0)
        kept = min(BEST, rows.shape[1])
        best = np.argpartition(-rows, kept - 1, axis=1)[:, :kept]  # N x K, in any order
        values = np.take_along_axis(rows, best, axis=1)
        order = np.lexsort((best, -values), axis=1)  # equally likely ones by their id
        best = np.take_along_axis(best, order, axis=1)
        top = np.take_along_axis(probabilities, best, axis=1)
        return cls(
            log_probs,
            (rows > own).sum(axis=1) + 1,
            np.maximum(-surprise.sum(axis=1), 0.0),
            np.exp(own[:, 0].astype(np.float64)) / top[:, 0],
            best,
            top,
        )

    def take(self, places: Ints) -> "Distributions":
        """Those of some tokens."""
        return Distributions(*(getattr(self, field.name)[places] for field in fields(self)))

    @classmethod
    def join(cls, parts: "list[Distributions]") -> "Distributions":
        """One behind the other."""
        columns = ([getattr(part, field.name) for part in parts] for field in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))


def distributions(
    model: LanguageModel, ids: Ids, reading: Reading | None = None, *, backward: bool | None = None
) -> Distributions:
    """Of every token of encoded text, in the order of the text; of a model that reads both ways, read forwards.

    `reading` and `backward` say how the ids are to be read where that is not how the model reads.
    """
    from elman.tasks.scoring import text_log_probs

    reading = reading or model.reading
    if isinstance(model, AdaptingModel):
        return _adapted(model, ids, reading)
    if model.ngrams is not None:
        return _counted(model.ngrams, ids, reading)
    turned = model.settings.direction == "backward" if backward is None else backward
    with model.evaluating() as network:
        in_integers = model.int8 is not None and model.backend != "torch"
        reader: Any = _EngineReader(model.engine()) if in_integers else _NetworkReader(network)
        places = text_log_probs(reader, ids, reading, backward=turned)
    return Distributions.join(reader.kept).take(places.astype(np.int64))


class _Kept:
    """What was seen of each token so far. A reader gives a token's number in it in the place of its log-probability."""

    def __init__(self) -> None:
        self.kept: list[Distributions] = []
        self._count = 0

    def keep(self, rows: NDArray[Any], targets: Ints, log_probs: Floats) -> Ints:
        """Add some tokens; their numbers."""
        self.kept.append(Distributions.of(rows, targets, log_probs))
        self._count += len(targets)
        return np.arange(self._count - len(targets), self._count)


def _adapted(model: AdaptingModel, ids: Ids, reading: Reading) -> Distributions:
    """By a model that gets used to the text: as it was when it read each token."""
    kept, softmax = _Kept(), model.network.softmax

    def look(hidden: "Tensor", targets: "Tensor", cache: "ContinuousCache | None") -> None:
        import torch

        with torch.no_grad():
            rows = softmax.log_probs(hidden).double().numpy()  # N x V
            if cache is not None:
                rows = cache.mixed(rows, cache.distributions(hidden, targets, softmax.vocab_size).double().numpy())
        own = targets.numpy()
        kept.keep(rows, own, np.take_along_axis(rows, own[:, None], axis=1)[:, 0])

    with model._following(0, reading, look) as follower:
        follower.read(ids)
        places = follower.in_text_order(np.arange(len(ids), dtype=np.float64), ids)
    return Distributions.join(kept.kept).take(places.astype(np.int64))


class _NetworkReader(_Kept):
    """Reads as `NetworkReader` of `elman.tasks.scoring` does."""

    def __init__(self, network: "LanguageNetwork") -> None:
        super().__init__()
        self.network = network

    def window(self, batch: StreamWindows, state: Any) -> tuple[Floats, Any]:
        """The number of each target (B x T), and the state after the window."""
        import torch

        from elman.tasks.scoring import hidden_and_targets

        with torch.no_grad():
            hidden, targets, state = hidden_and_targets(self.network, batch, state)
            return self._numbers(hidden, targets).reshape(batch.targets.shape).astype(np.float64), state

    def lines(self, batch: WholeLines) -> Floats:
        """The number of each target of whole lines (B x T)."""
        import torch
        from torch.nn.utils.rnn import pack_padded_sequence

        from elman.tasks.scoring import hidden_and_targets

        lengths = torch.from_numpy(batch.targets.lengths)
        places = torch.arange(len(lengths) * int(lengths.max())).view(len(lengths), -1)  # B x T
        packed = pack_padded_sequence(places, lengths, batch_first=True, enforce_sorted=False)
        with torch.no_grad():
            hidden, targets, _ = hidden_and_targets(self.network, batch, None)
            table = np.zeros(places.numel())
            table[packed.data.numpy()] = self._numbers(hidden, targets)
        return table.reshape(places.shape)

    def forget(self, state: Any, rows: Ints) -> Any:
        """The state with some rows put back to the beginning."""
        import torch

        return self.network.forget(state, torch.from_numpy(rows))

    def _numbers(self, hidden: "Tensor", targets: "Tensor") -> Ints:
        softmax = self.network.softmax
        log_probs = softmax.target_log_probs(hidden, targets).double().numpy()
        size = max(1, HELD // softmax.vocab_size)
        parts = (slice(first, first + size) for first in range(0, len(targets), size))
        return np.concatenate(
            [self.keep(softmax.log_probs(hidden[p]).numpy(), targets[p].numpy(), log_probs[p]) for p in parts]
        )


class _EngineReader(_Kept):
    """Reads as `EngineReader` of `elman.tasks.scoring` does, and once more step by step for the distributions."""

    def __init__(self, engine: "Engine") -> None:
        from elman.tasks.scoring import EngineReader

        super().__init__()
        self.engine, self.reader = engine, EngineReader(engine)
        self.forget = self.reader.forget

    def window(self, batch: StreamWindows, state: Any) -> tuple[Floats, Any]:
        """The number of each target (B x T), and the state after the window."""
        log_probs, after = self.reader.window(batch, state)
        begin = self.engine.start(len(batch.inputs)) if state is None else state
        return self._steps(batch.inputs, batch.targets, log_probs, begin, None, batch.resets), after

    def lines(self, batch: WholeLines) -> Floats:
        """The number of each target of whole lines (B x T)."""
        inputs, targets = (part.padded(batch.start_id) for part in (batch.inputs, batch.targets))
        begin = self.engine.start(len(inputs))
        return self._steps(inputs, targets, self.reader.lines(batch), begin, batch.labels, {})

    def _steps(
        self, inputs: Ints, targets: Ints, log_probs: Floats, state: Any, labels: Any, resets: dict[int, Ints]
    ) -> Floats:
        numbers = np.empty(targets.shape)
        for step in range(inputs.shape[1]):
            state = self.engine.forget(state, resets[step].tolist()) if step in resets else state
            rows, state = self.engine.step(inputs[:, step], state, labels)  # B x V
            numbers[:, step] = self.keep(rows, targets[:, step], log_probs[:, step])
        return numbers


def _counted(ngrams: "KneserNey", ids: Ids, reading: Reading) -> Distributions:
    """By an n-gram model."""
    documents = reading.documents(ids)
    tokens = ids.read(0, len(ids))
    log_probs = ngrams.log_probs(tokens, documents)
    starts = np.zeros(1, np.int64) if documents is None else np.append(0, documents)
    begins = starts[np.searchsorted(starts, np.arange(len(tokens)), side="right") - 1]
    # What is cut off of a context here is further back than the model looks.
    begins = np.maximum(begins, np.arange(len(tokens)) - ngrams.order)
    size = max(1, HELD // ngrams.vocab_size)
    parts = []
    for some in np.split(np.arange(len(tokens)), range(size, len(tokens), size)):
        rows = [np.log(ngrams.distribution(tokens[begins[place] : place].tolist())) for place in some]
        parts.append(Distributions.of(np.stack(rows), tokens[some], log_probs[some]))
    return Distributions.join(parts)
