"""Where else a language model is in the state that a phrase puts it in: the same units on, or a state close by.

found = matches(elman.load("runs/shakespeare"), "To be, or not to be", "not to be", corpus="shakespeare.txt")
found.units, found.same_units[0].text, found.nearest[0].text

Units that are on throughout the phrase and off around it are what LSTMVis selects (Strobelt et al. 2018); here one may
be on below zero as well. The corpus is read a block at a time and only the best places are kept: it may be of any size.
Without one it is the text itself that is looked in.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from elman.batches.stream import IdStream
from elman.draw.panels import HeatMap, Note, Panel, Table, Token, Tokens
from elman.errors import UserError
from elman.inspect.features import decoded_pieces
from elman.inspect.methods import cut_panels
from elman.inspect.phrase import find_phrase
from elman.inspect.traces import TraceBlock, corpus_ids, encoded, label_place, trace_blocks
from elman.inspect.view import AnyModel, View
from elman.tasks.language import LanguageModel
from elman.tasks.traces import refusal, trace_text
from elman.train.recipe import Section

Floats = NDArray[np.float32]
MOST = 5000  # tokens of the text that are shown


class MatchesOptions(Section):
    """Which tokens, and where to look."""

    phrase: str | None = Field(None, description="START:STOP, tokens from 1, or a part of the text.")
    corpus: str | None = Field(None, min_length=1, description="A text file to look in; the text itself, if not given.")
    threshold: float = Field(0.3, gt=0, le=1000, description="A unit is on from this value, or from minus this value.")
    layer: int | None = Field(None, ge=1, description="From 1; the last, if not given.")
    part: str = Field("h", description="A letter of the cell's equation: h, c, i, f, o, g, r, z, n.")
    count: int = Field(20, ge=1, le=10_000, description="Places that are shown, at most.")
    context: int = Field(10, ge=0, le=1000, description="Tokens shown before and behind each.")
    label: str | None = Field(None, description="What a model with labels is told.")


@dataclass(frozen=True)
class Match:
    """A place in the corpus."""

    start: int
    stop: int
    """Its tokens, from 0; `stop` is left out."""
    score: float
    """How many tokens long the units are on; or the cosine of the two states."""
    before: str
    text: str
    behind: str


@dataclass(frozen=True)
class Matches:
    """The units that a phrase turns on, where else they are on, and where the state is close by."""

    tokens: list[str]
    start: int
    stop: int
    """The phrase in tokens, from 0; `stop` is left out."""
    part: str
    threshold: float
    units: list[int]
    """On throughout the phrase, and off at the tokens before and behind it."""
    signs: list[int]
    """1 for a unit that is on above the threshold, -1 for one that is on below minus the threshold."""
    activations: list[list[float]]
    """Of these units, a number for each token."""
    same_units: list[Match]
    """Where all of them are on, the longest first; where the phrase turns no unit on, there are none."""
    nearest: list[Match]
    """Where the state is nearest to that at the end of the phrase, by its cosine."""
    looked_at: int
    """Tokens of the corpus."""
    words: bool
    """Whether tokens are words."""
    cut: int = 0
    """Tokens of the text behind these, which are left out."""


def matches(
    model: LanguageModel,
    text: str,
    phrase: str,
    corpus: str | Path | None = None,
    *,
    threshold: float = 0.3,
    layer: int | None = None,
    part: str = "h",
    count: int = 20,
    context: int = 10,
    label: str | None = None,
) -> Matches:
    """Places in a corpus, or in the text itself, where a model is as it is in a part of the text."""
    whole = trace_text(model, text, label)
    trace = whole.shortened(MOST)
    name, values = trace.part(layer, part)
    pieces = decoded_pieces(model.tokenizer, encoded(model, text).tolist())[:MOST]  # with their blanks
    start, stop = find_phrase(pieces, phrase, spaced=False)
    backward = model.settings.direction == "backward"
    signs = np.sign(values[start])  # H
    on = values * signs >= threshold  # T x H
    around = [place for place in (start - 1, stop) if 0 <= place < len(on)]
    units = np.flatnonzero(on[start:stop].all(axis=0) & ~on[around].any(axis=0))
    signs = signs[units]
    ids = _own_ids(model, text, label) if corpus is None else corpus_ids(model, corpus, label)
    last = start if backward else stop - 1  # the token of the phrase that is read last
    same, nearest = _Longest(count), _Nearest(count, values[last])
    for block in trace_blocks(model, ids, [name]):
        same.look(block, block.parts[name][:, units] * signs >= threshold)
        nearest.look(block, block.parts[name])
    return Matches(
        trace.tokens,
        start,
        stop,
        name,
        threshold,
        units.tolist(),
        signs.astype(int).tolist(),
        values[:, units].T.tolist(),
        [_match(model, ids, *place, context) for place in same.best()],
        [_match(model, ids, *place, context) for place in nearest.best()],
        len(ids),
        model.tokenizer.settings.kind == "words",
        len(whole.tokens) - len(trace.tokens),
    )


def _own_ids(model: LanguageModel, text: str, label: str | None) -> IdStream:
    labels = [label_place(model, label)] if model.labels else None
    return IdStream(encoded(model, text).astype(np.uint32), labels=labels)


Place = tuple[int, int, float]
"""From, to, and the score."""


class _Longest:
    """The longest runs of tokens at which all units are on, over all blocks."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.heap: list[tuple[int, int, int]] = []  # length, minus the first place, the last
        self.open: tuple[int, int] | None = None  # first and last place of a run that may go on in the next block

    def look(self, block: TraceBlock, on: NDArray[np.bool_]) -> None:
        """Go on with one more block (N x U)."""
        places = block.places[on.all(axis=1)] if on.shape[1] else block.places[:0]
        for run in np.split(places, np.flatnonzero(np.abs(np.diff(places)) != 1) + 1):
            if not len(run):
                continue
            low, high = int(run.min()), int(run.max())
            if self.open is not None and (self.open[1] == low - 1 or high + 1 == self.open[0]):
                low, high = min(low, self.open[0]), max(high, self.open[1])
            else:
                self._close()
            self.open = (low, high)

    def _close(self) -> None:
        if self.open is not None:
            low, high = self.open
            _push(self.heap, (high - low + 1, -low, high), self.count)
            self.open = None

    def best(self) -> list[Place]:
        """The longest first."""
        self._close()
        return [(-low, high + 1, float(length)) for length, low, high in sorted(self.heap, reverse=True)]


class _Nearest:
    """The places whose state has the largest cosine with a given one, over all blocks."""

    def __init__(self, count: int, state: Floats) -> None:
        self.count, self.state = count, state / (np.linalg.norm(state) or 1.0)
        self.heap: list[tuple[float, int]] = []  # cosine, minus the place

    def look(self, block: TraceBlock, states: Floats) -> None:
        """Go on with one more block (N x H)."""
        cosines = states @ self.state / np.maximum(np.linalg.norm(states, axis=1), 1e-12)
        for row in np.argsort(-cosines, kind="stable")[: self.count].tolist():
            _push(self.heap, (float(cosines[row]), -int(block.places[row])), self.count)

    def best(self) -> list[Place]:
        """The nearest first."""
        return [(-place, -place + 1, cosine) for cosine, place in sorted(self.heap, reverse=True)]


def _push(heap: list[Any], entry: Any, count: int) -> None:
    """Keep an entry if it is among the largest."""
    if len(heap) < count:
        heapq.heappush(heap, entry)
    else:
        heapq.heappushpop(heap, entry)


def _match(model: LanguageModel, ids: IdStream, start: int, stop: int, score: float, context: int) -> Match:
    """A place with what stands around it."""
    first, last = max(0, start - context), min(len(ids), stop + context)
    pieces = decoded_pieces(model.tokenizer, ids.read(first, last).tolist())
    before, text, behind = pieces[: start - first], pieces[start - first : stop - first], pieces[stop - first :]
    return Match(start, stop, score, "".join(before), "".join(text), "".join(behind))


class MatchesView(View[Matches]):
    """Where else a model is as it is in a phrase."""

    name = "matches"
    about = "the units that a part of the text turns on, and where else they are on or the state is near"
    Options = MatchesOptions

    def refusal(self, model: AnyModel) -> str | None:
        """N-grams and windows have no states."""
        return refusal(model)

    def compute(self, model: AnyModel, texts: Sequence[str], options: MatchesOptions) -> list[Matches]:
        """The places of the corpus that match a phrase, for each text."""
        if options.phrase is None:
            raise UserError("say which part of the text: give phrase as a part of it, or as START:STOP in tokens")
        asked = options.model_dump()
        return [matches(cast(LanguageModel, model), text, **asked) for text in texts]

    def panels(self, data: Matches) -> list[Panel]:
        """The phrase, its units, and the places found."""
        tokens = [
            Token(token, float(data.start <= place < data.stop), marked=data.start <= place < data.stop)
            for place, token in enumerate(data.tokens)
        ]
        shown: list[Panel] = [Tokens("the part that is looked for", tokens, "sequential", spaced=data.words)]
        if data.units:
            names, top = [f"{data.part} {unit}" for unit in data.units], float(np.abs(data.activations).max()) or 1.0
            title = "units that are on in it and off around it"
            shown.append(HeatMap(title, data.activations, names, data.tokens, "diverging", -top, top))
        else:
            shown.append(
                Note(
                    "units that are on in it and off around it",
                    f"There are none at a threshold of {data.threshold:g}: lower it, or take another part.",
                )
            )
        note = f"In {data.looked_at:,} tokens."
        return [
            *shown,
            *cut_panels(data.cut, len(data.tokens)),
            _table("where the same units are on", "tokens", data.same_units, note),
            _table("where the state is nearest", "cosine", data.nearest, note),
        ]


def _table(title: str, score: str, found: Sequence[Match], note: str) -> Table:
    rows = [[str(one.start), f"{one.score:.4g}", one.before, one.text, one.behind] for one in found]
    return Table(title, ["place", score, "before", "text", "behind"], rows, note)
