"""From a recipe's data section to texts with their classes."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elman.corpora.catalogue import corpus
from elman.errors import UserError
from elman.records.classes import check_classes, check_known, overlap, stratified_folds, stratified_split
from elman.records.labelled import LabelledFiles, LabelledText, read_labelled
from elman.tasks.classify.settings import DataSettings
from elman.tasks.recipes import find_files

Texts = list[LabelledText]


@dataclass
class ClassifyData:
    """The texts of each split, their classes, and what the user should be told about them."""

    train: Texts
    dev: Texts  # empty where nothing is held out
    test: Texts
    labels: list[str]
    several: bool
    said: list[str] = field(default_factory=list)


def labelled_files(data: DataSettings, paths: Sequence[Path]) -> LabelledFiles:
    """Files as the recipe says that they are written."""
    return LabelledFiles(
        paths,
        format=data.format,
        text=_column(data.text_column),
        label=_column(data.label_column),
        separator=data.separator,
        classes=data.classes,
        encoding=_encoding(data),
    )


def open_data(data: DataSettings, seed: int, data_dir: Path | None = None) -> ClassifyData:
    """Read what the recipe names, split it where splits are missing, and refuse what cannot be learnt."""
    said: list[str] = []
    records: dict[str, Texts] = {}
    files = find_files(data, data_dir)
    if data.folds:
        files.pop("test", None)
    for split, paths in files.items():
        source = labelled_files(data, paths)
        said += [source.guess] if source.guess and source.guess not in said else []
        records[split] = read_labelled(source)
    train, where = records["train"], str(files["train"][0])
    several = is_several(train, data)
    counts = Counter(label for record in train for label in record.labels)
    check_classes(counts, len(train), where)
    for split in ("dev", "test"):
        check_known(records.get(split, []), counts)
        check_single(records.get(split, []), several)
    found = _split(records, sorted(counts), several, data, seed, said)
    if common := overlap(map(row, found.train), map(row, found.test)):
        said.append(
            f"{common} of the {len(found.test)} test texts stand in training too, with the same label: "
            "the report has the accuracy without them beside the others"
        )
    return found


def row(record: LabelledText) -> tuple[str, tuple[str, ...]]:
    """A text with its labels: what is the same in two sets is the same row."""
    return record.text, tuple(sorted(record.labels))


def is_several(records: Texts, data: DataSettings) -> bool:
    """Whether the texts have several labels each: as told, or as the texts show."""
    if data.several or data.separator is not None:
        return True
    if data.several is None:
        return any(len(record.labels) != 1 for record in records)
    check_single(records, several=False)
    return False


def check_single(records: Texts, several: bool) -> None:
    """Refuse a text that has not one label, where each should have one."""
    for record in records:
        if not several and len(record.labels) != 1:
            found = ", ".join(map(repr, record.labels)) or "none"
            raise UserError(
                f"{record.where} has not one label but {found}: give it one, or say data.several=true for all"
            )


def _split(
    records: dict[str, Texts], labels: list[str], several: bool, data: DataSettings, seed: int, said: list[str]
) -> ClassifyData:
    """Hold out what the recipe asks for, class by class, always the same for the same seed."""
    train, dev, test = records["train"], records.get("dev", []), records.get("test", [])
    folds = stratified_folds([_class(record) for record in train], data.folds, seed) if data.folds else []
    if data.fold is not None:
        test_rows = set(folds[data.fold - 1])
        test = [train[index] for index in sorted(test_rows)]
        train = [record for index, record in enumerate(train) if index not in test_rows]
    dev_share = data.dev_fraction
    if "test" not in records and data.test_fraction:
        train, test = _part(train, data.test_fraction, seed)
        dev_share /= 1 - data.test_fraction  # of what is left
    if "dev" not in records and dev_share:
        train, dev = _part(train, dev_share, seed)
    return ClassifyData(train, dev, test, labels, several, said)


def _part(records: Texts, fraction: float, seed: int) -> tuple[Texts, Texts]:
    kept, held = stratified_split([_class(record) for record in records], fraction, seed)
    return [records[index] for index in kept], [records[index] for index in held]


def _class(record: LabelledText) -> tuple[str, ...]:
    return tuple(sorted(record.labels))


def _column(name: str | None) -> str | int | None:
    """A column by its number, counted from 1, or by its name."""
    return int(name) if name is not None and name.isdecimal() else name


def _encoding(data: DataSettings) -> str:
    if data.encoding is not None:
        return data.encoding
    return corpus(data.corpus).encoding if data.corpus is not None and not data.train else "utf-8"
