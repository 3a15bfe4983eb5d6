"""A trained model as a folder of its own: what `elman.load` needs, without the run around it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

from elman.errors import UserError, nearest
from elman.files import reading, write_bytes, writing
from elman.tasks import load
from elman.tasks.embed import load_vectors
from elman.tasks.ensemble import with_ensemble
from elman.tasks.folder import Config, member_folders, read_config
from elman.tasks.recipes import without_files
from elman.tasks.report import renamed
from elman.tasks.run import MODEL_FILES, PICTURES
from elman.tasks.transfer import without_folders
from elman.text.vector_files import Format, write_vectors

ROUNDED = (
    "The weights are rounded to 8-bit integers, one scale a row. The scores on this page are those of the model before "
    "rounding; `elman evaluate` gives this one's.\n\n"
)


def export(model: Path | str, out: Path | str, *, int8: bool = False, ensemble: Sequence[Path | str] = ()) -> Path:
    """Write the model of a folder to the new folder `out`, with `int8` a quarter of the size.

    Names of files stay behind, which mean nothing on another machine. A file of word vectors becomes a folder too.
    `ensemble` are folders of further models to average with: all of them are then one.
    """
    source, out = Path(model), Path(out)
    with writing(out):
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise UserError(f"{out} is there already: name a new folder with --out")
        loaded = with_ensemble(load_vectors(source) if source.is_file() else load(source), ensemble)
        chosen = loaded.to_int8() if int8 else loaded
        for one in chosen.members:
            one.config = _without_files(one.config)
        beside = {} if ensemble else _files_beside(source, out, int8)  # all is read before anything is written
        out.mkdir(parents=True, exist_ok=True)
    for name, content in beside.items():
        write_bytes(out / name, content)
    chosen.write(out)
    return out


def export_vectors(model: Path | str, out: Path | str, format: Format = "word2vec") -> Path:
    """Write word vectors, of a folder or a file, to the file `out`: as those of word2vec (text, binary) or of GloVe."""
    out = Path(out)
    if format not in get_args(Format):
        raise UserError(f"there is no format {format!r}: {nearest(format, get_args(Format))}")
    if out.exists():
        raise UserError(f"{out} is there already: name a new file with --out")
    if Path(model).is_dir() and (task := read_config(Path(model), Config).task) != "embed":
        raise UserError(f"{model} holds a model for the task '{task}': --format is for word vectors, leave it out")
    write_vectors(out, load_vectors(model).vectors, format)
    return out


def _without_files(config: Any) -> Any:
    """A config that names no files of this machine."""
    return config.model_copy(update={"recipe": without_files(config.recipe), "model": without_folders(config.model)})


def _files_beside(source: Path, out: Path, int8: bool) -> dict[str, bytes]:
    """The scores, the card and its picture, where there are any."""
    files = {"metrics.json": _content(source / "metrics.json")} if (source / "metrics.json").exists() else {}
    if (source / "README.md").exists():
        written = _content(source / "README.md").decode(errors="replace")  # a card is for eyes: nothing depends on it
        card = renamed(written, source, out).replace("`recipe.toml`", "`config.json`")
        heading, blank, rest = card.partition("\n\n")
        files["README.md"] = (heading + blank + (ROUNDED if int8 else "") + rest).encode()
        shown = [name for name in PICTURES if f"({name})" in card and (source / name).exists()]
        files |= {name: _content(source / name) for name in shown}
    return files


def _content(path: Path) -> bytes:
    with reading(path):
        return path.read_bytes()


def model_bytes(folder: Path | str) -> int:
    """The size of a model folder's own files; a run's log and checkpoint are not counted."""
    own = sum(path.stat().st_size for name in MODEL_FILES if (path := Path(folder) / name).exists())
    return own + sum(map(model_bytes, member_folders(Path(folder))))
