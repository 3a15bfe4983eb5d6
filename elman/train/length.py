"""How long a run is, and how much it takes at a time, where its recipe does not say: chosen by the size of the data.

A network learns by updates. Ten epochs of large data make thousands of them, but ten epochs of a few hundred records
in batches of 32 make less than a hundred, after which a network knows next to nothing. So small data get `UPDATES`:
batches shrink first, down to the least that a task finds sensible, since that costs no more passes over the data; where
that does not do, epochs grow from the usual ten up to `MOST_EPOCHS`. Large data keep ten epochs and the usual batch.
What the user says always holds, and the other is chosen to go with it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from elman.train.recipe import EPOCHS, BatchSection, Section, TrainSettings

UPDATES = 600  # what small data get: on a few hundred records the held-out scores hardly rise after that
MOST_EPOCHS = 40
FEW_UPDATES = 100  # a run of fewer has not begun to learn


R = TypeVar("R", bound=Section)


class Length(NamedTuple):
    """How many epochs, in batches of how much, and about how many updates they make."""

    epochs: float
    batch: int
    updates: int


def choose_length(
    amount: float, usual: int, least: int, *, epochs: float | None, batch: int | None, accumulate: int = 1
) -> Length:
    """The epochs and the batch for so much data, whatever a batch is counted in; what is given stays.

    >>> choose_length(1_000_000, usual=32, least=8, epochs=None, batch=None)
    Length(epochs=10, batch=32, updates=312500)
    >>> choose_length(1_000, usual=32, least=8, epochs=None, batch=None)
    Length(epochs=10, batch=16, updates=630)
    >>> choose_length(1_000, usual=32, least=8, epochs=100, batch=None)
    Length(epochs=100, batch=32, updates=3200)
    >>> choose_length(200, usual=32, least=8, epochs=None, batch=None)
    Length(epochs=24, batch=8, updates=600)
    >>> choose_length(200, usual=32, least=8, epochs=3, batch=None)
    Length(epochs=3, batch=8, updates=75)
    """
    if batch is None:
        batch = min(max(int(amount * (epochs or EPOCHS) / UPDATES / accumulate), least), usual)
    an_epoch = math.ceil(amount / batch) / accumulate
    if epochs is None:
        epochs = min(max(math.ceil(UPDATES / an_epoch), EPOCHS), MOST_EPOCHS)
    return Length(epochs, batch, max(1, round(epochs * an_epoch)))


def with_chosen_length(recipe: R, amount: float, say: Callable[[str], None], *, smaller_helps: bool = True) -> R:
    """The recipe with what it leaves open about the length of the run filled in; `say` is told what and how much.

    `amount` is the size of the training data in the unit that a batch is counted in; `smaller_helps` is whether
    smaller batches make more updates. The recipe that comes back is the one to write down: a run that is resumed then
    has nothing to choose.
    """
    train: TrainSettings = recipe.train  # type: ignore[attr-defined]
    batch: BatchSection = recipe.batch  # type: ignore[attr-defined]
    key, usual, least = batch.chosen
    given: int | None = getattr(batch, key)
    least = least if smaller_helps and train.steps is None else usual
    found = choose_length(amount, usual, least, epochs=train.epochs, batch=given, accumulate=train.accumulate)
    updates = train.steps or found.updates
    chosen = [f"train.epochs={found.epochs:g}"] if train.epochs is None and train.steps is None else []
    chosen += [f"batch.{key}={found.batch}"] if given is None else []
    if chosen:
        say(f"chosen by the size of the data: {', '.join(chosen)}; about {updates:,} updates")
    if updates < FEW_UPDATES:
        say(f"warning: {_too_few(train, found, updates)}")
    epochs = train.epochs if train.steps is not None else found.epochs
    return recipe.model_copy(
        update={
            "train": train.model_copy(update={"epochs": epochs}),
            "batch": batch.model_copy(update={key: found.batch}),
        }
    )


def _too_few(train: TrainSettings, found: Length, updates: int) -> str:
    if train.steps is not None:
        more = f"train.steps={UPDATES}"
    else:
        more = f"train.epochs={math.ceil(found.epochs * UPDATES / updates)}"
    return f"about {updates} updates are too few to learn from: say -s {more}, or give more data"


def with_length_of(recipe: R, old: R) -> R:
    """The recipe with what it leaves to be chosen taken from the `old` run's, where it was chosen already."""
    batch = getattr(recipe, "batch", None)
    keys = [("train", "epochs")] + ([("batch", batch.chosen[0])] if isinstance(batch, BatchSection) else [])
    for section, key in keys:
        part: Section = getattr(recipe, section)
        if getattr(part, key) is None:
            filled = part.model_copy(update={key: getattr(getattr(old, section), key)})
            recipe = recipe.model_copy(update={section: filled})
    model: Any = getattr(recipe, "model", None)
    named = any(getattr(model, key, None) for key in ("vectors", "target_vectors"))
    if named and (model.takes_their_size or "embedding" not in model.model_fields_set):  # it was found in a file
        found = model.model_copy(update={"embedding": old.model.embedding})  # type: ignore[attr-defined]
        recipe = recipe.model_copy(update={"model": found})
    return recipe
