"""A trained model as a folder of its own: what `elman.load` needs, without the run around it."""

from pathlib import Path

from elman.errors import UserError
from elman.files import write_text
from elman.tasks import load
from elman.tasks.run import MODEL_FILES

ROUNDED = (
    "The weights are rounded to 8-bit integers, one scale a row. The scores on this page are those of the model before "
    "rounding; `elman evaluate` gives this one's.\n\n"
)


def export(model: Path | str, out: Path | str, *, int8: bool = False) -> Path:
    """Write the model of a folder to the new folder `out`, with `int8` a quarter of the size."""
    source, out = Path(model), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} is there already: name a new folder with --out")
    loaded = load(source)
    chosen = loaded.to_int8() if int8 else loaded
    out.mkdir(parents=True, exist_ok=True)
    if (source / "metrics.json").exists():
        write_text(out / "metrics.json", (source / "metrics.json").read_text(encoding="utf-8"))
    if (source / "README.md").exists():
        card = (source / "README.md").read_text(encoding="utf-8").replace(source.resolve().name, out.resolve().name)
        heading, blank, rest = card.partition("\n\n")
        write_text(out / "README.md", heading + blank + (ROUNDED if int8 else "") + rest)
    chosen.save(out)
    return out


def model_bytes(folder: Path | str) -> int:
    """The size of a model folder's own files; a run's log and checkpoint are not counted."""
    return sum(path.stat().st_size for name in MODEL_FILES if (path := Path(folder) / name).exists())
