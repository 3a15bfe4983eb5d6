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
from pydantic import Field, model_validator

from elman.errors import UserError
from elman.tasks.folder import MEMBERS, MOST_MEMBERS, AnyVocabulary, Config, member_folders
from elman.tasks.model import Backend, Model
from elman.train.recipe import Section, TrainSettings


class MembersSection(TrainSettings):
    """How to train models, and how many of them that answer together."""

    members: int = Field(
        1,
        ge=1,
        le=MOST_MEMBERS,
        description="models that are trained one by one, with `train.seed` and the seeds after it, and answer together",
    )
    member: int = Field(
        1, ge=1, le=MOST_MEMBERS, description="which of them to train by itself: the first has the seed `train.seed`"
    )

    @property
    def networks(self) -> int:
        return self.members

    @property
    def whole(self) -> str:
        if self.members > 1:
            return f"member 1 of {self.members}"
        return f"member {self.member}" if self.member > 1 else super().whole

    @property
    def network_seed(self) -> int:
        return (self.seed + self.member - 1) % 2**63

    @model_validator(mode="after")
    def _one_or_all(self) -> "MembersSection":
        if self.members > 1 and self.member > 1:
            raise ValueError("train.members trains all of them, and train.member one by itself: give one of the two")
        return self


class EnsembleConfig(Config):
    """What the config.json of a model holds that may have others beside it."""

    members: int = Field(1, ge=1, le=MOST_MEMBERS, strict=True)
    """How many models answer together: this one, and those in its folder. While they are trained it is 1."""


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
        for other in others:
            if not isinstance(other, Model):
                raise UserError(f"a {type(other).__name__} is no model: give what elman.load(folder) gives")
            if type(other) is not type(self):
                raise UserError(f"a {type(other).__name__} cannot be averaged with a {type(self).__name__}")
            self.check_beside(other)
        further = [other.alone() if one is other else one for other in others for one in other.members]
        return self._with((*self.others, *further)) if further else self

    def alone(self) -> Self:
        """The first model of an ensemble by itself."""
        return self._with(()) if self.others else self

    def _with(self, others: tuple[Self, ...]) -> Self:
        """The first model with others."""
        if len(others) >= MOST_MEMBERS:
            raise UserError(f"an ensemble has {MOST_MEMBERS} models at the most, and these are {len(others) + 1}")
        twin = copy(self)
        twin.others, twin.report = others, None
        twin.config = self.config.model_copy(update={"members": 1 + len(others)})
        return twin

    def with_folder(self, folder: Path | str) -> Self:
        """An ensemble with the model of a folder, which is named where it does not fit."""
        other = self.load_beside(folder)
        try:
            return self.ensemble_with(other)
        except UserError as error:
            raise UserError(f"{folder}: {error}") from None

    def load_beside(self, folder: Path | str) -> Self:
        """The model of a folder, to be averaged with this one."""
        return type(self).load(folder, backend=self.backend)

    def check_beside(self, other: Self) -> None:
        """Refuse a model that cannot be averaged with this one."""
        raise NotImplementedError

    def averaged(self, ask: Callable[[Self], np.ndarray]) -> np.ndarray:
        """The mean of what all members say when they are asked."""
        return mean([ask(one) for one in self.members])

    @classmethod
    def load(cls, folder: Path | str, *, backend: Backend = "auto") -> Self:
        folder = Path(folder)
        found = super().load(folder, backend=backend)
        for number in range(2, found.config.members + 1):
            place = folder / MEMBERS / str(number)
            if not (place / "model.safetensors").exists():
                whole = "go on with its `elman train --resume`, or copy all of it again"
                raise UserError(f"the ensemble in {folder} is not whole, there is no model in {place}: {whole}")
            if member_folders(place):
                raise UserError(f"{place} holds an ensemble itself, and a member is one model: copy the ensemble anew")
            found = found.with_folder(place)
        found._report = folder.absolute()
        return found

    def refusal(self) -> str | None:
        return next((reason for one in self.others if (reason := one.refusal()) is not None), super().refusal())

    def write(self, folder: Path) -> None:
        for number, other in enumerate(self.others, 2):
            other.write(folder / MEMBERS / str(number))
        super().write(folder)

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
        twin = change(self.alone())._with(tuple(map(change, self.others)))
        twin._report = self._report
        return twin

    def summary(self) -> str:
        return super().summary() + (f", an ensemble of {len(self.members)}" if self.others else "")


def mean(each: Sequence[np.ndarray]) -> np.ndarray:
    """The mean of what several models say; of one, just that."""
    return np.mean(each, axis=0) if len(each) > 1 else each[0]


def with_ensemble(model: Any, folders: Sequence[Path | str]) -> Any:
    """A model together with those of some folders, as `--ensemble` names them."""
    if not folders:
        return model
    if not isinstance(model, EnsembleModel):
        raise UserError(f"a model for '{model.task}' cannot be averaged with others: leave --ensemble out")
    for folder in folders:
        model = model.with_folder(folder)
    return model
