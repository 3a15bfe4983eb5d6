"""What the documents say of the code is true."""

import re
import tomllib
from pathlib import Path

import pytest

from elman.tasks import TASKS
from elman.tasks.language import LanguageRecipe
from elman.tasks.recipes import find_recipe, load_recipe, recipe_names
from elman.train.recipe import known_keys

ROOT = Path(__file__).parent.parent


def test_the_guide_has_every_key_of_a_recipe_and_no_other() -> None:
    guide = (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([a-z_]+\.[a-z_]+)` \| ([^|]*) \|", guide, flags=re.MULTILINE)
    assert [key for key, _ in told] == [key for key in known_keys(LanguageRecipe) if key != "task"]


def test_the_guide_has_the_defaults() -> None:
    guide = (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")
    default = LanguageRecipe().model_dump()
    for section, key, told in re.findall(r"^\| `([a-z_]+)\.([a-z_]+)` \| ([^|]*) \|", guide, flags=re.MULTILINE):
        value = default[section][key]
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)
        assert told.strip().lower() == shown.lower(), f"{section}.{key}"


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_that_comes_with_elman_is_valid(name: str) -> None:
    task = tomllib.loads(find_recipe(name).read_text(encoding="utf-8"))["task"]
    assert load_recipe(TASKS[task].Recipe, name).task == task


def test_the_documents_link_to_files_that_are_there() -> None:
    for document in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]:
        for link in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


def test_every_figure_of_the_documents_is_filled_in() -> None:
    for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        assert not re.findall(r"@[A-Z]+@", document.read_text(encoding="utf-8")), document.name


def test_the_map_names_files_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for name in re.findall(
        r"`((?:nn|corpora|train|tasks|text|decode|metrics|runtime|bench|cli|csrc)/[a-z_/]+\.[a-z]+)`", text
    ):
        assert (ROOT / "elman" / name).exists() or (ROOT / name).exists(), name


def test_constraints_pin_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    asked = [re.match(r"[a-z0-9-]+", requirement.lower()) for requirement in project["dependencies"]]
    assert {match.group() for match in asked if match} <= pinned
