"""A run's folder: when it may be written to, what it is resumed from, what is reported. The same for every task."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from elman.errors import UserError
from elman.files import check_new_folder, write_text
from elman.tasks.folder import MEMBERS, AnyVocabulary, Config, write_config
from elman.tasks.lock import LOCK, locked
from elman.train.length import with_length_of
from elman.train.recipe import Section, differences, parse, read_toml, to_toml

MODEL_FILES = ("config.json", "tokenizer.json", "lexicon.json", "model.safetensors", "metrics.json", "README.md")
PICTURES = ("confusion.png", "forecast.png")  # those of a card
ADAPTING_FILES = ("adapting.json", "gradients.safetensors")
RUN_FILES = (*MODEL_FILES, *PICTURES, *ADAPTING_FILES, "log.jsonl", "curves.png")
STATE = "checkpoint/state.safetensors"
HEADING = "# The settings of the run in this folder, as Elman wrote them."

MAY_CHANGE = tuple(
    f"{key}:"
    for key in (
        *(f"train.{key}" for key in ("epochs", "steps", "patience", "checkpoint_seconds", "log_every", "threads")),
        *("sample.length", "sample.prompt"),
    )
)
"""What a run that goes on may be told anew: how long it is, and what does not change what it learns."""

R = TypeVar("R", bound=Section)


def saved_recipe(out: Path, kind: type[R]) -> R | None:
    """The recipe of the run in a folder, or None where there is no run."""
    if not is_run(out):
        return None
    path, task = out / "recipe.toml", getattr(kind.model_fields.get("task"), "default", None)
    tables = read_toml(path)
    if task is not None and tables.get("task", task) != task:
        raise UserError(
            f"{out} holds a run of the task '{tables['task']}', and this is one of '{task}': name another folder with "
            "--out, or start over with --force"
        )
    return parse(kind, tables, where=str(path))


def is_run(out: Path) -> bool:
    """Whether a folder holds a run that Elman wrote: a recipe alone may be the user's own, beside other files."""
    recipe = out / "recipe.toml"
    if not recipe.is_file():
        return False
    with recipe.open(encoding="utf-8", errors="replace") as text:
        return text.readline().rstrip() == HEADING or (out / STATE).exists() or (out / "config.json").exists()


def finished_report(out: Path, recipe: Section) -> dict[str, Any] | None:
    """The report of a run of this recipe that is done; None where there is none, or none that can be read."""
    old = saved_recipe(out, type(recipe))
    return None if old is None or with_length_of(recipe, old) != old else saved_report(out)


def saved_report(out: Path) -> dict[str, Any] | None:
    """What a folder's metrics.json holds; None where there is none, or none that can be read."""
    try:
        report = json.loads((out / "metrics.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # not there, or cut off as it was copied: the run makes it again
        return None
    return report if isinstance(report, dict) else None


@contextmanager
def run_folder(
    out: Path, recipe: R, *, resume: bool, force: bool, say: Callable[[str], None]
) -> Iterator[tuple[R, bool]]:
    """While inside, the folder is this run's alone; yields the recipe and whether there is a checkpoint to go on from.

    Of a run that is resumed, the recipe has what was chosen when it began.
    """
    check_folder(out, recipe, resume=resume, force=force)
    with locked(out, say):
        goes_on = check_folder(out, recipe, resume=resume, force=force)  # another process may just have left
        old = saved_recipe(out, type(recipe)) if resume else None
        yield (recipe if old is None else with_length_of(recipe, old)), goes_on


def check_folder(out: Path, recipe: Section, *, resume: bool, force: bool) -> bool:
    """Refuse to mix two runs, or to write over what is no run; returns whether there is a checkpoint to go on from."""
    check_new_folder(out)
    if force and is_run(out):  # of whatever task it is: it will be removed
        return False
    old = saved_recipe(out, type(recipe))
    if old is None and out.exists() and not is_empty(out):
        raise UserError(f"{out} is not empty and holds no run of Elman's: name another folder with --out")
    if resume:
        changed = differences(old, with_length_of(recipe, old)) if old is not None else []
        if changed := [change for change in changed if not change.startswith(MAY_CHANGE)]:
            free = ", ".join(name.removesuffix(":") for name in MAY_CHANGE)
            raise UserError(
                f"the run in {out} was begun with another recipe ({', '.join(changed[:3])}), and only {free} may "
                "change: leave the others out, or start over with --force"
            )
        return (out / STATE).exists()
    if old is not None and not force:
        raise UserError(f"{out} is not empty: go on with --resume, start over with --force, or name another folder")
    return False


def is_empty(folder: Path) -> bool:
    """Whether nothing is in a folder, but for what a killed process may have left."""
    return not {*folder.iterdir()} - {folder / LOCK, *_leftovers(folder)}


def check_place(folder: Path) -> None:
    """Refuse a place for a run in the folder of another that something else has taken, before that one is trained."""
    for path in (folder.parent, folder):
        if (path.exists() or path.is_symlink()) and not path.is_dir():
            raise UserError(f"{path} is in the way of this run's members: move it away")
    if folder.exists() and not (is_run(folder) or is_empty(folder) or (folder / "config.json").exists()):
        raise UserError(f"{folder} holds something else than a member of this run: move it away")


def prepare_folder(out: Path, recipe: Section) -> None:
    """A folder for a new run, with its recipe; the old one that may be in it is removed."""
    if is_run(out):
        data = getattr(recipe, "data", None)
        for key, folder in (("folds", "folds"), ("unlabelled", "stages")):
            if not getattr(data, key, None):  # else they are seen to where they are trained
                clear_runs(out / folder)
        clear_run(out)
    write_recipe(out, recipe)


def write_recipe(out: Path, recipe: Section) -> None:
    """Write recipe.toml."""
    write_text(out / "recipe.toml", f"{HEADING}\n{to_toml(recipe)}")


def clear_run(out: Path) -> None:
    """Remove a run and those of its members: what Elman wrote, and nothing else that may be there.

    Its recipe stays, by which a folder is known as a run's: whoever is killed in here can start over.
    """
    remove_leftovers(out)
    clear_runs(out / MEMBERS)
    for path in [*(out / name for name in (*RUN_FILES, STATE)), *out.glob("tensorboard/events.*")]:
        if path.is_file():
            path.unlink()
    for folder in (out / "checkpoint", out / "tensorboard"):
        with suppress(OSError):  # the user has put something there
            folder.rmdir()


def clear_runs(folder: Path) -> None:
    """Remove the runs in a folder that belong to another: those of folds, of stages, of members of an ensemble.

    Of a link only itself: what it leads to is another's. Members may have been saved without a run around them.
    """
    if folder.is_symlink():
        folder.unlink()
        return
    saved = [path for path in folder.glob("[1-9]*") if folder.name == MEMBERS and (path / "config.json").is_file()]
    for run in {*saved, *(path for path in folder.glob("*") if is_run(path))}:
        if run.is_symlink():
            run.unlink()
            continue
        clear_run(run)
        for name in (LOCK, "recipe.toml"):
            (run / name).unlink(missing_ok=True)
        with suppress(OSError):  # the user has put something there
            run.rmdir()
    with suppress(OSError):
        folder.rmdir()


def is_removed(path: Path, out: Path) -> bool:
    """Whether a path goes where the run of a folder is started over."""
    path, out = path.resolve(), out.resolve()
    if path == out or not path.is_relative_to(out):
        return path == out
    own = {MEMBERS, "folds", "stages", "checkpoint", "tensorboard", *RUN_FILES}
    return path.relative_to(out).parts[0] in own


def remove_leftovers(out: Path) -> None:
    """Files that a kill left half-written beside the ones they were to replace."""
    for path in _leftovers(out):
        path.unlink(missing_ok=True)


def _leftovers(out: Path) -> list[Path]:
    """Those that Elman's own writing leaves, and those of safetensors."""
    return [path for place in (out, out / "checkpoint") for name in (".*.tmp", ".tmp*") for path in place.glob(name)]


def open_folder(out: Path, recipe: Section, config: Config, vocabulary: AnyVocabulary | None, *, resume: bool) -> None:
    """Make the folder ready: for a new run with its recipe, config and vocabulary, else as a kill may have left it.

    A checkpoint may come before the first model: what is read to go on from it is there from the beginning.
    """
    if resume:
        remove_leftovers(out)
    else:
        prepare_folder(out, recipe)
        write_config(out, config.task, config)
        if vocabulary is not None:
            vocabulary.save(out / "tokenizer.json")
