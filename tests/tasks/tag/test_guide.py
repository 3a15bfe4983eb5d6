"""What the guide says of a tagger's recipe is true."""

import re
from pathlib import Path

from elman.tasks.tag import TagRecipe
from elman.train.recipe import known_keys

GUIDE = Path(__file__).parents[3] / "docs" / "tag.md"
ROW = re.compile(r"^\| `([a-z_]+)\.([a-z_]+)` \| ([^|]*) \| (.*) \|$", flags=re.MULTILINE)


def test_the_guide_has_every_key_with_its_default_and_a_meaning() -> None:
    told = ROW.findall(GUIDE.read_text(encoding="utf-8"))
    keys = [key for key in known_keys(TagRecipe) if key != "task" and not key.startswith("train.")]
    assert [f"{section}.{key}" for section, key, _, _ in told] == keys
    default = TagRecipe().model_dump()
    for section, key, shown, meaning in told:
        value = default[section][key]
        expected = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
        assert shown.strip().lower() == expected.lower(), f"{section}.{key}"
        assert meaning.strip() or key in ("layers", "hidden")
