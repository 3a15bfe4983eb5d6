"""Model folders with one thing wrong: a generator of every kind of damage to every key of every file."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Path_ = tuple[str | int, ...]

WRONG: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    3,
    2**70,
    14_000,
    10**7,
    1e308,
    0.5,
    "a",
    "",
    "ä" * 5000,
    [],
    [1, 2],
    ["a", "b"],
    [["a"]],
    {},
    {"a": 1},
    float("nan"),
    "deep",
)
"""What may stand in the place of any value; the last is a list in a list, and so on, 5,000 deep."""

FILES = ("config.json", "tokenizer.json", "lexicon.json", "metrics.json", "model.safetensors")


UNREAD = (("recipe",), ("vocab",))  # of which only the whole matters: the run's recipe, the pieces of sub-words


class Damage:
    """One thing to do to a folder."""

    def __init__(self, file: str, what: str, content: bytes | None) -> None:
        self.file, self.what, self.content = file, what, content

    def __repr__(self) -> str:
        return f"{self.file}: {self.what}"

    def copy(self, whole: Path, target: Path) -> Path:
        """The folder `whole` with this damage, as `target`."""
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in whole.iterdir():
            if path.name in FILES and path.name != self.file:
                (target / path.name).hardlink_to(path)
        if self.content is not None:
            (target / self.file).write_bytes(self.content)
        return target


def damages(whole: Path, others: list[Path]) -> Iterator[Damage]:
    """Every damage to a model's folder, of which `others` are of other models."""
    for name in FILES:
        path = whole / name
        if not path.exists():
            continue
        content = path.read_bytes()
        yield from _of_bytes(name, content)
        for other in others:
            if (other / name).exists() and (other / name).read_bytes() != content:
                yield Damage(name, f"taken from {other.name}", (other / name).read_bytes())
        if name == "model.safetensors":
            yield from _of_header(name, content)
        elif name != "metrics.json":  # which no model is made of
            yield from _of_json(name, json.loads(content))


def _of_bytes(name: str, content: bytes) -> Iterator[Damage]:
    yield Damage(name, "missing", None)
    yield Damage(name, "empty", b"")
    yield Damage(name, "no JSON and no UTF-8", b"\xff\xfe" + content)
    yield Damage(name, "nested 200,000 deep", b"[" * 200_000 + b"]" * 200_000)
    yield Damage(name, "nested 200,000 deep in a key", b'{"task":' * 200_000 + b"1" + b"}" * 200_000)
    for share in (1, 25, 50, 75, 99):
        yield Damage(name, f"cut after {share} %", content[: len(content) * share // 100])


def _of_json(name: str, value: Any) -> Iterator[Damage]:
    for place in _places(value):
        where = ".".join(map(str, place)) or "all of it"
        if place:
            yield Damage(name, f"{where} left out", _written(_with(value, place, None, remove=True)))
        for wrong in WRONG:
            yield Damage(name, f"{where} = {str(wrong)[:20]!r}", _written(_with(value, place, wrong)))


def _of_header(name: str, content: bytes) -> Iterator[Damage]:
    """One bit of the first bytes of the weights turned over: the length of the header, and the header itself."""
    end = 8 + int.from_bytes(content[:8], "little")
    for place in [*range(8), *range(8, end, 3)]:
        changed = bytearray(content)
        changed[place] ^= 1 << place % 8
        yield Damage(name, f"bit {place % 8} of byte {place}", bytes(changed))


def _places(value: Any, place: Path_ = (), most: int = 2) -> Iterator[Path_]:
    """Every key, and the first of the entries of every list."""
    yield place
    if isinstance(value, dict) and place[-1:] not in UNREAD:
        for key in list(value)[:30]:
            yield from _places(value[key], (*place, key))
    elif isinstance(value, list):
        for number in range(min(len(value), most)):
            yield from _places(value[number], (*place, number))


def _with(value: Any, place: Path_, wrong: Any, remove: bool = False) -> Any:
    if not place:
        return wrong
    changed = json.loads(json.dumps(value))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if remove:
        del inner[place[-1]]
    else:
        inner[place[-1]] = wrong
    return changed


def _written(value: Any) -> bytes:
    return json.dumps(value).replace('"deep"', "[" * 5000 + "]" * 5000).encode()
