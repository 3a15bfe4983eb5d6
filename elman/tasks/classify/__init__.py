"""Classifiers: p(class | text), from a recipe to a model that sorts texts."""

from elman.tasks.classify.model import Prediction, TextClassifier
from elman.tasks.classify.settings import ClassifyRecipe
from elman.tasks.classify.task import evaluate, read_recipe, train

Model, Recipe = TextClassifier, ClassifyRecipe  # what `elman.tasks` calls them, whatever the task

__all__ = ["ClassifyRecipe", "Model", "Prediction", "Recipe", "TextClassifier", "evaluate", "read_recipe", "train"]
