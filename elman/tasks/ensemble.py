"""Models of one kind that answer together: what they say of a text is averaged.

both = model.ensemble_with(elman.load("runs/other"))
both.save("runs/both")  # the first one's folder, with the others inside it, in members/2, members/3 ...
elman.fit("tag", train="news.conll", settings={"train.members": 3}, out="runs/three")
"""

from collections.abc import Callable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
from pydantic import Field

from elman.errors import UserError
from elman.tasks.folder import MEMBERS, AnyVocabulary, Config
from elman.tasks.model import Backend, Model
from elman.train.recipe import Section, TrainSettings

MOST = 100  # members


class MembersSection(TrainSettings):
    """How to train models, and how many of them that answer together."""

    members: int = Field(
        1,
        ge=1,
        le=MOST,
        description="models that are trained one by one, with `train.seed` and the seeds after it, and answer together",
    )


class EnsembleConfig(Config):
    """What the config.json of a model holds that may have others beside it."""

    members: int = Field(1, ge=1, le=MOST, strict=True)
    """How many models answer together: this one, and those in its folder."""

    @classmethod
    def new(cls, task: str, recipe: Any, **parts: Any) -> Self:
        return super().new(task, recipe, members=recipe.train.members, **parts)

    def trained_further(self, recipe: Any, **parts: Any) -> Self:
        return super().trained_further(recipe, members=recipe.train.members, **parts)


C = TypeVar("C", bound=EnsembleConfig)
V = TypeVar("V", bound=AnyVocabulary | None)
N = TypeVar("N", bound=Any)
R = TypeVar("R")


class EnsembleOptions(Section):
    """What `elman predict` can be asked of a model that may be averaged with others."""

    ensemble: tuple[str, ...] = Field((), description="The folder of a further model to average with; may be repeated.")


class EnsembleModel(Model[C, V, N, R]):
    """A model that may be averaged with others: `others` are those that are."""

    others: tuple[Self, ...] = ()

    @property
    def members(self) -> tuple[Self, ...]:
        """It, and the others."""
        return (self, *self.others)

    def ensemble_with(self, *others: Self) -> Self:
        """An ensemble with others, each trained by itself: as a rule it is right more often than any of them."""
        if not others:
            return self
        for other in others:
            if not isinstance(other, Model):
                raise UserError(f"a {type(other).__name__} is no model: give what elman.load(folder) gives")
            if type(other) is not type(self):
                raise UserError(f"a {type(other).__name__} cannot be averaged with a {type(self).__name__}")
            other.refuse_ensemble("averaged with others again")
            self.check_beside(other)
        twin = copy(self)
        twin.others, twin.report = (*self.others, *others), None
        return twin

    def with_folder(self, folder: Path | str) -> Self:
        """An ensemble with the model of a folder, which is named where it does not fit."""
        other = type(self).load(folder, backend=self.backend)
        try:
            return self.ensemble_with(other)
        except UserError as error:
            raise UserError(f"{folder}: {error}") from None

    def check_beside(self, other: Self) -> None:
        """Refuse a model that cannot be averaged with this one."""
        raise NotImplementedError

    def averaged(self, ask: Callable[[Self], np.ndarray]) -> np.ndarray:
        """The mean of what all members say when they are asked."""
        return np.mean([ask(one) for one in self.members], axis=0) if self.others else ask(self)

    def refuse_ensemble(self, doing: str) -> None:
        """Refuse what can be done with one network only."""
        if self.others:
            one = "give one of them, as members/2 of its folder"
            raise UserError(f"an ensemble of {len(self.members)} models cannot be {doing}: {one}")

    @classmethod
    def load(cls, folder: Path | str, *, backend: Backend = "auto") -> Self:
        folder = Path(folder)
        found = super().load(folder, backend=backend)
        for number in range(2, found.config.members + 1):
            place = folder / MEMBERS / str(number)
            if not (place / "model.safetensors").exists():
                whole = "go on with its `elman train --resume`, or copy all of it again"
                raise UserError(f"the ensemble in {folder} is not whole, there is no model in {place}: {whole}")
            found = found.with_folder(place)
        found._report = folder.absolute()
        return found

    def save(self, folder: Path | str) -> None:
        """Write the model folder, and those of the others into it."""
        for number, other in enumerate(self.others, 2):
            other.save(Path(folder) / MEMBERS / str(number))
        if self.others:
            self.config = self.config.model_copy(update={"members": len(self.members)})
        super().save(folder)

    @property
    def parameters(self) -> int:
        return super().parameters + sum(other.parameters for other in self.others)

    def to_int8(self) -> Self:
        return self._each(Model.to_int8)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._each(lambda one: Model.__deepcopy__(one, memo))

    def _each(self, change: Callable[[Self], Self]) -> Self:
        """An ensemble of what is made of each member."""
        if not self.others:
            return change(self)
        first = copy(self)
        first.others = ()
        twin = copy(change(first))
        twin.others = tuple(map(change, self.others))
        return twin

    def summary(self) -> str:
        return super().summary() + (f", an ensemble of {len(self.members)}" if self.others else "")


def with_ensemble(model: Any, folders: Sequence[Path | str]) -> Any:
    """A model together with those of some folders, as `--ensemble` names them."""
    if not folders:
        return model
    if not isinstance(model, EnsembleModel):
        raise UserError(f"a model for '{model.task}' cannot be averaged with others: leave --ensemble out")
    for folder in folders:
        model = model.with_folder(folder)
    return model
