"""A run's folder: when it may be written to, what it is resumed from, what is reported. The same for every task."""

import shutil
from pathlib import Path
from typing import TypeVar

from elman.errors import UserError
from elman.files import write_text
from elman.tasks.folder import Vocabulary
from elman.train import Trainer
from elman.train.recipe import Section, differences, parse, read_toml, to_toml

MODEL_FILES = ("config.json", "tokenizer.json", "lexicon.json", "model.safetensors", "metrics.json", "README.md")
RUN_FILES = (*MODEL_FILES, "recipe.toml", "log.jsonl", "curves.png", "confusion.png", "checkpoint", "tensorboard")

R = TypeVar("R", bound=Section)


def saved_recipe(out: Path, kind: type[R]) -> R | None:
    """The recipe of the run in a folder, or None where there is no run."""
    path = out / "recipe.toml"
    return parse(kind, read_toml(path), where=str(path)) if path.exists() else None


def check_folder(out: Path, recipe: Section, *, resume: bool, force: bool) -> bool:
    """Refuse to mix two runs, or to write over what is no run; returns whether there is a checkpoint to go on from."""
    if out.exists() and not out.is_dir():
        raise UserError(f"{out} is a file: name a folder for the run with --out")
    old = saved_recipe(out, type(recipe))
    if resume:
        changed = differences(old, recipe) if old is not None else []
        if changed:
            raise UserError(
                f"the run in {out} has another recipe ({changed[0]}): resume without changes, or use --force"
            )
        return (out / "checkpoint" / "state.safetensors").exists()
    if out.exists() and any(out.iterdir()):
        if old is None:
            raise UserError(f"{out} is not empty and holds no run of Elman's: name another folder with --out")
        if not force:
            raise UserError(f"{out} is not empty: go on with --resume, start over with --force, or name another folder")
    return False


def prepare_folder(out: Path, recipe: Section) -> None:
    """An empty folder for a new run; of an old run only what Elman wrote is removed."""
    if (out / "recipe.toml").exists():
        for name in RUN_FILES:
            path = out / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    write_text(out / "recipe.toml", to_toml(recipe))


def remove_leftovers(out: Path) -> None:
    """Files that a kill left half-written beside the ones they were to replace."""
    for path in [*out.glob(".*.tmp"), *out.glob("checkpoint/.*.tmp")]:
        path.unlink(missing_ok=True)


def open_folder(out: Path, recipe: Section, vocabulary: Vocabulary, *, resume: bool) -> None:
    """Make the folder ready: for a new run with its recipe and vocabulary, else as a kill may have left it."""
    if resume:
        remove_leftovers(out)
    else:
        prepare_folder(out, recipe)
        vocabulary.save(out / "tokenizer.json")


def run_facts(trainer: Trainer) -> dict[str, float]:
    """What a report says of the run."""
    return {
        "seconds": trainer.seconds,
        "steps": trainer.step,
        "epochs": trainer.batches.progress,
        f"{trainer.task.unit}_per_second": trainer.tokens / max(trainer.seconds, 1e-9),
    }
