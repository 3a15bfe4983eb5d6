"""The recipes that come with Elman, found by name."""

from pathlib import Path

import elman
from elman.errors import UserError, nearest


def recipe_folder() -> Path:
    """Beside the package in a checkout, inside it once installed."""
    package = Path(elman.__file__).parent
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parent / "recipes"


def recipe_names() -> list[str]:
    """The names that can stand in the place of a recipe's file.

    >>> "tinyshakespeare" in recipe_names()
    True
    """
    return sorted(path.stem for path in recipe_folder().glob("*.toml"))


def find_recipe(source: Path | str) -> Path:
    """The file of a recipe, given as a path or as a name."""
    path = Path(source)
    if path.is_file():
        return path
    named = recipe_folder() / f"{source}.toml"
    if path.name == str(source) and named.exists():
        return named
    raise UserError(f"no recipe '{source}': {nearest(str(source), recipe_names())}")
