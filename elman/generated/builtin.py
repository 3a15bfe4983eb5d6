"""What needs no download: what is made with packages, of Python's library or by rule, or ships in a package."""

import csv
import platform
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from elman.cache import cache_folder, writing_to_cache
from elman.errors import UserError
from elman.files import write_aside
from elman.generated.agreement import agreement
from elman.generated.dates import date_parts
from elman.generated.docstrings import docstring_parts
from elman.generated.entities import SIZES, entities
from elman.generated.formulas import formulas
from elman.generated.listops import list_operations
from elman.generated.numbers import number_parts
from elman.generated.shapes import SPLITS, Scene, caption_rows, question_rows, scenes
from elman.generated.surnames import surnames
from elman.generated.waves import waves
from elman.records.labelled import LabelledText
from elman.records.pairs import write_pairs
from elman.records.tagged import write_tagged

MAKERS = {"surnames": "Faker", "entities": "Faker", "dates": "Babel", "sunspots": "statsmodels", "co2": "statsmodels"}
MAKERS |= {"shapes-captions": "Pillow", "shapes-questions": "Pillow"}
"""The package that each is made with, or that has it inside."""
EXTRA = {"Faker": "demo", "Babel": "demo", "Pillow": "vision"}  # with which they are installed
MODULES = {"Pillow": "PIL"}  # whose names are not those of their packages
INSIDE = {"sunspots": "datasets/sunspots/sunspots.csv", "co2": "datasets/co2/co2.csv"}
"""Where in its package a corpus is."""
MADE_VERSION = 1  # to be raised when other names, sentences or pairs are made


def can_make(name: str) -> bool:
    """Whether what the corpus is made with is installed.

    >>> can_make("numbers"), can_make("surnames") == (find_spec("faker") is not None)
    (True, True)
    """
    return name not in MAKERS or find_spec(MODULES.get(MAKERS[name], MAKERS[name].lower())) is not None


def make_files(name: str) -> dict[str, list[Path]]:
    """The files of a corpus by split, in the cache folder; made where they are not there.

    `surnames` and `waves` are CSV, `entities` CoNLL, `dates`, `numbers` and `docstrings` TSV, `agreement` lines,
    `listops` and `formulas` trees; `shapes-captions` and `shapes-questions` are TSV with a folder `images` beside them.

    >>> [path.name for path in make_files("numbers")["test"]]
    ['test.tsv']
    """
    folder = cache_folder() / "corpora" / name / f"{_made_with(name)}{MADE_VERSION}"
    if name in INSIDE:
        return {"train": [_inside(name)]}
    make, write, files = MADE[name]
    places = {split: folder / file for split, file in files.items()}
    with writing_to_cache():
        if not all(place.is_file() for place in places.values()):
            for split, records in make().items():
                write(places[split], records)
    return {split: [place] for split, place in places.items()}


def _made_with(name: str) -> str:
    """Package and version, since another version gives other files; nothing where none is needed."""
    if name == "docstrings":
        return f"python-{platform.python_version()}-"
    if name not in MAKERS:
        return ""
    maker = MAKERS[name]
    try:
        return f"{maker.lower()}-{version(maker)}-"
    except PackageNotFoundError as error:
        raise UserError(
            f"{name} is made with {maker} ({how_to_have(name)}), which is not installed: install it, or choose another "
            "corpus"
        ) from error


def how_to_have(name: str) -> str:
    """What to type to install the package that a corpus is made with.

    >>> how_to_have("dates"), how_to_have("co2")
    ('pip install elman[demo]', 'pip install statsmodels')
    """
    maker = MAKERS.get(name)
    return f"pip install {f'elman[{EXTRA[maker]}]' if maker in EXTRA else maker or 'elman'}"


def _inside(name: str) -> Path:
    """The file of a corpus that a package has inside; the package is not imported."""
    spec = find_spec(MAKERS[name].lower())
    place = Path(next(iter((spec and spec.submodule_search_locations) or [""]))) / INSIDE[name]
    if not place.is_file():
        raise UserError(f"{MAKERS[name]} has no {place.name} inside any more: install an earlier version of it")
    return place


def _write_table(place: Path, heading: list[str], rows: Iterable[Iterable[object]], delimiter: str = ",") -> None:
    with write_aside(place) as aside, aside.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        table.writerow(heading)
        table.writerows(rows)


def _write_labelled(place: Path, records: Iterable[LabelledText]) -> None:
    _write_table(place, ["text", "label"], ([record.text, *record.labels] for record in records))


def _write_waves(place: Path, rows: Iterable[tuple[str, int, float]]) -> None:
    _write_table(place, ["series", "step", "value"], rows)


def _write_lines(place: Path, lines: Iterable[str]) -> None:
    with write_aside(place) as aside:
        aside.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _write_scenes(
    rows_of: Callable[[Scene], list[tuple[str, ...]]], heading: list[str], place: Path, made: Iterable[Scene]
) -> None:
    """A picture of each scene in the folder `images`, and a table of what is said of it beside that."""
    from PIL import Image

    folder = place.parent / "images"
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, ...]] = []
    for number, scene in enumerate(made, 1):
        name = f"{place.stem}-{number:05}.png"
        Image.fromarray(scene.draw()).save(folder / name)
        rows += [(f"images/{name}", *row, str(scene)) for row in rows_of(scene)]
    _write_table(place, ["image", *heading, "scene"], rows, "\t")  # last, since it says that all is there


def _all_scenes() -> dict[str, Iterable[Scene]]:
    return {split: scenes(split) for split in SPLITS}


TSV = {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"}
TXT = {"train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
MADE: dict[str, tuple[Callable[[], dict[str, Any]], Callable[[Path, Any], object], dict[str, str]]] = {
    "surnames": (surnames, _write_labelled, {"train": "train.csv", "test": "test.csv"}),
    "entities": (entities, write_tagged, {split: f"{split}.conll" for split in SIZES}),
    "dates": (date_parts, write_pairs, TSV),
    "numbers": (number_parts, write_pairs, TSV),
    "docstrings": (docstring_parts, write_pairs, TSV),
    "agreement": (agreement, _write_lines, TXT),
    "listops": (list_operations, _write_lines, TXT),
    "formulas": (formulas, _write_lines, TXT),
    "shapes-captions": (_all_scenes, partial(_write_scenes, caption_rows, ["caption"]), TSV),
    "shapes-questions": (_all_scenes, partial(_write_scenes, question_rows, ["question", "answer", "type"]), TSV),
    "waves": (lambda: {"train": waves()}, _write_waves, {"train": "waves.csv"}),
}
"""How the records of each are made, and how they are written, into which file for each split."""
