"""Units that follow something that can be named: whether a quote is open, where in its line a token stands.

found = follow(elman.load("runs/shakespeare"), 'open:""', corpus="held-out.txt")
found.units[0], found.probe.found

Units are ranked on one half of the text and measured on the other: see `elman.inspect.probes`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import regex
from numpy.typing import NDArray
from pydantic import Field

from elman.draw.panels import Note, Panel, Table, Token, Tokens
from elman.errors import UserError, nearest
from elman.files import read_own_text
from elman.inspect.methods import cut_panels
from elman.inspect.probes import FEWEST, ON, Halves, Values, Verdict, check_enough
from elman.inspect.traces import corpus_ids, encoded, trace_blocks, whole_parts
from elman.inspect.view import AnyModel, View
from elman.tasks.language import LanguageModel
from elman.tasks.traces import STATES, refusal, trace_text
from elman.text import Tokenizer
from elman.train.recipe import Section

Floats = NDArray[np.float64]

KINDS = ("regex:", "open:", "line-position", "word-position", "labels:")
NAMES = 100  # of labels, at most
SECONDS = 10  # that a regular expression may take over a document
TOP = 10  # units that are named
SHOWN = 3  # units that are drawn
MOST = 5000  # tokens of a text that they are drawn for


class FeaturesOptions(Section):
    """What the units are to follow."""

    feature: str | None = Field(
        None,
        description='regex:PATTERN, open:() or open:"" (a bracket or quote is open), line-position, word-position, '
        "or labels:FILE with one a line for each token.",
    )
    corpus: str | None = Field(
        None, min_length=1, description="A text file to look at; the texts themselves, if not given."
    )
    tokens: int = Field(20_000, ge=FEWEST, le=1_000_000, description="Of the corpus, at most.")
    shuffles: int = Field(20, ge=5, le=1000, description="Times that the feature is moved along the text.")
    seed: int = Field(0, ge=0, lt=2**63, description="Of what is random.")
    label: str | None = Field(None, description="What a model with labels is told.")


@dataclass(frozen=True)
class Unit:
    """A unit, and how it goes with the feature."""

    part: str
    """Layer and letter: "2.c"."""
    unit: int
    """From 0."""
    correlation: float
    """On the half by which units are ranked; for more than two names the correlation ratio, which has no sign."""
    held_out: float
    """On the other half."""


@dataclass(frozen=True)
class Following:
    """What in a model follows a feature."""

    feature: str
    tokens: int
    """How many were looked at."""
    units: list[Unit]
    """Those that follow it most closely, the best first."""
    unit: Verdict
    """Of the best unit."""
    probe: Verdict
    """Of a linear probe over the states of all layers."""


@dataclass(frozen=True)
class Features:
    """A feature in one text, the units that follow it best, and how well they do."""

    tokens: list[str]
    values: list[float] | None
    """The feature at each token (1 and 0 for there and not); None where its labels are those of the corpus."""
    activations: list[list[float]]
    """Of the first few units of `following`, a number for each token."""
    following: Following
    words: bool
    """Whether tokens are words."""
    cut: int = 0
    """Tokens behind these, which are left out."""


# The feature


Reader = Callable[[Sequence[str]], Floats]
"""From the tokens of a document, as they stand in the text, to a number for each."""


def read_feature(spec: str | None) -> tuple[Reader, tuple[str, ...] | None]:
    """What computes a feature that is not one of labels, and its names where it has some.

    >>> read_feature("open:()")[0](["a", "(", "b", ")"]).tolist()
    [0.0, 1.0, 1.0, 0.0]
    >>> read_feature("regex:[aeiou]+")[0](["b", "oo", "ks"]).tolist()
    [0.0, 1.0, 0.0]
    """
    if not spec:
        raise UserError(f"say what units are to follow: feature is one of {', '.join(KINDS)}")
    kind, colon, rest = spec.partition(":")
    if spec == "regex:":
        raise UserError("the regular expression is empty: write one behind regex:, as in regex:[0-9]+")
    if kind == "regex" and colon:
        try:
            pattern = regex.compile(rest)
        except (regex.error, RecursionError, OverflowError) as error:
            raise UserError(f"the regular expression {rest!r} cannot be read: {error}") from None
        return lambda pieces: _matched(pattern, pieces), ON
    if kind == "open" and len(rest) == 2:
        return lambda pieces: _open(rest, pieces), ON
    if kind == "open" and colon:
        raise UserError(f"'{spec}' does not name what opens and what closes: write two characters, as in open:()")
    if spec == "line-position":
        return lambda pieces: _since("\n", pieces), None
    if spec == "word-position":
        return lambda pieces: _since(None, pieces), None
    raise UserError(f"there is no feature '{spec}': {nearest(spec, KINDS)}")


def _matched(pattern: "regex.Pattern[str]", pieces: Sequence[str]) -> Floats:
    """1 for tokens of which a character is in a match."""
    ends = np.cumsum([len(piece) for piece in pieces])
    inside = np.zeros(int(ends[-1]) + 1)
    try:
        for match in pattern.finditer("".join(pieces), timeout=SECONDS):
            inside[match.start() : match.end()] = 1
    except TimeoutError:
        raise UserError(
            f"the regular expression {pattern.pattern!r} takes too long on this text: simplify it"
        ) from None
    before = np.append(0, np.cumsum(inside))
    return np.asarray(before[ends] > before[np.append(0, ends[:-1])], np.float64)


def _open(pair: str, pieces: Sequence[str]) -> Floats:
    """1 where something that was opened is not closed yet after a token; an empty line ends a quote in any case."""
    opening, closing = pair[0], pair[1]
    depth, before, found = 0, "", np.zeros(len(pieces))
    for place, piece in enumerate(pieces):
        for character in piece:
            if opening == closing and character == opening:
                depth = 1 - depth
            elif opening == closing and before == character == "\n":
                depth = 0
            elif character in pair:
                depth = max(0, depth + (1 if character == opening else -1))
            before = character
        found[place] = depth > 0
    return found


def _since(mark: str | None, pieces: Sequence[str]) -> Floats:
    """How many tokens stand between a token and the last line end, or blank of any kind; 0 for that itself."""
    found, count = np.zeros(len(pieces)), 0
    for place, piece in enumerate(pieces):
        begins = piece[:1].isspace() if mark is None else mark in piece
        alone = begins and not piece.strip()
        count = 0 if alone else 1 if begins else count + 1
        found[place] = count
    return found


def label_file(feature: str) -> Path | None:
    """The file that a feature of labels names; None of any other feature.

    >>> str(label_file("labels:tags.txt")), label_file("line-position")
    ('tags.txt', None)
    """
    if feature == "labels:":
        raise UserError("the feature 'labels:' names no file: write one behind it, as in labels:tags.txt")
    name = feature.removeprefix("labels:")
    return Path(name) if name != feature else None


def read_labels(path: Path, tokens: int) -> Values:
    """One label a line for each token: numbers, or names."""
    lines = read_own_text(path).splitlines()
    if len(lines) != tokens:
        raise UserError(f"{path} has {len(lines):,} lines for {tokens:,} tokens: give one label for each")
    labels = [line.strip() for line in lines]
    names = tuple(sorted(set(labels)))
    numbers = _as_numbers(labels)
    if numbers is not None and len(names) > 2:
        return Values(numbers)
    if len(names) > NAMES:
        raise UserError(f"{path} has {len(names):,} different labels: give at most {NAMES}, or numbers")
    index = {name: number for number, name in enumerate(names)}
    return Values(np.array([index[label] for label in labels], np.float64), names)


def _as_numbers(labels: Sequence[str]) -> Floats | None:
    try:
        numbers = np.array(labels, np.float64)
    except ValueError:
        return None
    return numbers if np.isfinite(numbers).all() else None


def decoded_pieces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """What each of some ids stands for in their text; joined they are what `decode` gives."""
    stream = tokenizer.stream()
    pieces = [stream.push(id) for id in ids]
    return [*pieces[:-1], pieces[-1] + stream.finish()] if pieces else []


# The search


def follow(
    model: LanguageModel,
    feature: str,
    texts: str | Sequence[str] = (),
    *,
    corpus: str | Path | None = None,
    tokens: int = 20_000,
    shuffles: int = 20,
    seed: int = 0,
    label: str | None = None,
) -> Following:
    """The units that follow a feature in a corpus, or in some texts, and whether a held-out probe finds it."""
    texts = [texts] if isinstance(texts, str) else texts
    if not texts and corpus is None:
        raise UserError("there is nothing to look at: give at least one text, or a corpus")
    states, values, names = _seen(model, feature, texts, corpus, tokens, label)
    check_enough(values, feature)
    halves = Halves(states, values, np.random.default_rng(seed), shuffles)
    order = np.argsort(-np.abs(halves.known), kind="stable")[:TOP]
    places = [(name, unit) for name, size in names for unit in range(size)]
    chosen = [(*places[at], float(halves.known[at]), float(halves.held[at])) for at in order.tolist()]
    units = [Unit(part, unit, known, held) for part, unit, known, held in chosen]
    return Following(feature, len(values.numbers), units, halves.unit(), halves.probe())


def _seen(
    model: LanguageModel,
    feature: str,
    texts: Sequence[str],
    corpus: str | Path | None,
    most: int,
    label: str | None,
) -> tuple[NDArray[np.float32], Values, list[tuple[str, int]]]:
    """All states side by side (N x D), the feature (N), and which part has how many of the D units."""
    file = label_file(feature)
    reader = read_feature(feature) if file is None else None  # before anything is computed
    if corpus is None:
        traces = [trace_text(model, text, label) for text in texts]
        names = [name for name in traces[0].parts if name.split(".")[1] in STATES]
        parts = {name: np.concatenate([one.parts[name] for one in traces]) for name in names}
        each = [encoded(model, text) for text in texts]
        ids, starts = np.concatenate(each), np.cumsum([0, *map(len, each)])[:-1]
        labelled = len(ids)
    else:
        stream = corpus_ids(model, corpus, label)
        labelled, stream = len(stream), stream.view(0, min(len(stream), most))
        parts, ids = whole_parts(trace_blocks(model, stream, STATES)), stream.read(0, len(stream))
        found = model.reading.documents(stream)
        starts = np.zeros(1, np.int64) if found is None else found
    if file is not None:
        values = read_labels(file, labelled).take(slice(len(ids)))
    else:
        assert reader is not None
        documents = np.split(ids, starts[1:])
        numbers = [reader[0](decoded_pieces(model.tokenizer, one.tolist())) for one in documents if len(one)]
        values = Values(np.concatenate(numbers), reader[1])
    return np.concatenate(list(parts.values()), axis=1), values, [(name, part.shape[1]) for name, part in parts.items()]


# The view


class FeaturesView(View[Features]):
    """Units that follow what the user names."""

    name = "features"
    about = "units that follow a feature of the text, and whether a held-out probe finds it"
    Options = FeaturesOptions

    def refusal(self, model: AnyModel) -> str | None:
        """N-grams and windows have no states."""
        return refusal(model)

    def compute(self, model: AnyModel, texts: Sequence[str], options: FeaturesOptions) -> list[Features]:
        """What follows the feature, and the best of these units in each text."""
        language = cast(LanguageModel, model)
        asked = options.model_dump(exclude={"feature"})
        feature = options.feature or ""
        found = follow(language, feature, texts, **asked)
        file = label_file(feature)
        labels = read_labels(file, found.tokens) if file and options.corpus is None else None
        data, start = [], 0
        for text in texts:
            trace = trace_text(language, text, options.label)
            stop = start + len(trace.tokens)
            values = None if labels is None else labels.numbers[start:stop]
            if file is None:
                values = read_feature(feature)[0](decoded_pieces(language.tokenizer, encoded(language, text).tolist()))
            rows = [trace.parts[one.part][:MOST, one.unit].tolist() for one in found.units[:SHOWN]]
            words = language.tokenizer.settings.kind == "words"
            shown = None if values is None else values[:MOST].tolist()
            cut = max(0, len(trace.tokens) - MOST)
            data.append(Features(trace.tokens[:MOST], shown, rows, found, words, cut))
            start = stop
        return data

    def panels(self, data: Features) -> list[Panel]:
        """The verdicts, the feature in the text, the units in it, and the table of them."""
        found, values = data.following, data.values
        shown: list[Panel] = [Note("verdict", _sentence(found)), *cut_panels(data.cut, len(data.tokens))]
        if values is not None:
            top = max(map(abs, values)) or 1.0
            pairs = zip(data.tokens, values, strict=True)
            tokens = [Token(token, value / top, {found.feature: f"{value:g}"}) for token, value in pairs]
            shown.append(Tokens(found.feature, tokens, "sequential", ("0", f"{top:g}"), data.words))
        units = found.units[: len(data.activations)]
        for one, row in zip(units, data.activations, strict=True):
            top = max(map(abs, row)) or 1.0
            tokens = [
                Token(token, value / top, {f"{one.part} {one.unit}": f"{value:.3f}"})
                for token, value in zip(data.tokens, row, strict=True)
            ]
            title = f"unit {one.unit} of {one.part}, held-out correlation {one.held_out:.2f}"
            shown.append(Tokens(title, tokens, "diverging", (f"{-top:.2g}", f"{top:.2g}"), data.words))
        rows = [[one.part, str(one.unit), f"{one.correlation:.3f}", f"{one.held_out:.3f}"] for one in found.units]
        both = [("best unit", found.unit), ("probe", found.probe)]
        table = [
            [name, one.measure, f"{one.score:.3f}", f"{one.chance:.3f}", f"{one.best_of_chance:.3f}", _said(one)]
            for name, one in both
        ]
        columns = ["", "measure", "score", "chance", "best of chance", ""]
        return [
            *shown,
            Table("held-out scores", columns, table, f"Measured on half of {found.tokens:,} tokens."),
            Table("units by correlation", ["part", "unit", "correlation", "held out"], rows),
        ]


def _said(one: Verdict) -> str:
    return "found" if one.found else "not found"


def _sentence(found: Following) -> str:
    best = found.units[0]
    return (
        f"'{found.feature}' in the states of all layers by a linear probe: {_said(found.probe)} ({found.probe.measure} "
        f"{found.probe.score:.3f}, chance {found.probe.chance:.3f}). In a single unit: {_said(found.unit)} (unit "
        f"{best.unit} of {best.part}, held-out correlation {best.held_out:.3f})."
    )
