"""Data in memory as rows: tuples, mappings, data frames, data sets, whatever can be gone through."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from elman.errors import UserError
from elman.records.places import Place, RecordError
from elman.records.tables import check_names

HALF = re.compile("[\ud800-\udfff]")


def read_items(data: Iterable[Any], name: str) -> Iterator[tuple[Place, Any]]:
    """Where each item stands, and the item: a dict where it is a mapping or the row of a data frame, else as it is.

    Data frames (pandas, polars) are known by what they can do, and need not be installed; data sets give mappings. A
    mapping has a list for each column.

    >>> [(str(where), item) for where, item in read_items([("good", "a"), {"text": "bad"}], "train")]
    [('record 1 of train', ('good', 'a')), ('record 2 of train', {'text': 'bad'})]
    >>> [item for _, item in read_items({"text": ["good", "bad"], "label": [1, 0]}, "train")]
    [{'text': 'good', 'label': 1}, {'text': 'bad', 'label': 0}]
    """
    if isinstance(data, Mapping):
        yield from read_items(_rows(data, name), name)
        return
    alone = isinstance(data, (str, bytes)) or getattr(data, "shape", None) == ()  # an array that is one number
    if alone or not isinstance(data, Iterable):
        raise UserError(
            f"{name} is a {type(data).__name__}: give a list of records, a data frame, or the path of a file"
        )
    names = None
    if (rows := getattr(data, "itertuples", None)) is not None:  # pandas
        items, names = rows(index=False, name=None), [str(column) for column in data.columns]  # type: ignore[attr-defined]
        check_names(name, names)
    elif (rows := getattr(data, "iter_rows", None)) is not None:  # polars
        items = rows(named=True)
    else:
        items = iter(data)
    for number, item in enumerate(items, 1):
        if names is not None:
            item = dict(zip(names, item, strict=True))
        where = Place(name, number)
        if _has_half_pair(item):
            raise RecordError(where, "has half a surrogate pair, which is no character: mend it")
        yield where, dict(item) if isinstance(item, Mapping) else item


def _has_half_pair(item: Any) -> bool:
    """Whether a text in an item cannot be written: Python lets a string hold half a character."""
    if isinstance(item, str):
        return not item.isascii() and HALF.search(item) is not None
    parts = item.values() if isinstance(item, Mapping) else item if isinstance(item, (list, tuple)) else ()
    return any(map(_has_half_pair, parts))


def _rows(columns: Mapping[Any, Any], name: str) -> list[dict[str, Any]]:
    """The rows of a mapping from the names of columns to what stands in them."""
    lists: dict[str, list[Any]] = {}
    for column, cells in columns.items():
        if isinstance(cells, (str, bytes, Mapping)) or not isinstance(cells, Iterable):
            raise UserError(f"{name} is a mapping whose {str(column)!r} is no list: give a list for each column")
        lists[str(column)] = cells.tolist() if hasattr(cells, "tolist") else list(cells)
        first = next(iter(lists))
        if len(lists[str(column)]) != len(lists[first]):
            counts = f"{len(lists[first])} cells in {first!r} and {len(lists[str(column)])} in {str(column)!r}"
            raise UserError(f"{name} has {counts}: give columns of one length")
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def parts_of(where: Place, item: Any, parts: tuple[str, str]) -> tuple[Any, Any]:
    """The two parts of an item that is a tuple or a list.

    >>> parts_of(Place("train", 1), ("good",), ("text", "label"))
    Traceback (most recent call last):
    elman.records.places.RecordError: record 1 of train is no (text, label): give one, or a mapping with these fields
    """
    item = item.tolist() if hasattr(item, "tolist") else item  # a row of an array
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise RecordError(where, f"is no ({', '.join(parts)}): give one, or a mapping with these fields")
    return item[0], item[1]
