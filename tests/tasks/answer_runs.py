"""Small runs of networks that answer questions about images; they take a second or two."""

from itertools import islice
from pathlib import Path

from PIL import Image

from elman.generated.shapes import question_rows, scenes

SMALL = (
    "model.features=pixels",
    "model.image_size=24",
    "model.image_hidden=8",
    "model.join_hidden=8",
    "model.hidden=8",
    "model.embedding=8",
    "batch.size=8",
    "train.steps=10",
    "train.log_every=1",
    "train.threads=1",
)


def write(path: Path, count: int = 24, split: str = "train") -> Path:
    """A table of questions about some scenes, whose pictures stand in the folder `images` beside it."""
    folder = path.parent / "images"
    folder.mkdir(exist_ok=True)
    lines = ["image\tquestion\tanswer\ttype"]
    for number, scene in enumerate(islice(scenes(split), count)):
        name = f"{split}-{number}.png"
        Image.fromarray(scene.draw()).save(folder / name)
        lines += ["\t".join((f"images/{name}", *row)) for row in question_rows(scene)]
    path.write_text("\n".join(lines) + "\n")
    return path
