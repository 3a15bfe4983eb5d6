"""How predictable a text is to a language model: the rank of every token among all that could have stood there.

found = ranks(elman.load("runs/shakespeare"), "To be, or not to be")
found.tokens[3].rank, found.tokens[3].alternatives
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
from pydantic import Field

from elman.batches.ids import line_ids
from elman.draw.panels import Bars, Line, Lines, Note, Panel, Table, Token, Tokens
from elman.errors import UserError
from elman.inspect.calibration import Placed, RankCalibration, bucket_of, calibrate
from elman.inspect.distributions import Distributions, Floats, distributions
from elman.inspect.methods import cut_panels
from elman.inspect.traces import encoded, label_place
from elman.inspect.view import AnyModel, View
from elman.metrics.perplexity import perplexity
from elman.records.records import Record
from elman.tasks.language import LanguageModel
from elman.train.recipe import Section

BUCKETS = ("10", "100", "1000", "beyond")
LEGEND = ("among the 10 likeliest", "to the 100th", "to the 1000th", "beyond")
BINS = 10
MOST = 50_000  # tokens that are ranked

Length = Annotated[int, Field(ge=5, le=10_000)]


class RanksOptions(Section):
    """What can be asked of the ranks."""

    label: str | None = Field(None, description="What a model with labels is told.")
    against: str | None = Field(
        None,
        min_length=1,
        description="A held-out file of people's text: measures how well ranks tell the model's texts from it.",
    )
    lengths: tuple[Length, ...] = Field(
        (25, 50, 100, 200), min_length=1, description="Tokens of the texts that are told apart."
    )
    runs: int = Field(100, ge=20, le=100_000, description="Texts of each side, at most.")
    temperature: float = Field(1.0, gt=0, le=100, description="Of what the model writes to be told apart.")
    seed: int = Field(0, ge=0, lt=2**63, description="Of what is random.")
    cache: bool = Field(False, description="Late words of the text are remembered as it is read.")
    adapt: bool = Field(False, description="The model learns from the text as it reads it.")
    read: str | None = Field(
        None, min_length=1, description="A file that the model gets used to first, with --cache or --adapt."
    )
    adapt_from: str | None = Field(
        None, min_length=1, description="A file to measure gradients on for --adapt, if the training text is gone."
    )


@dataclass(frozen=True)
class OtherToken:
    """A token that could have stood there, and its probability."""

    token: str
    probability: float


@dataclass(frozen=True)
class RankedToken:
    """A token of a text, and what the model thought of it."""

    token: str
    rank: int
    """1 for the likeliest."""
    probability: float
    log_prob: float
    """In nats, as `LanguageModel.score` gives it."""
    entropy: float
    """Of the distribution that it stood in, in nats."""
    relative: float
    """Its probability over that of the likeliest token."""
    alternatives: list[OtherToken]
    """The ten likeliest tokens."""


@dataclass(frozen=True)
class Histogram:
    """How many numbers lie in each bin; bin i goes from edge i to edge i + 1."""

    edges: list[float]
    counts: list[int]


@dataclass(frozen=True)
class Ranks:
    """How predictable a text is to a model, token by token."""

    tokens: list[RankedToken]
    buckets: dict[str, int]
    """How many tokens were among the 10, 100, 1000 likeliest, and beyond."""
    relative: Histogram
    """Of each token's probability over that of the likeliest."""
    entropies: Histogram
    log_prob: float
    """The mean over the tokens, in nats."""
    perplexity: float
    entropy: float
    """The mean over the tokens, in nats."""
    words: bool
    """Whether tokens are words."""
    calibration: RankCalibration | None = None
    placed: Placed | None = None
    """Where the text stands by the calibration; None where there is none, or the text is too short for it."""
    cut: int = 0
    """Tokens behind these, which are left out."""


def ranks(model: LanguageModel, text: str, label: str | None = None) -> Ranks:
    """The rank, the probability and the likeliest alternatives of every token of a text."""
    return _ranks(model, text, label)[0]


def _ranks(model: LanguageModel, text: str, label: str | None) -> tuple[Ranks, Distributions]:
    encoded(model, text)
    if label is not None or model.labels:
        label_place(model, label)
    ids, _, _ = line_ids([Record(text, label)], model.tokenizer, model.labels or None)
    if model.reading.unit == "stream":  # a running text has no end of its own
        ids = ids.view(0, len(ids) - 1)
    cut = max(0, len(ids) - MOST)
    ids = ids.view(0, len(ids) - cut) if cut else ids
    seen, tokens = distributions(model, ids), model.tokenizer.tokens
    names = [tokens[id] for id in ids.read(0, len(ids)).tolist()]
    counts = np.bincount(bucket_of(seen.ranks), minlength=len(BUCKETS))
    each = [_ranked(name, seen, place, tokens) for place, name in enumerate(names)]
    mean = float(seen.log_probs.mean())
    found = Ranks(
        each,
        dict(zip(BUCKETS, counts.tolist(), strict=True)),
        _histogram(seen.relative, 1.0),
        _histogram(seen.entropies, math.log(len(tokens))),
        mean,
        perplexity(-mean),
        float(seen.entropies.mean()),
        model.tokenizer.settings.kind == "words",
        cut=cut,
    )
    return found, seen


def _ranked(name: str, seen: Distributions, place: int, tokens: Sequence[str]) -> RankedToken:
    best = zip(seen.best_ids[place].tolist(), seen.best_probabilities[place].tolist(), strict=True)
    return RankedToken(
        name,
        int(seen.ranks[place]),
        math.exp(seen.log_probs[place]),
        float(seen.log_probs[place]),
        float(seen.entropies[place]),
        float(seen.relative[place]),
        [OtherToken(tokens[id], p) for id, p in best],
    )


def _histogram(values: Floats, top: float) -> Histogram:
    """In equal bins from 0 to `top`; what rounding puts outside is counted at the ends."""
    counts, edges = np.histogram(np.clip(values, 0.0, top), bins=BINS, range=(0.0, top))
    return Histogram(edges.tolist(), counts.tolist())


class RanksView(View[Ranks]):
    """Every token by its rank."""

    name = "ranks"
    about = "how predictable a text is to this model: the rank of every token among all that could have stood there"
    Options = RanksOptions

    def compute(self, model: AnyModel, texts: Sequence[str], options: RanksOptions) -> list[Ranks]:
        """The ranks of each text; with `against`, how well ranks tell the model's texts from people's as well."""
        language = _adapted(cast(LanguageModel, model), options)
        found = [_ranks(language, text, options.label) for text in texts]
        if options.against is None:
            return [one for one, _ in found]
        asked: dict[str, Any] = options.model_dump(include={"label", "runs", "temperature", "seed"})
        calibration, judges = calibrate(language, options.against, options.lengths, **asked)
        placed = [
            next((judge.place(seen) for judge in judges[::-1] if judge.score.length <= len(seen.ranks)), None)
            for _, seen in found
        ]
        return [
            replace(one, calibration=calibration, placed=place) for (one, _), place in zip(found, placed, strict=True)
        ]

    def panels(self, data: Ranks) -> list[Panel]:
        """The text in the colours of the buckets, the histograms, and the calibration where there is one."""
        every = len(data.tokens)
        tokens = [Token(one.token, float(bucket_of(np.array([one.rank]))[0]), _tip(one)) for one in data.tokens]
        note = (
            f"{every} tokens, perplexity {data.perplexity:.2f}, mean log-probability {data.log_prob:.3f} nats, "
            f"mean entropy {data.entropy:.3f} nats"
        )
        return [
            *cut_panels(data.cut, every),
            Tokens("ranks", tokens, scale="buckets", legend=LEGEND, spaced=data.words, note=note),
            Bars("tokens by rank", LEGEND, list(data.buckets.values()), unit="tokens"),
            _bars("probability over that of the likeliest token", data.relative),
            _bars("entropy of the distribution, in nats", data.entropies),
            *_calibration_panels(data),
        ]


def _adapted(model: LanguageModel, options: RanksOptions) -> LanguageModel:
    """The model, or one that gets used to what it reads."""
    from elman.tasks.adapting import adapting, text_ids

    if not options.cache and not options.adapt:
        if (other := options.read or options.adapt_from) is not None:
            raise UserError(f"{other} is read by a model that adapts: ask for cache, adapt or both")
        return model
    if options.against is not None:
        raise UserError("the texts of against are told apart by the model as it was trained: leave out cache and adapt")
    made = adapting(model, cache=options.cache, adapt=options.adapt, adapt_from=options.adapt_from)
    return made if options.read is None else made.follow(text_ids(made, Path(options.read)))


def _tip(one: RankedToken) -> dict[str, str]:
    shown = {
        "rank": f"{one.rank:,}",
        "probability": f"{one.probability:.4g}",
        "log-probability": f"{one.log_prob:.3f}",
        "entropy": f"{one.entropy:.3f}",
    }
    likeliest = {
        f"{place}. {other.token!r}": f"{other.probability:.4g}" for place, other in enumerate(one.alternatives, 1)
    }
    return shown | likeliest


def _bars(title: str, found: Histogram) -> Bars:
    names = [f"{low:.2g} to {high:.2g}" for low, high in zip(found.edges, found.edges[1:], strict=False)]
    return Bars(title, names, found.counts, unit="tokens")


def _calibration_panels(data: Ranks) -> list[Panel]:
    found = data.calibration
    if found is None:
        return []
    lengths, aucs = [one.length for one in found.scores], [one.auc for one in found.scores]
    low, high = ([one.auc + sign * one.error for one in found.scores] for sign in (-1, 1))
    rows = [[str(one.length), f"{one.auc:.3f}", f"{one.error:.3f}", str(one.pieces)] for one in found.scores]
    skipped = "".join(f" Texts of {length} tokens need a file of {need:,}." for length, need in found.skipped.items())
    note = (
        f"The model wrote texts like those of {found.file} (temperature {found.temperature:g}, seed {found.seed}). A "
        f"logistic regression on ranks learned from half of both to tell them apart; the rest measured it.{skipped}"
    )
    shown: list[Panel] = [
        Table("how well ranks tell the model's texts from people's", ["tokens", "AUC", "error", "texts"], rows, note),
        Lines(
            "area under the ROC curve by length", [Line("AUC", lengths, aucs, low, high)], "tokens", "AUC", log_x=True
        ),
    ]
    if data.placed is not None:
        one = data.placed
        shown.append(
            Note(
                "where this text stands",
                f"By its first {one.length} tokens: {one.people:.0%} of people's held-out texts are at least as much "
                f"like the model's own as this one, and {one.model:.0%} of the model's own are.",
            )
        )
    return shown
