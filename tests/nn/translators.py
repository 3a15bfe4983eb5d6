"""Small networks of every kind, in double precision, and pairs for them."""

import numpy as np
import torch

from elman.nn.translation import TranslationNetwork
from elman.tasks.translate.batch import Batch, make_batch
from elman.tasks.translate.network import build_network
from elman.tasks.translate.settings import ModelSettings, TextSettings
from elman.tasks.translate.sides import Sides

ATTENTIVE = ("bahdanau", "luong", "luong-feeding")
SCORES = ("dot", "scaled-dot", "general", "reduced-rank", "additive", "cosine", "location")
COMBINATIONS = [
    ("plain", "general"),
    *((decoder, score) for decoder in ATTENTIVE for score in SCORES),
    ("bahdanau", "fixed-length"),
]
SIDES = Sides.fit(TextSettings(kind="characters"), [("abcdefgh", "uvwxyz")])


def network(decoder: str = "luong", attention: str = "general", **settings: object) -> TranslationNetwork:
    """A network without dropout, in eval mode."""
    torch.manual_seed(5)
    small = {"cell": "gru", "hidden": 8, "embedding": 6, "longest": 9, "decoder": decoder, "attention": attention}
    chosen = ModelSettings.model_validate(small | settings)
    return build_network(chosen, SIDES).double().eval()


def batch() -> Batch:
    """Three pairs; the order by the targets' length is not that of the sources' length."""
    sources = [np.array([3, 4]), np.array([2, 5, 6, 7, 8]), np.array([9])]
    targets = [np.array([2, 3, 4, 5]), np.array([6]), np.array([7, 3])]
    return make_batch(sources, targets, end=1)
