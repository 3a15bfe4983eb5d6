"""How faithful saliency is: whether a prediction falls without the tokens that it names, and stands with them alone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from elman.draw.panels import Line, Lines, Note, Panel, Table
from elman.errors import UserError
from elman.inspect.methods import METHODS, chosen_methods, cut_panels, refused_panels
from elman.inspect.subject import Cut, Question, Subject, cuts_of, subject_of
from elman.inspect.view import AnyModel, View
from elman.train.recipe import Section

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Of a text's tokens, those that are taken away or left alone; at least one."""
RANDOM = "random"
SEEDS = 5  # random orders


class FaithfulnessOptions(Section):
    """What is explained, and how often chance is tried."""

    target: str | None = Field(None, description="A class or tag; the predicted one of each text if not given.")
    seeds: int = Field(SEEDS, ge=2, le=100, description="Random orders that the methods are measured beside.")


@dataclass(frozen=True)
class Curve:
    """What an order of the tokens is worth, at each share of them; means over the texts."""

    comprehensiveness: list[float]
    """How much less probable the target is without the first tokens: high is good."""
    sufficiency: list[float]
    """How much less probable it is with them alone: low is good."""
    mean_comprehensiveness: float
    mean_sufficiency: float
    """Over the shares."""
    comprehensiveness_spread: list[float]
    sufficiency_spread: list[float]
    """Of random orders, the standard deviation over the seeds; else empty."""
    mean_spread: float
    """That of mean comprehensiveness less mean sufficiency."""

    @property
    def faithfulness(self) -> float:
        """One number to rank by: mean comprehensiveness less mean sufficiency."""
        return self.mean_comprehensiveness - self.mean_sufficiency


@dataclass(frozen=True)
class Faithfulness:
    """The methods for one model, on some texts, beside random orders of their tokens."""

    explained: int
    """How many texts."""
    shares: list[float]
    curves: dict[str, Curve]
    """By method, and of `random` orders."""
    most_faithful: str
    """The method with the highest mean comprehensiveness less mean sufficiency."""
    better_than_chance: bool
    """Whether that is above the random orders' by more than twice their spread."""
    refused: dict[str, str]
    """Methods that do not apply, and why."""
    cut: int = 0
    """Tokens at the ends of long texts, which are left out."""


def faithfulness(
    model: AnyModel,
    texts: str | Sequence[str | Sequence[str]],
    methods: Sequence[str] | None = None,
    shares: Sequence[float] = SHARES,
    *,
    target: str | None = None,
    seeds: int = SEEDS,
) -> Faithfulness:
    """Comprehensiveness and sufficiency (DeYoung et al., 2020) of each method, beside random orders.

    Tokens that are taken away are dropped from a text to classify, and made unknown in a sentence to tag. A text may be
    given as its words.
    """
    subject = subject_of(model)
    if not shares or not all(0 < share <= 1 for share in shares):
        raise UserError("shares are numbers above 0, up to 1: give at least one")
    if seeds < 2:
        raise UserError(f"the random orders are {seeds}: give at least 2 seeds")
    cuts = cuts_of(subject, texts)
    chosen, refused = chosen_methods(subject, methods, cuts)
    outputs = subject.outputs([cut.tokens for cut in cuts])
    questions = [subject.ask(cut, output, target) for cut, output in zip(cuts, outputs, strict=True)]
    whole = np.array([subject.probability(*pair) for pair in zip(questions, outputs, strict=True)])
    orders = {
        name: [[np.argsort(-np.array(one.values), kind="stable") for one in method.attribute(subject, cuts, questions)]]
        for name, method in chosen.items()
    }
    orders[RANDOM] = [[_shuffled(seed, n, len(cut.pieces)) for n, cut in enumerate(cuts)] for seed in range(seeds)]
    edits = (
        edit
        for rounds in orders.values()
        for rows in rounds
        for share in shares
        for number, order in enumerate(rows)
        for edit in _edits(number, order, share)
    )
    measured = _probabilities(subject, cuts, questions, edits)
    curves = {name: _curve(measured, whole, rounds, shares) for name, rounds in orders.items()}
    best = max(chosen, key=lambda name: curves[name].faithfulness)
    chance = curves[RANDOM].faithfulness + 2 * curves[RANDOM].mean_spread
    better = curves[best].faithfulness > chance
    return Faithfulness(len(cuts), list(shares), curves, best, better, refused, sum(cut.left_out for cut in cuts))


Order = NDArray[np.int64]
Places = tuple[int, tuple[int, ...]]
"""A text by its number, and those of its tokens that are taken away."""


def _shuffled(seed: int, number: int, count: int) -> Order:
    return np.random.default_rng([seed, number]).permutation(count)


def _edits(number: int, order: Order, share: float) -> tuple[Places, Places]:
    """A text without its first tokens by some order, and with them alone."""
    count = ceil(share * len(order) - 1e-9)
    first, others = order[:count].tolist(), order[count:].tolist()
    return (number, tuple(sorted(first))), (number, tuple(sorted(others)))


def _probabilities(
    subject: Subject, cuts: Sequence[Cut], questions: Sequence[Question], edits: Iterable[Places]
) -> dict[Places, float]:
    """How probable what is asked for is in edited texts; each is read once, however often it is there."""
    wanted = list(dict.fromkeys(edits))
    outputs = subject.outputs([subject.removed(cuts[number], places) for number, places in wanted])
    pairs = zip(wanted, outputs, strict=True)
    return {edit: subject.probability(questions[edit[0]], output) for edit, output in pairs}


def _curve(
    measured: Mapping[Places, float],
    whole: NDArray[np.float64],
    rounds: Sequence[Sequence[Order]],
    shares: Sequence[float],
) -> Curve:
    """Means over the texts, and over rounds of orders where there are several."""
    losses = np.zeros((len(rounds), 2, len(shares)))
    for number, rows in enumerate(rounds):
        for place, share in enumerate(shares):
            edits = [_edits(text, order, share) for text, order in enumerate(rows)]
            for kind in (0, 1):
                losses[number, kind, place] = (whole - [measured[edit[kind]] for edit in edits]).mean()
    mean, total = losses.mean(0), losses.mean(2)  # 2 x shares, rounds x 2
    spread, mean_spread = np.empty((2, 0)), 0.0
    if len(rounds) > 1:
        spread, mean_spread = losses.std(0, ddof=1), float((total[:, 0] - total[:, 1]).std(ddof=1))
    return Curve(
        mean[0].tolist(),
        mean[1].tolist(),
        float(mean[0].mean()),
        float(mean[1].mean()),
        spread[0].tolist(),
        spread[1].tolist(),
        mean_spread,
    )


class FaithfulnessView(View[Faithfulness]):
    """The methods of saliency measured on some texts."""

    name = "faithfulness"
    about = "which method's saliency the model itself bears out, beside chance"
    takes_tokens = True
    Options = FaithfulnessOptions
    joint = True

    def compute(self, model: AnyModel, texts: Sequence[str], options: FaithfulnessOptions) -> list[Faithfulness]:
        return [faithfulness(model, texts, target=options.target, seeds=options.seeds)]

    def panels(self, data: Faithfulness) -> list[Panel]:
        return [
            Note("most faithful", sentence(data)),
            *cut_panels(data.cut),
            _table(data),
            _lines(data, "comprehensiveness", "lost without the first tokens (high is good)"),
            _lines(data, "sufficiency", "lost with the first tokens alone (low is good)"),
            *refused_panels(data.refused),
        ]


def sentence(data: Faithfulness) -> str:
    """Which method is the most faithful, and whether that means something."""
    best, chance = data.curves[data.most_faithful], data.curves[RANDOM]
    verdict = "above" if data.better_than_chance else "no more than"
    return (
        f"{METHODS[data.most_faithful].title} is the most faithful method for this model on {data.explained:,} "
        f"text{'s' * (data.explained != 1)}: comprehensiveness less sufficiency {best.faithfulness:.3f}, {verdict} "
        f"chance ({chance.faithfulness:.3f} ± {chance.mean_spread:.3f})."
    )


def _titles(curves: Mapping[str, Curve]) -> dict[str, str]:
    return {name: METHODS[name].title if name in METHODS else "random order" for name in curves}


def _table(data: Faithfulness) -> Table:
    heads = [f"{share:.0%}" for share in data.shares]
    columns = ["order by", *(f"comp. {head}" for head in heads), "mean", *(f"suff. {head}" for head in heads), "mean"]
    rows = []
    for name, title in _titles(data.curves).items():
        curve = data.curves[name]
        parts = [*curve.comprehensiveness, curve.mean_comprehensiveness, *curve.sufficiency, curve.mean_sufficiency]
        rows.append([title, *(f"{value:.3f}" for value in parts)])
    note = (
        "Comprehensiveness: how much less probable the target is without the first tokens of each order; sufficiency: "
        "with them alone (DeYoung et al., 2020). A share is of each text's tokens, at least one."
    )
    return Table("faithfulness", columns, rows, note=note)


def _lines(data: Faithfulness, key: str, title: str) -> Lines:
    lines = []
    x = [100 * share for share in data.shares]
    for name, label in _titles(data.curves).items():
        y: list[float] = getattr(data.curves[name], key)
        spread: list[float] = getattr(data.curves[name], f"{key}_spread")
        low = [value - off for value, off in zip(y, spread, strict=True)] if spread else []
        high = [value + off for value, off in zip(y, spread, strict=True)] if spread else []
        lines.append(Line(label, x, y, low, high, dashed=name == RANDOM))
    return Lines(title, lines, x="% of the tokens", y=key)
