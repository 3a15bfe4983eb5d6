"""The views of each task: a new one is a class in a file of its own, and a line here.

A view is imported when it is asked for. Several tasks may have views of one name, which are then several classes.
"""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from elman.inspect.view import View

VIEWS: dict[str, dict[str, str]] = {
    "classify": {
        "saliency": "saliency:SaliencyView",
        "edits": "edits:EditsView",
        "attention": "pooling_weights:PoolingWeightsView",
        "faithfulness": "faithfulness:FaithfulnessView",
        "states": "states:StatesView",
    },
    "tag": {
        "saliency": "saliency:SaliencyView",
        "edits": "edits:EditsView",
        "marginals": "marginals:MarginalsView",
        "faithfulness": "faithfulness:FaithfulnessView",
        "states": "states:StatesView",
    },
    "translate": {
        "alignment": "alignment:AlignmentView",
        "tree": "tree:TreeView",
        "edits": "translation_edits:TranslationEditsView",
        "what-if": "what_if:WhatIfView",
        "states": "states:StatesView",
    },
    "lm": {
        "ranks": "ranks:RanksView",
        "neurons": "neurons:NeuronsView",
        "features": "features:FeaturesView",
        "matches": "matches:MatchesView",
        "states": "states:StatesView",
    },
    "caption": {"image": "captions:CaptionView", "gallery": "captions:GalleryView"},
    "answer": {"image": "looking:LookingView"},
    "tree": {"tree": "phrases:PhrasesView"},
    "embed": {"map": "word_map:MapView"},
}
"""By task and name, in the order in which they are offered: the first is shown if none is asked for."""


@cache
def find(place: str) -> View[Any]:
    """The view of a place in `VIEWS`.

    >>> find("ranks:RanksView").name
    'ranks'
    """
    module, _, name = place.partition(":")
    return getattr(import_module(f"elman.inspect.{module}"), name)()  # type: ignore[no-any-return]


def each_view(task: str | None = None) -> Iterator[View[Any]]:
    """Every view, or those of a task, imported as they are reached."""
    places = VIEWS.get(task, {}).values() if task is not None else [one for of in VIEWS.values() for one in of.values()]
    return map(find, dict.fromkeys(places))
