"""Recipes, of a file or of those that come with Elman, and the files that their data sections name."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol, TypeVar

import elman
from elman.corpora.catalogue import locate
from elman.errors import UserError, nearest
from elman.train.recipe import Section, apply_overrides, parse, read_toml

R = TypeVar("R", bound=Section)


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


def load_recipe(kind: type[R], source: Path | str | None, overrides: Iterable[str] = ()) -> R:
    """A task's recipe from a file, by name, or from nothing, with `section.key=value` settings laid over it."""
    path = find_recipe(source) if source is not None else None
    tables = read_toml(path) if path is not None else {}
    tables.pop("compare", None)  # which is for `elman compare` to read
    return parse(kind, apply_overrides(tables, overrides), where=str(path or "the settings"))


class Splits(Protocol):
    """What the data sections of all recipes have."""

    @property
    def corpus(self) -> str | None: ...

    @property
    def train(self) -> tuple[str, ...]: ...

    @property
    def dev(self) -> tuple[str, ...]: ...

    @property
    def test(self) -> tuple[str, ...]: ...


def find_files(data: Splits, data_dir: Path | None = None) -> dict[str, list[Path]]:
    """The files of each split: the user's own where given, else the corpus' of the catalogue."""
    given = {"train": data.train, "dev": data.dev, "test": data.test}
    files = {split: [Path(name) for name in names] for split, names in given.items() if names}
    if data.corpus is not None and not data.train:
        files = {**locate(data.corpus, data_dir), **files}
    if not files.get("train"):
        raise UserError("there is nothing to train on: give --train FILE, or a recipe with data.corpus")
    return files
