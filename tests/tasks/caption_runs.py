"""Small captioners that take a second or two: a coloured square on white, and which colour it has."""

from pathlib import Path
from typing import Any

import numpy as np

from elman.tasks.caption import Captioner, CaptionRecipe
from elman.tasks.recipes import load_recipe
from elman.train.loop import Trainer
from tests.tasks.runs import run_task, task_trainer

COLOURS = {"red": (220, 30, 30), "green": (30, 180, 30), "blue": (30, 30, 220)}
SMALL = (
    "model.features=pixels",
    "model.image_size=16",
    "model.image_hidden=16",
    "model.image_dropout=0",
    "model.hidden=16",
    "model.embedding=16",
    "model.input_dropout=0",
    "model.output_dropout=0",
    "loss.smoothing=0",
    "batch.size=6",
    "train.lr=0.02",
    'train.average="none"',
    "train.log_every=1",
    "train.threads=1",
)


def images(folder: Path, count: int = 24) -> Path:
    """Images with two captions each, and their captions file."""
    from PIL import Image

    chance, rows = np.random.default_rng(5), ["image\tcaption"]
    for number in range(count):
        colour = list(COLOURS)[number % len(COLOURS)]
        picture = np.full((16, 16, 3), 255, np.uint8)
        y, x = chance.integers(0, 9, 2)
        picture[y : y + 7, x : x + 7] = COLOURS[colour]
        Image.fromarray(picture).save(folder / f"{number}.png")
        rows += [f"{number}.png\tA {colour} square .", f"{number}.png\tthis is {colour}"]
    path = folder / "captions.tsv"
    path.write_text("\n".join(rows) + "\n")
    return path


def recipe(path: Path, *settings: str) -> CaptionRecipe:
    """The small recipe on a captions file, which is held out too, with settings laid over it."""
    data = f'data.train=["{path}"]', f'data.dev=["{path}"]'
    return load_recipe(CaptionRecipe, None, [*SMALL, *data, *settings])


def run(path: Path, out: Path, *settings: str, **options: Any) -> Captioner:
    """Train, and load what came of it."""
    return run_task("caption", recipe(path, *settings), out, **options)  # type: ignore[no-any-return]


def trainer(path: Path, out: Path, *settings: str) -> Trainer:
    """A trainer as a run makes it, for tests that stop it."""
    return task_trainer("caption", recipe(path, *settings), out)
