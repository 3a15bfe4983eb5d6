"""How the files are written that a trained model is scored on: as those that it learned from, unless the user says."""

from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from elman.batches.batches import Ids
from elman.errors import UserError
from elman.train.recipe import Section, Settings, apply_overrides, flatten, parse

R = TypeVar("R", bound=Section)

NAMES = """
    classes comments covariates encoding format key label label_column missing separator source stress tag_column target
    text_column texts_of time token_column uneven
"""
KEYS = NAMES.split()
"""What the data sections of recipes have to say of how a file is written, whichever file it is."""


def with_reading_settings(recipe: R, settings: Settings) -> R:
    """A model's recipe with what the user says of other files; nothing else of it can be changed any more.

    >>> from elman.tasks.tag import TagRecipe
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


@dataclass(frozen=True)
class Reading:
    """How text is read: as one running stream or line by line, and which id stands before the first token."""

    unit: Literal["stream", "line"]
    start_id: int
    ends_text: bool  # whether the end token ends a text; in a stream of words it ends a line only
    reset_documents: bool = True

    def documents(self, ids: Ids) -> np.ndarray | None:
        """Where nothing before may be looked at any more, or None where the text runs on."""
        return ids.documents if self.unit == "line" or self.reset_documents else None
