"""From a recipe's data section to pairs, and from pairs to ids."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from elman.records.pairs import Pair, PairFiles, read_pairs
from elman.records.splits import split_pairs
from elman.tasks.recipes import find_files
from elman.tasks.translate.settings import DataSettings


@dataclass
class TranslateData:
    """The pairs of each split, and what the user should be told about them."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]
    said: list[str] = field(default_factory=list)


def pair_files(data: DataSettings, paths: Sequence[Path]) -> PairFiles:
    """Files as the recipe says that they are written."""
    return PairFiles(
        paths,
        format=data.format,
        source=_side(data.source),
        target=_side(data.target),
        stress=data.stress,
        encoding=data.encoding,
    )


def open_data(data: DataSettings, seed: int, data_dir: Path | None = None) -> TranslateData:
    """Read what the recipe names, and split it where splits are missing."""
    said: list[str] = []
    parts: dict[str, list[Pair]] = {}
    for split, paths in find_files(data, data_dir).items():
        files = pair_files(data, paths)
        found = read_pairs(files, drop_duplicates=data.drop_duplicates and split == "train")
        said += [files.guess] if files.guess and files.guess not in said else []
        said += found.said if split == "train" or found.empty else []
        parts[split] = found.pairs
    shares = _shares(data, parts)
    if shares:
        parts |= split_pairs(parts["train"], shares, by=data.split_by, seed=seed)
    found_data = TranslateData(parts["train"], parts["dev"], parts.get("test", []), said)
    _tell_overlap(found_data)
    return found_data


def _shares(data: DataSettings, parts: dict[str, list[Pair]]) -> dict[str, float]:
    """The share of the training pairs that each missing split gets."""
    count = len(parts["train"])
    shares = {}
    if "dev" not in parts:
        shares["dev"] = min(data.dev_fraction, data.dev_size / count)
    if "test" not in parts and data.test_fraction:
        shares["test"] = min(data.test_fraction, (data.test_size or count) / count)
    return shares


def _tell_overlap(data: TranslateData) -> None:
    known = {pair.source for pair in data.train}
    for name, pairs in (("held-out", data.dev), ("test", data.test)):
        common = sum(pair.source in known for pair in pairs)
        if common:
            data.said.append(f"{common:,} of the {len(pairs):,} {name} sources stand in the training pairs too")


def _side(name: str | None) -> str | int | None:
    """A column by its number, counted from 1, or by its name."""
    return int(name) if name is not None and name.isdecimal() else name
