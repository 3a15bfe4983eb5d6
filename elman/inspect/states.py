"""A map of hidden states: every token of some texts a point, those that the model reads alike close together.

found = states(elman.load("runs/reviews"), ["a fine film", "a dull one"], colour="predicted")
found.points[0].x, found.points[0].neighbours
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from elman.batches.stream import IdStream
from elman.draw.panels import Panel, Point, Points
from elman.errors import UserError, nearest
from elman.inspect.distributions import distributions
from elman.inspect.methods import cut_panels
from elman.inspect.traces import encoded, label_place
from elman.inspect.view import AnyModel, View
from elman.tasks.classify import TextClassifier
from elman.tasks.language import LanguageModel
from elman.tasks.tag import TagModel
from elman.tasks.traces import Trace, refusal, trace_text
from elman.train.recipe import Section

Floats = NDArray[np.float64]
Method = Literal["pca", "tsne", "umap"]
Colour = Literal["token", "position", "text", "predicted"]

FEWEST = 3  # points of a map
GROUPS = 10  # colours that are told apart
MOST = 5000  # points of a map


class StatesOptions(Section):
    """Which states, how they are laid out, and what their colours mean."""

    method: Method = Field("pca", description="pca, tsne or umap.")
    colour: Colour = Field("token", description="token, position, text, or predicted: the label, tag or next token.")
    layer: int | None = Field(None, ge=1, description="From 1; the last, if not given.")
    part: str = Field("h", description="A letter of the cell's equation: h, c, i, f, o, g, r, z, n.")
    neighbours: int = Field(5, ge=0, le=100, description="That are named for each token.")
    seed: int = Field(0, ge=0, lt=2**32, description="Of what is random.")
    label: str | None = Field(None, description="What a language model with labels is told.")


@dataclass(frozen=True)
class NearState:
    """A token whose state is close, and the cosine of the two states."""

    text: int
    place: int
    token: str
    cosine: float


@dataclass(frozen=True)
class StatePoint:
    """A token in the map."""

    x: float
    y: float
    text: int
    """Which text it stands in, from 1."""
    place: int
    """Its place there, from 1."""
    token: str
    group: str
    """What its colour means."""
    neighbours: list[NearState]
    """The tokens of all texts whose states are nearest."""


@dataclass(frozen=True)
class States:
    """Points of a map that is laid out for all texts together."""

    part: str
    method: Method
    colour: Colour
    explained: list[float] | None
    """The shares of the variance that the two axes hold; of PCA only."""
    points: list[StatePoint]
    cut: int = 0
    """Tokens behind these, which are left out."""


def states(
    model: AnyModel,
    texts: str | Sequence[str],
    *,
    method: Method = "pca",
    colour: Colour = "token",
    layer: int | None = None,
    part: str = "h",
    neighbours: int = 5,
    seed: int = 0,
    label: str | None = None,
) -> States:
    """A map of the states of all tokens of some texts, and the nearest neighbours of each."""
    texts = [texts] if isinstance(texts, str) else texts
    if not texts:
        raise UserError("there is nothing to map: give at least one text")
    for key, value, known in (("method", method, get_args(Method)), ("colour", colour, get_args(Colour))):
        if value not in known:
            raise UserError(f"there is no {key} {value!r}: {nearest(str(value), known)}")
    traces, cut = _first(trace_text(model, text, label) for text in texts)
    name = traces[0].part(layer, part)[0]
    rows = np.concatenate([trace.parts[name] for trace in traces]).astype(np.float64)  # N x H
    if len(rows) < FEWEST:
        raise UserError(f"a map needs at least {FEWEST} tokens, and there are {len(rows)}: give more or longer texts")
    places = [(number, place) for number, trace in enumerate(traces) for place in range(len(trace.tokens))]
    names = [traces[number].tokens[place] for number, place in places]
    groups = _groups(model, texts, places, names, colour, label)
    xy, explained = lay_out(rows, method, seed)
    close = _neighbours(rows, places, names, neighbours)
    points = [
        StatePoint(float(x), float(y), number + 1, place + 1, token, group, near)
        for (x, y), (number, place), token, group, near in zip(xy, places, names, groups, close, strict=True)
    ]
    return States(name, method, colour, explained, points, cut)


def _first(traces: Iterable[Trace]) -> tuple[list[Trace], int]:
    """The first tokens of some texts, `MOST` of all together, and how many more there are."""
    kept, room, cut = list[Trace](), MOST, 0
    for trace in traces:
        kept.append(trace.shortened(room))
        room -= len(kept[-1].tokens)
        cut += len(trace.tokens) - len(kept[-1].tokens)
    return kept, cut


def lay_out(rows: Floats, method: Method, seed: int = 0) -> tuple[Floats, list[float] | None]:
    """Points in the plane (N x 2) for rows (N x H), and for PCA how much of the variance they keep.

    >>> xy, explained = lay_out(np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [4.0, 0.0, 1.0]]), "pca")
    >>> xy[:, 0].round(6).tolist(), np.round(explained, 6).tolist()
    ([-2.0, 0.0, 2.0], [1.0, 0.0])
    """
    if method == "pca":
        return _pca(rows)
    if method == "tsne":
        try:
            from sklearn.manifold import TSNE
        except ImportError:
            raise UserError("t-SNE needs scikit-learn: pip install scikit-learn, or take the method pca") from None
        # As scikit-learn begins by default, which for so few points would be close to chance.
        options: dict[str, Any] = {"perplexity": min(30.0, (len(rows) - 1) / 3), "init": _pca(rows)[0] * 1e-4}
        return np.asarray(TSNE(random_state=seed, **options).fit_transform(rows), np.float64), None
    try:
        UMAP = import_module("umap").UMAP
    except ImportError:
        raise UserError("UMAP needs umap-learn: pip install umap-learn, or take the method pca or tsne") from None
    found = UMAP(n_neighbors=min(15, len(rows) - 1), random_state=seed).fit_transform(rows)
    return np.asarray(found, np.float64), None


def _pca(rows: Floats) -> tuple[Floats, list[float]]:
    """The two directions in which the rows vary most; the largest part of each direction is positive."""
    centred = rows - rows.mean(axis=0)
    _, sizes, directions = np.linalg.svd(centred, full_matrices=False)
    sizes, directions = np.append(sizes, 0.0)[:2], np.append(directions, np.zeros((1, rows.shape[1])), axis=0)[:2]
    signs = np.sign(np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1))
    total = float((centred**2).sum()) or 1.0
    return centred @ (directions * np.where(signs == 0, 1, signs)).T, (sizes**2 / total).tolist()


def _neighbours(rows: Floats, places: list[tuple[int, int]], names: list[str], count: int) -> list[list[NearState]]:
    """For each row the others with the largest cosine; a block of rows at a time."""
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    found: list[list[NearState]] = []
    for first in range(0, len(unit), 256):
        cosines = unit[first : first + 256] @ unit.T
        cosines[np.arange(len(cosines)), np.arange(first, first + len(cosines))] = -np.inf  # not itself
        order = np.argsort(-cosines, axis=1, kind="stable")[:, : min(count, len(unit) - 1)]
        for row, near in zip(cosines, order.tolist(), strict=True):
            found.append([NearState(places[at][0] + 1, places[at][1] + 1, names[at], float(row[at])) for at in near])
    return found


def _groups(
    model: AnyModel,
    texts: Sequence[str],
    places: list[tuple[int, int]],
    names: list[str],
    colour: Colour,
    label: str | None,
) -> list[str]:
    """What the colour of each token means; rare ones are put together."""
    if colour == "text":
        found = [f"text {number + 1}" for number, _ in places]
    elif colour == "position":
        return _ranges([place for _, place in places])
    elif colour == "token":
        found = names
    else:
        sizes = Counter(number for number, _ in places)
        found = [one for number, text in enumerate(texts) for one in _predicted(model, text, sizes[number], label)]
    common = {name for name, _ in Counter(found).most_common(GROUPS)}
    return [name if name in common or len(set(found)) == GROUPS + 1 else "others" for name in found]


def _ranges(numbers: list[int]) -> list[str]:
    """Places, from 0, as up to six ranges of about as many tokens each.

    >>> _ranges([0, 1, 2, 3, 11])
    ['1', '2', '3 to 5', '3 to 5', '6 to 12']
    """
    cuts = np.unique(np.quantile(numbers, np.linspace(0, 1, 7)[:-1]).astype(int))
    ends = np.append(cuts[1:], max(numbers) + 1)
    spans = [f"{low + 1}" if high == low + 1 else f"{low + 1} to {high}" for low, high in zip(cuts, ends, strict=True)]
    return [spans[int(np.searchsorted(cuts, number, side="right")) - 1] for number in numbers]


def _predicted(model: AnyModel, text: str, size: int, label: str | None) -> list[str]:
    """What the model says of each of `size` tokens: a label or tag; of a language model, the likeliest next token."""
    if isinstance(model, TextClassifier):
        return [", ".join(model.predict(text).labels) or "none"] * size
    if isinstance(model, TagModel):
        return list(model.predict(text).tags)[:size]
    if isinstance(model, LanguageModel):
        return _next_tokens(model, text, label)[:size]
    raise UserError("a translator predicts nothing for a single token: colour by token, position or text")


def _next_tokens(model: LanguageModel, text: str, label: str | None) -> list[str]:
    """The likeliest token after each; of a model that reads backwards, before each."""
    step = -1 if model.settings.direction == "backward" else 1
    ids = np.append(encoded(model, text)[::step], model.tokenizer.eos_id)  # as it is read, and one more place
    labels = np.array([label_place(model, label)]) if model.labels else None
    seen = distributions(model, IdStream(ids.astype(np.uint32), labels=labels), backward=False)
    return [model.tokenizer.tokens[id] for id in seen.best_ids[1:, 0][::step].tolist()]


class StatesView(View[States]):
    """A map of the states of tokens."""

    name = "states"
    about = "a map of hidden states: tokens that the model reads alike stand close together"
    Options = StatesOptions
    joint = True

    def refusal(self, model: AnyModel) -> str | None:
        """N-grams and windows have no states."""
        return refusal(model)

    def compute(self, model: AnyModel, texts: Sequence[str], options: StatesOptions) -> list[States]:
        """One map for all texts together."""
        return [states(model, texts, **options.model_dump())]

    def panels(self, data: States) -> list[Panel]:
        """The map, with the neighbours of each token in its tip."""
        points = [
            Point(
                one.x,
                one.y,
                one.token,
                one.group,
                {data.colour: one.group, "text": str(one.text), "place": str(one.place)}
                | {f"near {at}": f"{near.token!r} ({near.cosine:.3f})" for at, near in enumerate(one.neighbours, 1)},
            )
            for one in data.points
        ]
        axes = [f"{data.method} {axis}" for axis in (1, 2)]
        if data.explained is not None:
            axes = [f"{axis} ({share:.0%} of the variance)" for axis, share in zip(axes, data.explained, strict=True)]
        title = f"states {data.part} by {data.method}, coloured by {data.colour}"
        return [*cut_panels(data.cut, len(points)), Points(title, points, axes[0], axes[1])]
