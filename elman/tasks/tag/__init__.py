"""Taggers: a tag for each token (parts of speech, entities), from a recipe to a model that marks text."""

from elman.tasks.tag.model import TagModel
from elman.tasks.tag.settings import TagRecipe
from elman.tasks.tag.tagging import Tagging, TextSpan
from elman.tasks.tag.task import evaluate, read_recipe, train

Model, Recipe = TagModel, TagRecipe  # what `elman.tasks` calls them, whatever the task

__all__ = ["Model", "Recipe", "TagModel", "TagRecipe", "Tagging", "TextSpan", "evaluate", "read_recipe", "train"]
