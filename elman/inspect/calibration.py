"""How well ranks tell what a language model writes from what people wrote: measured on a file of people's text.

The model continues stretches of the file, so that each of its texts has one of people beside it, of the same length and
after the same words. A logistic regression learns from half of these pairs to tell the two by their ranks; how well it
does on the other half is the area under its ROC curve: 0.5 is chance, 1 is never wrong.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elman.batches.batches import Ids
from elman.batches.stream import IdStream
from elman.decode import Sampling, generate
from elman.errors import UserError
from elman.inspect.distributions import Distributions, distributions
from elman.inspect.traces import corpus_ids, label_place
from elman.tasks.language import LanguageModel
from elman.tasks.traces import Ints

Floats = NDArray[np.float64]

BUCKETS = (10, 100, 1000)
CONTEXT = 25  # tokens of the file that both continue
FEWEST = 20  # runs of each side, half to learn from
RESAMPLES = 200


@dataclass(frozen=True)
class LengthScore:
    """How well texts of one length are told apart."""

    length: int
    """In tokens."""
    auc: float
    """The area under the ROC curve on texts that were held out."""
    error: float
    """Its standard error: the spread over resamples of those texts."""
    pieces: int
    """Texts of each side that it was measured on."""


@dataclass(frozen=True)
class RankCalibration:
    """How well ranks tell the model's texts from those of a file of people's text, for texts of several lengths."""

    file: str
    scores: list[LengthScore]
    skipped: dict[int, int]
    """Lengths for which the file is too short, and how many tokens they need."""
    temperature: float
    seed: int


@dataclass(frozen=True)
class Placed:
    """Where a text stands among the held-out texts of the calibration, by its first tokens."""

    length: int
    likeness: float
    """What the regression says: from 0, like people's texts in that file, to 1, like the model's."""
    people: float
    """The share of people's texts that are at least as much like the model's."""
    model: float
    """The same share of the model's own."""


def bucket_of(ranks: Ints) -> Ints:
    """0 for the ten likeliest tokens, 1 to the hundredth, 2 to the thousandth, 3 beyond.

    >>> bucket_of(np.array([1, 10, 11, 1000, 1001])).tolist()
    [0, 0, 1, 2, 3]
    """
    return np.searchsorted(BUCKETS, ranks).astype(np.int64)


def calibrate(
    model: LanguageModel,
    path: str | Path,
    lengths: Sequence[int],
    *,
    label: str | None = None,
    runs: int = 100,
    temperature: float = 1.0,
    seed: int = 0,
) -> tuple[RankCalibration, list["Judge"]]:
    """Measure how well ranks tell texts of the model from those of a file, and what judges a text of each length."""
    ids = corpus_ids(model, path, label)
    lined = model.reading.unit == "line"
    needed = {length: FEWEST * (length + (0 if lined else CONTEXT)) for length in sorted(set(lengths))}
    fitting = [length for length in needed if len(ids) >= needed[length]]
    if not fitting:
        raise UserError(
            f"{path} has {len(ids):,} tokens, too few to measure by: texts of {min(needed)} tokens need at least "
            f"{needed[min(needed)]:,}; give a longer file"
        )
    longest, sampling = fitting[-1], Sampling(temperature=temperature, seed=seed)
    write = _Writer(model, label, sampling)
    people, own = (_lines if lined else _continued)(model, ids, longest, runs, write)  # each R x longest
    judges = [Judge.fit(_pieces(people, length), _pieces(own, length), length, seed) for length in fitting]
    skipped = {length: tokens for length, tokens in needed.items() if length not in fitting}
    return RankCalibration(str(path), [judge.score for judge in judges], skipped, temperature, seed), judges


Runs = tuple[Floats, Floats, Ints]
"""Log-probabilities, entropies and buckets of some runs of tokens, each R x T."""


def _continued(model: LanguageModel, ids: Ids, longest: int, runs: int, write: "_Writer") -> tuple[Runs, Runs]:
    """Stretches of running text, and what the model writes in their place."""
    size = CONTEXT + longest
    count = min(runs, len(ids) // size)
    starts = np.linspace(0, len(ids) - size, count).astype(np.int64)
    step = -1 if model.settings.direction == "backward" else 1
    people = np.stack([ids.read(int(start), int(start) + size)[::step] for start in starts])  # R x (C + T)
    prompts = [[model.reading.start_id, *row[:CONTEXT].tolist()] for row in people]
    written = np.stack(write(prompts, longest, ends=False))  # R x T
    own = np.concatenate([people[:, :CONTEXT], written], axis=1)
    return tuple(_runs(_seen(model, list(rows), write.label), count, size, CONTEXT) for rows in (people, own))  # type: ignore[return-value]


def _lines(model: LanguageModel, ids: Ids, longest: int, runs: int, write: "_Writer") -> tuple[Runs, Runs]:
    """Lines of a file, and as many tokens of lines that the model writes; runs go over several short lines."""
    count = min(runs, len(ids) // longest)
    step = -1 if model.settings.direction == "backward" else 1
    order = np.random.default_rng(write.sampling.seed).permutation(len(ids.documents))  # lines may be sorted
    lengths = np.cumsum((ids.document_ends - ids.documents)[order])
    people: list[Ints] = []
    for place in order[: int(np.searchsorted(lengths, count * longest)) + 1].tolist():
        line = ids.read(int(ids.documents[place]), int(ids.document_ends[place]))
        people.append(np.append(line[:-1][::step], line[-1:]))
    own: list[Ints] = []
    room = 2 * max(map(len, people))
    while sum(map(len, own)) < count * longest:
        own += write([[model.reading.start_id]] * len(people), room, ends=True, first=len(own))
    return tuple(_runs(_seen(model, lines, write.label), count, longest, 0) for lines in (people, own))  # type: ignore[return-value]


class _Writer:
    """The model writing ids after ids."""

    def __init__(self, model: LanguageModel, label: str | None, sampling: Sampling) -> None:
        self.model, self.label, self.sampling = model, label, sampling

    def __call__(self, prompts: list[list[int]], length: int, *, ends: bool, first: int = 0) -> list[Ints]:
        """What follows each of some prompts: so many ids, or up to the end token and that."""
        model, end = self.model, self.model.tokenizer.eos_id
        options: dict[str, Any] = {"length": length, "stop_ids": {end} if ends else (), "first_stream": first}
        options["suppress"] = model.tokenizer.unwritten
        if model.backend != "torch" and model.refusal() is None:
            place = label_place(model, self.label) if model.labels else None
            steps = model.engine().generate(prompts, label=place, **asdict(self.sampling), **options)
        else:
            steps = generate(model.stepper(self.label), prompts, sampling=self.sampling, **options)
        rows: list[list[int]] = [[] for _ in prompts]
        for new in steps:
            for row, token in new.items():
                rows[row].append(token)
        return [np.array([*row, end] if ends and len(row) < length else row, np.int64) for row in rows]


def _seen(model: LanguageModel, texts: list[Ints], label: str | None) -> Distributions:
    """What the model thinks of each token of some texts, each on its own, all in the order of reading."""
    lengths = np.array([len(text) for text in texts])
    labels = np.full(len(texts), label_place(model, label)) if model.labels else None
    ids = IdStream(np.concatenate(texts).astype(np.uint32), np.cumsum(lengths) - lengths, labels)
    return distributions(model, ids, replace(model.reading, unit="line"), backward=False)


def _runs(seen: Distributions, count: int, size: int, skip: int) -> Runs:
    """Tokens one behind the other as runs of `size`, without the first ones of each."""
    parts = (seen.log_probs, seen.entropies, bucket_of(seen.ranks))
    return tuple(part[: count * size].reshape(count, size)[:, skip:] for part in parts)  # type: ignore[return-value]


def _pieces(runs: Runs, length: int) -> Floats:
    """The features of all pieces of a length (R x P x F): shares of the buckets, mean log-probability and entropy."""
    count, size = runs[0].shape
    log_probs, entropies, buckets = (part[:, : size // length * length].reshape(count, -1, length) for part in runs)
    return np.stack([*_shares(buckets), log_probs.mean(-1), entropies.mean(-1)], axis=-1)


def _shares(buckets: NDArray[Any]) -> list[Floats]:
    return [(buckets == number).mean(-1) for number in range(len(BUCKETS) + 1)]


@dataclass(frozen=True)
class Judge:
    """A logistic regression that tells texts of one length apart, and what it said of those that were held out."""

    score: LengthScore
    means: Floats
    spreads: Floats
    weights: Floats
    """F + 1, the bias last."""
    people: Floats
    own: Floats
    """Its answers for the held-out texts of both sides."""

    @classmethod
    def fit(cls, people: Floats, own: Floats, length: int, seed: int) -> "Judge":
        """Learn from every other run (R x P x F), and be measured on the rest."""
        known = [side[::2].reshape(-1, side.shape[-1]) for side in (people, own)]
        features = np.concatenate(known)
        means, spreads = features.mean(axis=0), features.std(axis=0)
        spreads = np.where(spreads > 1e-9, spreads, 1.0)
        answers = np.repeat([0.0, 1.0], [len(side) for side in known])
        weights = logistic_regression((features - means) / spreads, answers)
        held = [_probabilities((side[1::2] - means) / spreads, weights) for side in (people, own)]  # each R x P
        score = LengthScore(length, auc(*held), _spread(held, seed), held[0].size)
        return cls(score, means, spreads, weights, held[0].ravel(), held[1].ravel())

    def place(self, seen: Distributions) -> Placed:
        """Where a text stands, by as many of its first tokens as it judges."""
        length = self.score.length
        runs = _runs(seen, 1, length, 0)
        answer = float(_probabilities((_pieces(runs, length)[0, 0] - self.means) / self.spreads, self.weights))
        people, own = (float((side >= answer).mean()) for side in (self.people, self.own))
        return Placed(length, answer, people, own)


def _probabilities(features: Floats, weights: Floats) -> Floats:
    """σ(w x + b) of each row, by a tanh, which does not overflow."""
    return np.asarray(0.5 * (1 + np.tanh((features @ weights[:-1] + weights[-1]) / 2)))


def logistic_regression(features: Floats, answers: Floats, penalty: float = 1.0) -> Floats:
    """Weights and bias (F + 1) by Newton's method; answers are 0 or 1, the bias is not penalised.

    >>> weights = logistic_regression(np.array([[-2.0], [-1.0], [1.0], [2.0]]), np.array([0.0, 0.0, 1.0, 1.0]))
    >>> bool(weights[0] > 0), bool(abs(weights[1]) < 1e-9)
    (True, True)
    """
    x = np.concatenate([features, np.ones((len(features), 1))], axis=1)  # N x F+1
    ridge = penalty * np.eye(x.shape[1])
    ridge[-1, -1] = 1e-9
    weights = np.zeros(x.shape[1])
    for _ in range(50):
        p = _probabilities(features, weights)
        gradient = x.T @ (p - answers) + ridge @ weights
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge, gradient)
        weights = weights - step
        if np.abs(step).max() < 1e-10:
            break
    return weights


def auc(lower: Floats, higher: Floats) -> float:
    """The area under the ROC curve: how often one of `higher` is above one of `lower`, a tie counting half.

    >>> auc(np.array([0.1, 0.4]), np.array([0.4, 0.9]))
    0.875
    """
    low = np.sort(lower.ravel())
    above, level = (np.searchsorted(low, higher.ravel(), side=side) for side in ("left", "right"))
    return float((above + level).mean() / (2 * len(low)))


def _spread(held: list[Floats], seed: int) -> float:
    """The standard deviation over resamples of whole runs, since the pieces of one are alike."""
    random = np.random.default_rng(seed)
    found = [auc(*(side[random.integers(len(side), size=len(side))] for side in held)) for _ in range(RESAMPLES)]
    return float(np.std(found))
