"""How long a run is where its recipe does not say."""

import re
from typing import Any

import pytest

from elman.tasks.classify import ClassifyRecipe
from elman.tasks.language import LanguageRecipe
from elman.tasks.tag import TagRecipe
from elman.tasks.translate import TranslateRecipe
from elman.train.length import FEW_UPDATES, MOST_EPOCHS, UPDATES, choose_length, with_chosen_length, with_length_of

RECIPES = (LanguageRecipe, ClassifyRecipe, TagRecipe, TranslateRecipe)


def settled(kind: Any, amount: float, **sections: Any) -> tuple[Any, list[str]]:
    said: list[str] = []
    return with_chosen_length(kind.model_validate(sections), amount, said.append), said


@pytest.mark.parametrize("kind", RECIPES)
def test_large_data_have_ten_epochs_and_the_usual_batch(kind: Any) -> None:
    recipe, said = settled(kind, 10_000_000)
    assert recipe.train.epochs == 10
    assert recipe.batch.amount == {"translate": 2048}.get(recipe.task, 32)
    assert len(said) == 1
    assert "train.epochs=10" in said[0]
    assert f"batch.{recipe.batch.chosen[0]}={recipe.batch.amount}" in said[0]


@pytest.mark.parametrize("kind", RECIPES)
def test_small_data_have_smaller_batches_and_then_more_epochs(kind: Any) -> None:
    _, usual, least = kind().batch.chosen
    medium, _ = settled(kind, UPDATES * usual / 20)  # half of what ten epochs of usual batches need
    assert medium.train.epochs == 10
    assert medium.batch.amount == usual // 2
    small, _ = settled(kind, UPDATES * least / 20)
    assert small.batch.amount == least
    assert small.train.epochs == 20
    tiny, _ = settled(kind, least)
    assert tiny.train.epochs == MOST_EPOCHS


def test_what_is_said_holds_and_the_other_goes_with_it() -> None:
    assert choose_length(300, 32, 8, epochs=None, batch=32).epochs == MOST_EPOCHS
    assert choose_length(300, 32, 8, epochs=2, batch=None).batch == 8
    told, said = settled(ClassifyRecipe, 100_000, train={"epochs": 2}, batch={"size": 64})
    assert (told.train.epochs, told.batch.size, said) == (2, 64, [])


def test_steps_leave_no_epochs_to_choose() -> None:
    recipe, said = settled(ClassifyRecipe, 300, train={"steps": 200})
    assert recipe.train.epochs is None
    assert said == ["chosen by the size of the data: batch.size=32; about 200 updates"]


@pytest.mark.parametrize(
    "sections",
    [
        {"train": {"epochs": 1}, "batch": {"size": 32}},
        {"train": {"steps": 20}},
        {"train": {"accumulate": 16}, "batch": {"size": 32}},
        {"train": {"epochs": 0.5}},
    ],
)
def test_a_run_too_short_to_learn_is_told_what_to_type(sections: dict[str, Any]) -> None:
    _, said = settled(ClassifyRecipe, 300, **sections)
    found = re.search(r"warning: about (\d+) updates .* -s train\.(\w+)=(\d+)", said[-1])
    assert found is not None
    assert int(found[1]) < FEW_UPDATES
    typed = {**sections, "train": {**sections["train"], found[2]: int(found[3])}}
    _, said = settled(ClassifyRecipe, 300, **typed)
    assert not any("warning" in line for line in said)


def test_a_settled_recipe_has_nothing_left_to_choose() -> None:
    for kind in RECIPES:
        recipe, _ = settled(kind, 500)
        assert with_chosen_length(recipe, 500, pytest.fail) == recipe
        assert with_length_of(kind(), recipe) == recipe
    other = ClassifyRecipe.model_validate({"train": {"epochs": 3}})
    assert with_length_of(other, settled(ClassifyRecipe, 500)[0]).train.epochs == 3


def test_epochs_that_are_given_and_accumulated_batches_count() -> None:
    assert settled(ClassifyRecipe, 1_000, train={"epochs": 100})[0].batch.size == 32
    many, said = settled(ClassifyRecipe, 1_000, train={"accumulate": 4})
    assert many.batch.size == 8
    assert "about 625 updates" in said[0]


def test_where_smaller_batches_make_no_more_updates() -> None:
    said: list[str] = []
    recipe = LanguageRecipe.model_validate({"batch": {"bptt": "full"}})
    chosen = with_chosen_length(recipe, recipe.batch.amount, said.append, smaller_helps=False)
    assert (chosen.batch.size, chosen.train.epochs) == (32, MOST_EPOCHS)
    assert "about 40 updates" in said[0]
    assert "too few" in said[1]
