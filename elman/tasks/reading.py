"""How the files are written that a trained model is scored on: as those that it learned from, unless the user says."""

from typing import TypeVar

from elman.errors import UserError
from elman.train.recipe import Section, Settings, apply_overrides, flatten, parse

R = TypeVar("R", bound=Section)

KEYS = (
    "classes",
    "comments",
    "encoding",
    "format",
    "label_column",
    "separator",
    "source",
    "stress",
    "tag_column",
    "target",
    "text_column",
    "token_column",
)
"""What the data sections of recipes have to say of how a file is written, whichever file it is."""


def with_reading_settings(recipe: R, settings: Settings) -> R:
    """A model's recipe with what the user says of other files; nothing else of it can be changed any more.

    >>> from elman.tasks.tag.settings import TagRecipe
    >>> with_reading_settings(TagRecipe(), ["data.encoding=latin-1"]).data.encoding
    'latin-1'
    >>> with_reading_settings(TagRecipe(), ["train.lr=1"])
    Traceback (most recent call last):
    elman.errors.UserError: 'train.lr' cannot be set for a model that is trained: known are data.comments, ...
    """
    given = apply_overrides({}, settings)
    known = [f"data.{key}" for key in KEYS if key in type(recipe.data).model_fields]  # type: ignore[attr-defined]
    for name in flatten(given):
        if name not in known:
            raise UserError(f"{name!r} cannot be set for a model that is trained: known are {', '.join(known)}")
    return parse(type(recipe), apply_overrides(recipe.model_dump(), given), where="the settings") if given else recipe
