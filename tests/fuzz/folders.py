"""Damaged folders: every file of a model missing, cut, flipped, of another task; every key of a config wrong."""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, Command, Place
from tests.fuzz.world import OF_TEXT, TASK_OF, TASKS

FILES = ("config.json", "tokenizer.json", "model.safetensors")
BESIDE = ("metrics.json", "README.md", "recipe.toml")
VALUES: tuple[Any, ...] = (
    None,
    "a",
    "",
    -1,
    0,
    1.5,
    1e300,
    10**30,
    2**31,
    14_000,
    True,
    [],
    [1, 2],
    {},
    {"a": 1},
    "\ud800",
    ["a", "a"],
    [None],
    float("nan"),
)
CONFIGS = 85
"""Wrong configs of each model."""
TOKENIZERS = 30
ODD = 12
"""Configs, and tokenizers, with another value of the right type, or one less."""
FLIPS = 4

Damage = Callable[[Path, random.Random], object]


def cases() -> list[Case]:
    """All of them."""
    found: list[Case] = []
    for model, task in TASK_OF.items():
        for name in FILES:
            if _has(task, name):
                found += _file(model, name)
        for name in BESIDE:
            for kind, damage in _damages(name):
                works = kind not in ("folder", "loop")  # which cannot be copied
                found.append(_case(model, f"{name}-{kind}", damage, refused=False, works=works))
        for name, count in (("config", CONFIGS), ("tokenizer", TOKENIZERS if task in OF_TEXT else 0)):
            wrong, odd = _spoil_json(f"{name}.json", _of_another_type), _spoil_json(f"{name}.json", _of_the_same_type)
            found += [_case(model, f"{name}-{number}", wrong) for number in range(count)]
            found += [_case(model, f"{name}-odd-{number}", odd, refused=False) for number in range(min(ODD, count))]
        found += [_case(model, f"header-{number}", _spoil_header) for number in range(10)]
        found.append(_case(model, "nothing", lambda folder, chance: _remove_all(folder)))
        found.append(_case(model, "no-folder", lambda folder, chance: shutil.rmtree(folder)))
    return [*found, *_runs()]


def _has(task: str, name: str) -> bool:
    """Whether the models of a task have such a file."""
    return name != "tokenizer.json" or task in OF_TEXT


def _file(model: str, name: str) -> Iterator[Case]:
    """A file that a model cannot do without."""
    for kind, damage in _damages(name):
        yield _case(model, f"{name}-{kind}", damage)
    for number in range(FLIPS):
        yield _case(model, f"{name}-flip-{number}", _change(name, _flip), refused=False)
    for other in TASKS:
        if other != TASK_OF[model] and _has(other, name):
            yield _swapped(model, name, other)


def _case(model: str, name: str, damage: Damage, refused: bool = True, works: bool = False) -> Case:
    def make(place: Place) -> Command:
        folder = place.world.copy(model, place.folder / "model")
        damage(folder, place.chance)
        return _use(place, model, str(folder))

    return Case(f"{model}-{name}", make, refused=refused, works=works)


def _swapped(model: str, name: str, other: str) -> Case:
    """A model with a file of another task's."""

    def make(place: Place) -> Command:
        folder = place.world.copy(model, place.folder / "model")
        shutil.copyfile(Path(place.world.model(other)) / name, folder / name)
        return _use(place, model, str(folder))

    return Case(f"{model}-{name}-of-{other}", make)


def _use(place: Place, model: str, folder: str) -> Command:
    """One of the commands that read such a folder."""
    world, task, chance = place.world, TASK_OF[model], place.chance
    pairs = place.write("few.tsv", "ab\tba\ncd\tdc\n")
    ways = [["evaluate", folder, world.known(task)], ["export", folder, "--out", place.out]]
    if model == "labels":
        ways = [["generate", folder, "--label", "north", "-n", "3", "--seed", "1"], ways[1]]
    elif task == "lm":
        channel = ["--channel", world.model("reverse")]
        ways += [["generate", folder, "-n", "3", "--seed", "1"], ["export", folder, "--int8", "--out", place.out]]
        ways += [["rerank", world.model("translate"), *channel, "--lm", folder, "--test", pairs, "--n-best", "2"]]
    else:
        records = place.write("in.txt", "abc de\nabd\n") if task in OF_TEXT else world.data(task)
        records = place.write("in.txt", "cat\nthe dog\n") if task == "embed" else records
        ways += [["predict", folder, records]] * 2
    if task == "translate":
        ways += [["explain", folder, "abc", "--out", f"{place.out}.json"]]
        ways = [["evaluate", folder, pairs, "--no-baselines"], *ways[1:]]
    if model in ("translate", "tag", "classify"):  # another's vocabulary, tags or classes are refused for that
        ways += [["predict", world.model(model), "--ensemble", folder, place.write("in.txt", "abc\n")]]
        ways += [["evaluate", world.model(model), world.known(task), "--no-baselines", "--ensemble", folder]]
    return Command(chance.choice(ways))


def _damages(name: str) -> Iterator[tuple[str, Damage]]:
    """Every way to damage a file."""
    yield "missing", lambda folder, chance: (folder / name).unlink(missing_ok=True)
    yield "empty", _change(name, lambda content, chance: b"")
    yield "cut", _change(name, lambda content, chance: content[: chance.randrange(1, max(len(content) - 8, 2))])
    yield "garbage", _change(name, lambda content, chance: chance.randbytes(200))
    yield "zeros", _change(name, lambda content, chance: bytes(len(content)))
    yield "html", _change(name, lambda content, chance: b"<html>404</html>")
    yield "array", _change(name, lambda content, chance: b"[1, 2]")
    yield "number", _change(name, lambda content, chance: b"3")
    yield "null", _change(name, lambda content, chance: b"null")
    yield "deep", _change(name, lambda content, chance: b"[" * 200_000)
    yield "deep-inside", _change(name, lambda content, chance: b'{"task": ' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    yield "folder", lambda folder, chance: ((folder / name).unlink(missing_ok=True), (folder / name).mkdir())
    yield "loop", lambda folder, chance: _put(folder / name, lambda path: path.symlink_to(path))


def _put(path: Path, make: Callable[[Path], object]) -> None:
    path.unlink(missing_ok=True)
    make(path)


def _change(name: str, change: Callable[[bytes, random.Random], bytes]) -> Damage:
    def damage(folder: Path, chance: random.Random) -> None:
        path = folder / name
        content = path.read_bytes() if path.exists() else b"{}"
        path.write_bytes(change(content, chance))

    return damage


def _flip(content: bytes, chance: random.Random) -> bytes:
    """One to three bits, mostly near the beginning, where the structure is."""
    flipped = bytearray(content)
    for _ in range(chance.randint(1, 3)):
        end = len(flipped) if chance.random() < 0.3 else min(len(flipped), 600)
        flipped[chance.randrange(end)] ^= 1 << chance.randrange(8)
    return bytes(flipped)


def _remove_all(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


Change = Callable[[Any, Any, random.Random], object]


def _spoil_json(name: str, change: Change) -> Damage:
    """A JSON file with a change at some place, whatever its depth."""

    def damage(folder: Path, chance: random.Random) -> None:
        path = folder / name
        whole = json.loads(path.read_text())
        holder, key = chance.choice([place for place in _entries(whole) if place[0][place[1]] is not None])
        change(holder, key, chance)
        path.write_text(json.dumps(whole))

    return damage


def _of_another_type(holder: Any, key: Any, chance: random.Random) -> None:
    holder[key] = chance.choice([value for value in VALUES if _type(value) != _type(holder[key])])


def _of_the_same_type(holder: Any, key: Any, chance: random.Random) -> None:
    """Another value of the same type, or none."""
    if chance.random() < 0.3:
        del holder[key]
    else:
        holder[key] = chance.choice([value for value in VALUES if _type(value) == _type(holder[key])])


def _type(value: Any) -> type:
    """As JSON has it, where numbers are of one type and a flag may be 0 or 1."""
    return float if isinstance(value, bool | int | float) else type(value)


def _entries(value: Any, most: int = 12) -> list[tuple[Any, Any]]:
    """Every place in nested JSON, the upper ones more often; of long lists the first few only."""
    found: list[tuple[Any, Any]] = []
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    for key in keys[:most] if isinstance(value, list) else keys:
        if key != "recipe":  # what a model was trained by, which it can do without
            found += [(value, key)] * 3
            found += _entries(value[key], 3)
    return found


def _spoil_header(folder: Path, chance: random.Random) -> None:
    """The weights' own table of contents: names, shapes, types, places."""
    path = folder / "model.safetensors"
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    header.pop("__metadata__", None)
    holder, key = chance.choice(_entries(header))
    _of_another_type(holder, key, chance)
    new = json.dumps(header).encode()
    path.write_bytes(len(new).to_bytes(8, "little") + new + content[8 + size :])


def _runs() -> Iterator[Case]:
    """Runs that cannot be gone on with, and comparisons."""
    state = "checkpoint/state.safetensors"
    for task in TASKS:
        for name in filter(partial(_has, task), (state, "recipe.toml", "log.jsonl", "tokenizer.json")):
            for kind, damage in _damages(name):

                def make(place: Place, task: str = task, damage: Damage = damage) -> Command:
                    folder = place.world.copy(task, place.folder / "run")
                    damage(folder, place.chance)
                    return Command(["train", task, "--out", str(folder), "--resume"])

                yield Case(
                    f"resume-{task}-{name.replace('/', '-')}-{kind}",
                    make,
                    refused=name == state and kind not in ("missing", "loop"),
                    fails=name == "log.jsonl" and kind == "folder",  # which cannot be written to
                )
        for other in TASKS:
            if other != task:

                def swapped(place: Place, task: str = task, other: str = other) -> Command:
                    folder = place.world.copy(other, place.folder / "run")
                    return Command(["train", task, "--out", str(folder), "--resume"])

                yield Case(f"resume-{task}-in-{other}", swapped)
