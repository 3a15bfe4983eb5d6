"""Translators: p(target | source), anything from a line to a line, from a recipe to a model that writes."""

from elman.tasks.translate.channel import ChannelWeights, NoisyChannel
from elman.tasks.translate.model import Translator
from elman.tasks.translate.reranking import rerank_report
from elman.tasks.translate.search import Search
from elman.tasks.translate.settings import TranslateRecipe
from elman.tasks.translate.task import evaluate, read_recipe, train
from elman.tasks.translate.translation import Alternative, Translation

Model, Recipe = Translator, TranslateRecipe  # what `elman.tasks` calls them, whatever the task

__all__ = [
    "Alternative",
    "ChannelWeights",
    "Model",
    "NoisyChannel",
    "Recipe",
    "Search",
    "TranslateRecipe",
    "Translation",
    "Translator",
    "evaluate",
    "read_recipe",
    "rerank_report",
    "train",
]
