"""Classes as a whole: whether they are classes at all, splits that keep their shares, and texts met before."""

import random
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from elman.errors import UserError, nearest
from elman.records.labelled import LabelledText
from elman.records.tables import table_format

FEW = 10  # so many different numbers may always be classes


def check_classes(counts: Mapping[str, int], texts: int, where: str) -> None:
    """Refuse labels that no classifier can learn from; `counts` says how many of the `texts` have each.

    >>> check_classes({"good": 5, "bad": 4}, 9, "train.csv")
    >>> check_classes({"good": 9}, 9, "train.csv")
    Traceback (most recent call last):
    elman.errors.UserError: train.csv has one class only, 'good': give texts of at least two
    """
    if not counts:
        raise UserError(f"{where} has no labels: name the column that holds them")
    empty = [label for label, count in counts.items() if not count]
    if empty:
        raise UserError(f"{where} has no text of the class {empty[0]!r}: add some, or remove the class")
    if len(counts) == 1 and counts[next(iter(counts))] == texts:
        raise UserError(f"{where} has one class only, {next(iter(counts))!r}: give texts of at least two")
    numbers = [_number(label) for label in counts]
    whole = all(number is not None and number.is_integer() for number in numbers)
    if len(counts) > FEW and None not in numbers and (not whole or len(counts) > texts / 5):
        raise UserError(
            f"{where} has {len(counts)} different numbers as labels in {texts} texts, which looks like a quantity to "
            "predict, not like classes: name another column, or make ranges of the numbers"
        )


def check_known(
    records: Iterable[LabelledText], known: Collection[str], why: str = "which no training text has"
) -> None:
    """Refuse a label that the training texts do not have; `why` says in what way it is unknown.

    >>> from pathlib import Path
    >>> from elman.records.places import Place
    >>> check_known([LabelledText("dull", ("bda",), Place(Path("test.csv"), 3))], ["good", "bad"])
    Traceback (most recent call last):
    elman.errors.UserError: test.csv:3 has the label 'bda', which no training text has: did you mean 'bad'?
    """
    for record in records:
        for label in record.labels:
            if label not in known:
                told = nearest(label, sorted(known))
                where = record.where
                if where is not None and where.line == 1 and table_format(Path(where.path)) in ("csv", "tsv"):
                    told += f", or where this is a header, say -s data.label_column={label} and data.text_column too"
                raise UserError(f"{record.where} has the label {label!r}, {why}: {told}")


def stratified_split(labels: Sequence[Hashable], fraction: float, seed: int = 0) -> tuple[list[int], list[int]]:
    """Indices of the texts to keep and of the `fraction` to hold out, with the same share of each class in both.

    The same labels and seed give the same split in every process. A class with a single text is kept.

    >>> stratified_split(["a", "a", "b", "a", "a", "b"], 0.5, seed=1)
    ([1, 2, 4], [0, 3, 5])
    """
    if not 0.0 < fraction < 1.0:
        raise UserError(f"the part to hold out is a fraction between 0 and 1, not {fraction}")
    members = _shuffled(labels, seed)
    shares = {label: int(fraction * len(indices)) for label, indices in members.items()}
    # What rounding down has left goes to the classes that lost the most, as long as one text of each is kept.
    left = max(1, round(fraction * len(labels))) - sum(shares.values())
    for label in sorted(members, key=lambda label: shares[label] - fraction * len(members[label])):
        if left > 0 and shares[label] + 1 < len(members[label]):
            shares[label], left = shares[label] + 1, left - 1
    held = sorted(index for label, indices in members.items() for index in indices[: shares[label]])
    chosen = set(held)
    return [index for index in range(len(labels)) if index not in chosen], held


def stratified_folds(labels: Sequence[Hashable], folds: int, seed: int = 0) -> list[list[int]]:
    """Indices of the texts in each of several folds, with the same share of each class in all of them.

    >>> stratified_folds(["a", "a", "b", "b"], 2, seed=1)
    [[0, 3], [1, 2]]
    """
    if not 2 <= folds <= len(labels):
        raise UserError(f"{len(labels)} texts cannot be cut into {folds} folds: choose 2 to {len(labels)}")
    dealt = [index for indices in _shuffled(labels, seed).values() for index in indices]
    return [sorted(dealt[fold::folds]) for fold in range(folds)]


def seen(train: Iterable[Hashable], test: Iterable[Hashable]) -> list[bool]:
    """For each test text (or text and label) whether it stands in training too.

    >>> seen(["Abel", "Baker"], ["Baker", "Cole"])
    [True, False]
    """
    known = {hash(text) for text in train}  # the texts themselves might not fit in memory
    return [hash(text) in known for text in test]


def overlap(train: Iterable[Hashable], test: Iterable[Hashable]) -> int:
    """How many of the test texts stand in the training texts.

    >>> overlap(["Abel", "Baker"], ["Baker", "Cole"])
    1
    """
    return sum(seen(train, test))


def _shuffled(labels: Sequence[Hashable], seed: int) -> dict[Hashable, list[int]]:
    """The indices of each class in a random order; classes in the order in which they first come."""
    generator = random.Random(seed)
    order = sorted((generator.random(), index) for index in range(len(labels)))
    members: dict[Hashable, list[int]] = {label: [] for label in dict.fromkeys(labels)}
    for _, index in order:
        members[labels[index]].append(index)
    return members


def _number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None
