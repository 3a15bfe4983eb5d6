"""tests/course_ledger.toml: every item of the course notes is shown by something, and that something is there."""

import ast
import importlib
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from elman.tasks import TASKS
from elman.tasks.recipes import recipe_names
from elman.train.recipe import known_keys
from tests.course_page import FENCE
from tests.test_equations import found

ROOT = Path(__file__).parents[1]
LEDGER = {"open": []} | tomllib.loads((ROOT / "tests" / "course_ledger.toml").read_text(encoding="utf-8"))
ROWS = [(part["title"], item) for part in LEDGER["part"] for item in part["items"]]
NOTES = re.compile(r"(all|M1|M2|C|B|W)\b")


@cache
def commands() -> list[str]:
    """The commands of the pages that are run."""
    text = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("course.md", "examples.md"))
    return [line[2:] for block in FENCE.findall(text) for line in block[2].splitlines() if line.startswith("$ ")]


@cache
def named_tests(file: str) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def check_key(task: str, told: str) -> None:
    """A key of a task's recipe; where a value is said, the recipe takes it."""
    key, _, value = told.partition("=")
    recipe = TASKS[task].Recipe
    assert key in known_keys(recipe), f"{task} has no key {key}"
    if value:
        section, name = key.split(".")
        field = known_field(recipe, section, name)
        assert value in re.findall(r"'([^']+)'", str(field.annotation)), f"{key} cannot be {value}"


def known_field(recipe: Any, section: str, name: str) -> Any:
    """The field of a key."""
    return recipe.model_fields[section].annotation.model_fields[name]


def importable(name: str) -> Any:
    """A module, or what a module has."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return found(name)


def check(told: str) -> None:
    """What is named is there."""
    if told.startswith("$ "):
        assert any(command.startswith(told[2:]) for command in commands()), f"no page runs {told}"
    elif told.startswith("tests/"):
        file, _, name = told.partition("::")
        assert name in named_tests(file), told
    elif told.startswith("docs/"):
        assert (ROOT / told).is_file(), told
    elif told.startswith("recipe: "):
        assert told.removeprefix("recipe: ") in recipe_names(), told
    elif told.startswith("elman."):
        assert importable(told) is not None
    else:
        task, _, key = told.partition(": ")
        check_key(task, key)


@pytest.mark.parametrize(("part", "item"), [pytest.param(*row, id=row[1]["what"][:60]) for row in ROWS])
def test_what_shows_an_item_is_there(part: str, item: dict[str, Any]) -> None:
    assert NOTES.match(item["notes"]) and item["what"] and item["shown"], part
    for told in item["shown"]:
        check(told)


def test_the_ledger_is_whole() -> None:
    """Each item once, of every set of notes, and no open item that is shown already."""
    items = [item["what"] for _, item in ROWS] + [item["what"] for item in LEDGER["open"]]
    assert len(items) == len(set(items)) > 134
    for letter in ("M1", "C", "B", "W", "M2"):
        assert sum(bool(re.search(rf"\b{letter}\b", item["notes"])) for _, item in ROWS) > 10, letter
    assert all(set(item) == {"notes", "what"} for item in LEDGER["open"])


def test_the_page_says_what_is_missing() -> None:
    page = (ROOT / "docs" / "course.md").read_text(encoding="utf-8").partition("\n## Not here yet\n")[2]
    told = re.findall(r"^\| (.*) \| (.*) \|$", page, flags=re.MULTILINE)
    assert told[1:] == [(one["notes"], one["what"]) for one in LEDGER["open"]]


@pytest.mark.parametrize(
    "told", ["elman.nn.NoSuchCell", "lm: model.celll", "lm: model.cell=lst", "$ elman lab nothing", "recipe: none"]
)
def test_what_is_not_there_is_noticed(told: str) -> None:
    with pytest.raises((AssertionError, AttributeError)):
        check(told)
