"""What the guides say of recipes is true."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from elman.tasks.adapting import BothSettings
from elman.tasks.caption import CaptionRecipe
from elman.tasks.classify import ClassifyRecipe
from elman.tasks.embed import EmbedRecipe
from elman.tasks.series import SeriesRecipe
from elman.tasks.tag import TagRecipe
from elman.tasks.translate import TranslateRecipe
from elman.tasks.tree import TreeRecipe
from elman.train.recipe import known_keys

DOCS = Path(__file__).parents[2] / "docs"
ROW = re.compile(r"^\| `([a-z_]+)\.([a-z_]+)` \| ([^|]*) \| ?(.*) \|$", flags=re.MULTILINE)
PLAIN = ("layers", "hidden", "epochs", "seed", "lowercase")  # keys that say it all


@pytest.mark.parametrize(
    ("guide", "recipe"),
    [
        ("classify.md", ClassifyRecipe),
        ("tag.md", TagRecipe),
        ("translate.md", TranslateRecipe),
        ("series.md", SeriesRecipe),
        ("trees.md", TreeRecipe),
        ("adapting.md", BothSettings),
        ("vectors.md", EmbedRecipe),
        ("captions.md", CaptionRecipe),
    ],
)
def test_a_guide_has_every_key_with_its_default_and_a_meaning(guide: str, recipe: type[BaseModel]) -> None:
    told = ROW.findall((DOCS / guide).read_text(encoding="utf-8"))
    keys = [key for key in known_keys(recipe) if key != "task"]
    if not any(section == "train" for section, *_ in told):  # it points to the guide that has them
        keys = [key for key in keys if not key.startswith("train.")]
    assert [f"{section}.{key}" for section, key, _, _ in told] == keys
    default = recipe().model_dump()
    for section, key, shown, meaning in told:
        value = default[section][key]
        expected = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
        assert shown.strip().lower() == expected.lower(), f"{section}.{key}"
        assert meaning.strip() or key in PLAIN, f"{section}.{key}"
