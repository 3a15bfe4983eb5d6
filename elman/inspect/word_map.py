"""A map of words: those with like vectors close together.

found = word_map(elman.load("runs/words"), ["king", "queen", "paris", "london"], neighbours=5)
found.points[0].word, found.points[0].x
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np
from pydantic import Field

from elman.draw.panels import Panel, Point, Points
from elman.errors import UserError, nearest
from elman.inspect.states import FEWEST, MOST, Method, lay_out
from elman.inspect.view import View
from elman.tasks.embed import VectorModel
from elman.text.vectors import Neighbour
from elman.train.recipe import Section


class MapOptions(Section):
    """How the words are laid out, and how many of their neighbours are put beside them."""

    method: Method = Field("pca", description="pca, tsne or umap.")
    neighbours: int = Field(5, ge=0, le=100, description="That are put beside each word.")
    seed: int = Field(0, ge=0, lt=2**32, description="Of what is random.")


@dataclass(frozen=True)
class WordPoint:
    """A word in the map."""

    x: float
    y: float
    word: str
    group: str
    """The word that was asked for, which it is a neighbour of or is itself."""
    nearest: list[Neighbour]


@dataclass(frozen=True)
class WordMap:
    """Points of a map."""

    method: Method
    explained: list[float] | None
    """The shares of the variance that the two axes hold; of PCA only."""
    points: list[WordPoint]


def word_map(
    model: VectorModel, words: Sequence[str], *, method: Method = "pca", neighbours: int = 5, seed: int = 0
) -> WordMap:
    """A map of some words and of the nearest neighbours of each."""
    if method not in get_args(Method):
        raise UserError(f"there is no method {method!r}: {nearest(str(method), get_args(Method))}")
    groups: dict[str, str] = {}
    for word in words:
        groups.setdefault(model.spelled(word), word)
    for word in list(groups):
        for near in model.nearest(word, neighbours) if neighbours else []:
            groups.setdefault(near.word, groups[word])
    if not FEWEST <= len(groups) <= MOST:
        raise UserError(f"a map needs {FEWEST} to {MOST:,} words, and there are {len(groups):,}: give more, or fewer")
    rows = np.stack([model.vector(word) for word in groups]).astype(np.float64)  # N x E
    xy, explained = lay_out(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12), method, seed)
    points = [
        WordPoint(float(x), float(y), word, group, model.nearest(word, 5))
        for (x, y), (word, group) in zip(xy, groups.items(), strict=True)
    ]
    return WordMap(method, explained, points)


class MapView(View[WordMap]):
    """A map of words."""

    name = "map"
    about = "a map of words: those with like vectors stand close together"
    Options = MapOptions
    joint = True

    def compute(self, model: VectorModel, texts: Sequence[str], options: MapOptions) -> list[WordMap]:  # type: ignore[override]
        """One map of the words of all texts."""
        words = [text if model.spelled(text) in model.vectors else word for text in texts for word in text.split()]
        return [word_map(model, words, **options.model_dump())]

    def panels(self, data: WordMap) -> list[Panel]:
        """The map, with the neighbours of each word in its tip."""
        points = [
            Point(
                *(one.x, one.y, one.word, one.group),
                {"beside": one.group}
                | {f"near {at}": f"{near.word} ({near.score:.3f})" for at, near in enumerate(one.nearest, 1)},
            )
            for one in data.points
        ]
        axes = [f"{data.method} {axis}" for axis in (1, 2)]
        if data.explained is not None:
            axes = [f"{axis} ({share:.0%} of the variance)" for axis, share in zip(axes, data.explained, strict=True)]
        return [Points(f"words by {data.method}", points, axes[0], axes[1])]
