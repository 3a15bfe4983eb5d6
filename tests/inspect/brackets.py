"""Text in which a bracket is open or not, and a model that has learned when it closes."""

import random
from pathlib import Path

from elman.tasks.language import LanguageModel
from tests.tasks.runs import run


def brackets(count: int, seed: int) -> str:
    """Letters that are the same inside brackets and outside, so that only what was read before tells which."""
    chance = random.Random(seed)

    def letters() -> str:
        return "".join(chance.choices("abc", k=chance.randint(2, 9)))

    return "".join(f"{letters()}({letters()})" + "\n" * (chance.random() < 0.1) for _ in range(count))


def trained(folder: Path) -> LanguageModel:
    """A small model of such text."""
    (folder / "brackets.txt").write_text(brackets(1000, 0))
    (folder / "held.txt").write_text(brackets(200, 1))
    settings = ("model.cell=lstm", "batch.size=16", "batch.steps=32", "train.lr=0.01", "train.steps=100")
    return run(folder / "brackets.txt", folder / "model", *settings, "train.log_every=100")
