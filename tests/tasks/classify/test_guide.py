"""The guide to classifiers says what the code does."""

import re
from pathlib import Path

from elman.tasks.classify import ClassifyRecipe
from elman.train.recipe import known_keys

GUIDE = Path(__file__).parents[3] / "docs" / "classify.md"
KEY = re.compile(r"^\| `([a-z_]+)\.([a-z_]+)` \| ([^|]*) \|", flags=re.MULTILINE)


def test_the_guide_has_every_key_with_its_default() -> None:
    told = KEY.findall(GUIDE.read_text(encoding="utf-8"))
    assert [f"{section}.{key}" for section, key, _ in told] == [k for k in known_keys(ClassifyRecipe) if k != "task"]
    default = ClassifyRecipe().model_dump()
    for section, key, shown in told:
        value = default[section][key]
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
        assert shown.strip().lower() == text.lower(), f"{section}.{key}"
