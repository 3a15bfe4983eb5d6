"""Recipes, of a file or of those that come with Elman, and the files that their data sections name."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import elman
from elman.corpora.catalogue import locate
from elman.errors import UserError, nearest
from elman.records.paths import STANDARD_INPUT, on_disk, standard_input
from elman.tasks.sections import DataSection
from elman.tasks.transfer import FOLDERS, LANGUAGE_MODELS, followed
from elman.train.recipe import Section, Settings, apply_overrides, parse, read_toml

R = TypeVar("R", bound=Section)


def recipe_folder() -> Path:
    """Beside the package in a checkout, inside it once installed."""
    package = Path(elman.__file__).parent
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parent / "recipes"


def recipe_names(task: str | None = None) -> list[str]:
    """The names that can stand in the place of a recipe's file, those for one task where it is given."""
    paths = recipe_folder().glob("*.toml")
    return sorted(path.stem for path in paths if task is None or read_toml(path).get("task") == task)


def find_recipe(source: Path | str, task: str | None = None) -> Path:
    """The file of a recipe, given as a path or as a name; one for the task, where that is known, is proposed."""
    path = Path(source)
    if path.is_file():
        return path
    named = recipe_folder() / f"{source}.toml"
    if path.name == str(source) and named.exists():
        return named
    if path.is_dir():
        raise UserError(
            f"{source} is a folder and no recipe: name each file or folder to train on with a --train of its own"
        )
    raise UserError(f"no recipe '{source}': {nearest(str(source), recipe_names(task))}")


def check_made(key: str, folder: Path | str, task: str) -> None:
    """Refuse a folder that is not there by the command that makes it, where a recipe of its name comes with Elman."""
    place = Path(folder)
    recipe = recipe_folder() / f"{place.name}.toml"
    if place.exists() or not recipe.is_file() or read_toml(recipe).get("task") != task:
        return
    shown = place.relative_to(Path.cwd()) if place.is_relative_to(Path.cwd()) else place
    raise UserError(f"{key}: {shown} is not there: make it with elman train {task} {place.name} --out {shown}")


def load_recipe(kind: type[R], source: Path | str | None, settings: Settings = ()) -> R:
    """A task's recipe from a file, by name, or from nothing, with settings laid over it."""
    path = find_recipe(source) if source is not None else None
    tables = read_toml(path) if path is not None else {}
    tables.pop("compare", None)  # which is for `elman compare` to read
    return settled(kind, tables, settings, path)


def settled(kind: type[R], tables: Mapping[str, Any], settings: Settings, path: Path | str | None = None) -> R:
    """The recipe of some tables with settings laid over it, and with what follows from language models it names."""
    whole = lay_over(tables, settings, path)
    # Of a recipe that does not name a language model itself, only what is said over it was said knowing of one.
    named = tables.get("model")
    knows = isinstance(named, Mapping) and any(named.get(key) for key in LANGUAGE_MODELS)
    asked = whole if knows else apply_overrides({}, settings)
    recipe = parse(kind, followed(kind, whole, asked), where=str(path or "the settings"))
    transfer: Any = getattr(recipe, "transfer", None)
    if transfer is not None and transfer != type(transfer)() and not recipe.data.unlabelled:  # type: ignore[attr-defined]
        raise UserError("the settings of transfer are for unlabelled texts: give --unlabelled FILES")
    return recipe


def lay_over(tables: Mapping[str, Any], settings: Settings, where: Path | str | None = None) -> dict[str, Any]:
    """The tables of a recipe with settings over it, of which the data are another's once they name their own.

    >>> lay_over({"data": {"corpus": "names", "unit": "line"}}, {"data.train": ["my.txt"]})
    {'data': {'unit': 'line', 'train': ['my.txt']}}
    """
    given = apply_overrides({}, settings)
    one_source(tables, where)
    one_source(given)
    hidden = _hidden(tables, given)
    kept = {
        key: {name: entry for name, entry in value.items() if name not in hidden} if key == "data" and hidden else value
        for key, value in tables.items()
    }
    try:
        return apply_overrides(kept, given)
    except UserError as error:  # the settings were right by themselves
        raise UserError(f"{where or 'the recipe'}: {error}") from None


def one_source(tables: Mapping[str, Any], where: Path | str | None = None) -> None:
    """Refuse a corpus of the catalogue and files beside it, of which one would have to be ignored."""
    data = _data(tables)
    if data.get("corpus") is not None and data.get("train"):
        both = f"{where} has both data.corpus and data.train" if where else "both data.corpus and --train are given"
        raise UserError(f"{both}, and a run trains on one of them: leave one out")


def replaced(recipe: Path | str | None, settings: Settings) -> str | None:
    """A line that says what of a recipe's own data is not used, because the user gave others; None where all is."""
    if recipe is None:
        return None
    tables, given = read_toml(find_recipe(recipe)), apply_overrides({}, settings)
    hidden = _hidden(tables, given)
    if not hidden:
        return None
    own = corpus_words(_data(tables)["corpus"]) if "corpus" in hidden else "the files"
    return f"your data take the place of {own} that the recipe {recipe} names"


def _hidden(tables: Mapping[str, Any], given: Mapping[str, Any]) -> set[str]:
    """The keys of a recipe's data that those of the user stand in the place of."""
    own, data = _data(tables), _data(given)
    if data.get("train"):
        return {"corpus"} if own.get("corpus") is not None else set()
    if data.get("corpus") is not None:
        return {split for split in ("train", "dev", "test") if own.get(split)} if own.get("train") else set()
    return set()


def corpus_words(corpus: str | Sequence[str]) -> str:
    """One corpus, or several, in words.

    >>> corpus_words("names"), corpus_words(["brown", "wikitext2"])
    ("the corpus 'names'", "the corpora 'brown', 'wikitext2'")
    """
    names = [corpus] if isinstance(corpus, str) else corpus
    return f"the corp{'us' if len(names) == 1 else 'ora'} {', '.join(map(repr, names))}"


def _data(tables: Mapping[str, Any]) -> Mapping[str, Any]:
    data = tables.get("data")
    return data if isinstance(data, Mapping) else {}


FROM_MODEL = (*FOLDERS, "features")


def paths_named(recipe: Any) -> list[Path]:
    """The folders and files that a run begins with, but for its data."""
    sections = {name: getattr(recipe, name, None) for name in ("text", "train", "model")}
    keys = [("text", "same_as"), ("train", "start"), *(("model", key) for key in FROM_MODEL)]
    given = [getattr(sections[name], key, None) for name, key in keys]
    each = [path for one in given for path in (one if isinstance(one, tuple | list) else [one])]
    return [Path(path) for path in each if isinstance(path, str)]


def without_files(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe without the names of files and folders, which mean nothing on another machine.

    >>> without_files({"data": {"train": ["/home/me/a.txt"], "unit": "line"}, "model": {"vectors": "/home/me/v.txt"}})
    {'data': {'unit': 'line'}, 'model': {'vectors': 'v.txt'}}
    """
    kept = {key: dict(value) if isinstance(value, Mapping) else value for key, value in recipe.items()}
    data, text, model = kept.get("data"), kept.get("text"), kept.get("model")
    if isinstance(data, dict):
        files = ("train", "dev", "test", "unlabelled", "images")
        kept["data"] = {key: value for key, value in data.items() if key not in files}
    # That there was one is part of what the model is.
    for section, key in ((text, "same_as"), (kept.get("train"), "start"), *((model, key) for key in FROM_MODEL)):
        if isinstance(section, dict) and isinstance(section.get(key), str):
            section[key] = Path(section[key]).name
        elif isinstance(section, dict) and isinstance(section.get(key), list | tuple):
            section[key] = [Path(name).name for name in section[key]]
    return kept


def find_files(
    data: DataSection, data_dir: Path | str | None = None, *, train_in_memory: bool = False
) -> dict[str, list[Path]]:
    """The files of each split: the user's own where there are such, else those of the corpora of the catalogue."""
    given = {"train": data.train, "dev": data.dev, "test": data.test}
    files = {split: [Path(name) for name in names] for split, names in given.items() if names}
    known: dict[str, list[Path]] = {}
    for name in () if data.train or train_in_memory else data.corpora:
        for split, paths in locate(name, data_dir).items():
            known.setdefault(split, []).extend(paths)
    files = {**known, **files}
    if not files.get("train") and not train_in_memory:
        raise UserError("there is nothing to train on: give --train FILE, or a recipe with data.corpus")
    return files


def check_named(data: DataSection) -> None:
    """Refuse to look for the data of a model that does not say what they were."""
    if not data.corpora and not data.train:
        raise UserError("the model's folder does not name them, since they were in memory, or it was exported")
    if _is_piped(data):
        raise UserError("it learned from standard input, which is gone")


def check_there_again(data: DataSection) -> None:
    """Refuse to go on with a run whose data are gone: those in memory, and those of a pipe that is not there again."""
    if not data.corpora and not data.train:
        raise UserError("the records of this run were in memory: give them again, as they were given to fit")
    if _is_piped(data):
        again = UserError("this run learned from a pipe: pipe the same data again")
        if standard_input().isatty():
            raise again
        try:
            on_disk(STANDARD_INPUT)
        except UserError:
            raise again from None


def _is_piped(data: DataSection) -> bool:
    return str(STANDARD_INPUT) in (*data.train, *data.dev, *data.test)
