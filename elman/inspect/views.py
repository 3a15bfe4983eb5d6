"""Every view by its name: a new one is a class in a file of its own, and a line here.

Several tasks may have views of one name, which are then several classes.
"""

from typing import Any

from elman.inspect.alignment import AlignmentView
from elman.inspect.edits import EditsView
from elman.inspect.faithfulness import FaithfulnessView
from elman.inspect.features import FeaturesView
from elman.inspect.marginals import MarginalsView
from elman.inspect.matches import MatchesView
from elman.inspect.neurons import NeuronsView
from elman.inspect.pooling_weights import PoolingWeightsView
from elman.inspect.ranks import RanksView
from elman.inspect.saliency import SaliencyView
from elman.inspect.states import StatesView
from elman.inspect.translation_edits import TranslationEditsView
from elman.inspect.tree import TreeView
from elman.inspect.view import View
from elman.inspect.what_if import WhatIfView
from elman.inspect.word_map import MapView

VIEWS: tuple[View[Any], ...] = (
    SaliencyView(),
    EditsView(),
    MarginalsView(),
    PoolingWeightsView(),
    FaithfulnessView(),
    AlignmentView(),
    TreeView(),
    TranslationEditsView(),
    WhatIfView(),
    RanksView(),
    NeuronsView(),
    FeaturesView(),
    MatchesView(),
    StatesView(),
    MapView(),
)
"""In the order in which they are offered: the first that a model has is shown if none is asked for."""
