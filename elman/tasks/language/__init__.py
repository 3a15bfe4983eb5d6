"""Language models: p(next token | tokens so far), from a recipe to a model that scores and writes."""

from elman.tasks.language.model import LanguageModel, TokenScore
from elman.tasks.language.settings import LanguageRecipe
from elman.tasks.language.task import evaluate, read_recipe, train

Model, Recipe = LanguageModel, LanguageRecipe  # what `elman.tasks` calls them, whatever the task

__all__ = ["LanguageModel", "LanguageRecipe", "Model", "Recipe", "TokenScore", "evaluate", "read_recipe", "train"]
