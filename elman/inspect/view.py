"""A view of a model: plain data computed from it and some texts, and the panels that they are drawn as.

A view is one class in one file. It says what can be asked of it, what it computes for each text,
and which panels show that. Pages, pictures, terminals, JSON, options of the command line and sentences about what does
not fit exist once and know a view by this class alone.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from elman.draw.panels import Panel
from elman.tasks.model import Model
from elman.train.recipe import Section

D = TypeVar("D")

AnyModel = Model[Any, Any, Any, Any]


class View(Generic[D]):
    """What a view says; D is what it computes for one text: a dataclass of plain data."""

    name: ClassVar[str]
    about: ClassVar[str]
    """What it shows, in a sentence."""
    Options: ClassVar[type[Section]] = Section
    """What can be asked of it, by key: an option of the command line for each."""
    takes_tokens: ClassVar[bool] = False
    """Whether a text may be given as its tokens, as a tagger's are."""
    record: ClassVar[type[Any] | None] = None
    """What may be given in the place of a text: a record of its task, such as a tree, which has a `text`."""
    takes_files: ClassVar[bool] = False
    """Whether the names of files are what it is given, of which there may be none, and not the texts in them."""
    joint: ClassVar[bool] = False
    """Whether it computes one thing of all texts together, and not one for each: `compute` then gives a list of one."""

    averages: ClassVar[bool] = False
    """Whether it shows what several models that answer together have in common; most look into one network."""

    def refusal(self, model: AnyModel) -> str | None:
        """Why a model of one of its tasks has no such view all the same; None if it has."""
        return None

    def compute(self, model: AnyModel, texts: Sequence[Any], options: Any) -> list[D]:
        """What there is to see, for each text; of a joint view, for all of them."""
        raise NotImplementedError

    def panels(self, data: D) -> list[Panel]:
        """How the data of one text are drawn."""
        raise NotImplementedError
