"""Hidden states and gates of every layer while a language model reads a corpus of any size, a block at a time."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from elman.batches.batches import Ids
from elman.batches.ids import line_stream_ids
from elman.batches.stream import IdStream
from elman.errors import UserError, nearest
from elman.ragged import Ragged
from elman.records.records import RecordFiles
from elman.tasks.language import LanguageModel, LanguageRecipe
from elman.tasks.sections import column
from elman.tasks.task import Source
from elman.tasks.traces import Floats, Ints, named_parts
from elman.train.recipe import parse

CANDIDATES = ("g", "n")
"""Letters of a trace that are no gates: what is written into a state, from -1 to 1."""
BLOCK = 1024  # tokens of a corpus that are held at once


def encoded(model: LanguageModel, text: str) -> Ints:
    """The ids of a text; refused where there are none."""
    ids = model.tokenizer.encode(text)
    if not len(ids):
        raise UserError(f"the text {text[:30]!r} has no tokens that the model knows: give it some words")
    return ids


@dataclass(frozen=True)
class TraceBlock:
    """Some tokens of a corpus as they are read, and what the units did after each of them (each part N x H)."""

    ids: Ints
    places: Ints
    """Where each stands in the corpus; a model that reads backwards comes to the last ones first."""
    parts: dict[str, Floats]


def corpus_ids(model: LanguageModel, path: str | Path, label: str | None = None) -> IdStream:
    """A file or folder of text as ids on disk, read as the model reads; with `label`, all of it has that one."""
    from elman.tasks import TASKS

    recipe = parse(LanguageRecipe, model.recipe, where="the model's config.json")
    if label is None and not model.labels:
        with _decoding(recipe.data.encoding):
            found: Any = TASKS["lm"].read_set(model, recipe, Source([Path(path)]), str(path), lambda line: None)
        return cast(IdStream, found)
    place, data = label_place(model, label), recipe.data
    files = RecordFiles([Path(path)], column(data.text_column), None, data.encoding)
    with _decoding(data.encoding):
        ids = line_stream_ids(files, model.tokenizer, [])[0]
    ids.labels = np.full(len(ids.documents), place)
    return ids


@contextmanager
def _decoding(encoding: str) -> Iterator[None]:
    """A corpus is read in the encoding of the model's own texts: one in another has to be converted."""
    try:
        yield
    except UserError as error:
        if not isinstance(error.__cause__, UnicodeError):
            raise
        told = str(error).rpartition(": ")[0]
        raise UserError(f"{told}: convert the file to {encoding.upper()}") from None


def label_place(model: LanguageModel, label: str | None) -> int:
    """The number of a label; one that the model does not know, or needs and is not given, is told."""
    if label is not None and not model.labels:
        raise UserError(f"this model knows no labels, so '{label}' means nothing to it: leave the label out")
    if label is None:
        raise UserError(f"this model reads by label: give one of {', '.join(model.labels)}")
    if label not in model.labels:
        raise UserError(f"the model does not know the label '{label}': {nearest(label, model.labels)}")
    return model.labels.index(label)


def trace_blocks(model: LanguageModel, ids: Ids, names: Sequence[str] | None = None) -> Iterator[TraceBlock]:
    """States and gates for ids of any number, a block at a time, in the order in which the model reads them.

    A long document is read in several blocks, its state carried on; short ones are read side by side. `names` are the
    parts that are wanted ("2.c"), or their letters ("c"); all, if not given.
    """
    import torch

    group: list[Stretch] = []
    with torch.inference_mode(), model.evaluating():
        for document in _documents(model, ids):
            if len(document) > BLOCK:
                yield from _long_block(model, document, names)
                continue
            group.append(document)
            if sum(map(len, group)) >= BLOCK:
                yield _short_blocks(model, group, names)
                group = []
        if group:
            yield _short_blocks(model, group, names)


def whole_parts(blocks: Iterable[TraceBlock]) -> dict[str, Floats]:
    """The parts of all blocks together, in the order of the corpus, however it was read."""
    every = list(blocks)
    order = np.argsort(np.concatenate([block.places for block in every]))
    return {name: np.concatenate([block.parts[name] for block in every])[order] for name in every[0].parts}


@dataclass(frozen=True)
class Stretch:
    """A stretch of a corpus that is read with a fresh state, forwards or backwards."""

    ids: Ids
    start: int
    stop: int
    backward: bool
    label: int | None
    ended: bool
    """Whether an end token stands at its end, which comes last also where it is read backwards."""

    def __len__(self) -> int:
        return self.stop - self.start

    def read(self, first: int, last: int) -> tuple[Ints, Ints]:
        """The tokens that are read as the ones from `first` up to `last`, and where they stand."""
        if not self.backward:
            low, high = self.start + first, self.start + last
            return self.ids.read(low, high), np.arange(low, high)
        size = len(self) - self.ended  # without the end token, which is read last here as well
        low, high = self.start + size - min(last, size), self.start + size - min(first, size)
        ids, places = self.ids.read(low, high)[::-1].copy(), np.arange(low, high)[::-1]
        if last <= size:
            return ids, places
        end = self.stop - 1
        return np.append(ids, self.ids.read(end, self.stop)), np.append(places, end)


def _documents(model: LanguageModel, ids: Ids) -> Iterator[Stretch]:
    backward, whole = model.settings.direction == "backward", model.reading.documents(ids) is None
    bounds = [(0, len(ids))] if whole else zip(ids.documents.tolist(), ids.document_ends.tolist(), strict=True)
    labels = ids.labels
    for number, (start, stop) in enumerate(bounds):
        if start < stop:
            ended = bool(ids.read(stop - 1, stop)[0] == model.tokenizer.eos_id)
            yield Stretch(ids, start, stop, backward, None if labels is None else int(labels[number]), ended)


def _long_block(model: LanguageModel, document: Stretch, names: Sequence[str] | None) -> Iterator[TraceBlock]:
    """The blocks of one document, the state carried from each to the next."""
    import torch

    body, state = cast(Any, model.network.bodies[0]), None
    labels = None if document.label is None else torch.tensor([document.label])
    for first in range(0, len(document), BLOCK):
        ids, places = document.read(first, min(first + BLOCK, len(document)))
        fed = ids if first else np.append(model.reading.start_id, ids)  # what stands before a text is read as well
        trace = body.trace(model.network.embed(torch.from_numpy(fed).unsqueeze(0), labels), state)
        state, extra = trace.state, len(fed) - len(ids)
        yield TraceBlock(ids, places, {name: part[extra:] for name, part in named_parts(body, trace, names).items()})


def _short_blocks(model: LanguageModel, documents: list[Stretch], names: Sequence[str] | None) -> TraceBlock:
    """Some documents side by side, one behind the other in the block."""
    import torch
    from torch.nn.utils.rnn import pack_padded_sequence

    body, read = cast(Any, model.network.bodies[0]), [document.read(0, len(document)) for document in documents]
    fed = Ragged.of([np.append(model.reading.start_id, ids) for ids, _ in read])
    numbers = [document.label for document in documents]
    labels = None if None in numbers else torch.tensor(numbers)
    embedded = model.network.embed(torch.from_numpy(fed.padded()), labels)  # B x T x E
    packed = pack_padded_sequence(embedded, torch.from_numpy(fed.lengths), batch_first=True, enforce_sorted=False)
    found = named_parts(body, body.trace(packed), names)
    # Packed rows go from step to step, the longest document first: back to one document behind the other.
    order, lengths = cast(Any, packed.sorted_indices).numpy(), fed.lengths
    starts = np.cumsum(packed.batch_sizes.numpy()) - packed.batch_sizes.numpy()
    rank = np.argsort(order)
    rows = np.concatenate([starts[1:length] + rank[number] for number, length in enumerate(lengths)])
    ids, places = (np.concatenate(parts) for parts in zip(*read, strict=True))
    return TraceBlock(ids, places, {name: part[rows] for name, part in found.items()})
