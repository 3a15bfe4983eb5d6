"""Small networks of every kind, in double precision, and pairs for them."""

import numpy as np
import torch

from elman.nn.translation import TranslationNetwork
from elman.tasks.search import SearchSettings
from elman.tasks.translate import ModelSettings, TranslateRecipe, Translator, TranslatorConfig
from elman.tasks.writer import PairBatch, make_batch
from elman.text import TokenizerSettings
from elman.text.sides import Sides

ATTENTIVE = ("bahdanau", "luong", "luong-feeding")
SCORES = ("dot", "scaled-dot", "general", "reduced-rank", "additive", "cosine", "plain-cosine", "location")
COMBINATIONS = [
    ("plain", "general"),
    *((decoder, score) for decoder in ATTENTIVE for score in SCORES),
    ("bahdanau", "fixed-length"),
]
"""What the kernels run."""
TUTORIAL = [("tutorial", "general"), ("tutorial-attention", "fixed-length"), ("tutorial-attention", "additive")]
"""What they do not."""
DECODERS = ("plain", *ATTENTIVE, "tutorial", "tutorial-attention")
SIDES = Sides.fit([("abcdefgh", "uvwxyz")], *[TokenizerSettings(kind="characters")] * 2)


def network(decoder: str = "luong", attention: str = "general", **settings: object) -> TranslationNetwork:
    """A network without dropout, in eval mode."""
    torch.manual_seed(5)
    small = {"cell": "gru", "hidden": 8, "embedding": 6, "longest": 9, "decoder": decoder, "attention": attention}
    if decoder.startswith("tutorial"):
        small["tied"] = "none"
    chosen = ModelSettings.model_validate(small | settings)
    parts = {"model": chosen, "search": SearchSettings(), "longest": 9, "tokens_per_character": 1.0}
    config = TranslatorConfig.new("translate", TranslateRecipe(), **parts)
    return Translator.build(config, SIDES).double().eval()


def batch() -> PairBatch:
    """Three pairs; the order by the targets' length is not that of the sources' length."""
    sources = [np.array([3, 4]), np.array([2, 5, 6, 7, 8]), np.array([9])]
    targets = [np.array([2, 3, 4, 5]), np.array([6]), np.array([7, 3])]
    return make_batch(list(zip(sources, targets, strict=True)), end=1)
