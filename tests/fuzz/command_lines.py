"""Wrong command lines: every option of every command, misspelt, repeated, without a value, with a wrong one."""

import random
import types
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from elman import tasks
from tests.fuzz.case import Case, Command, Place
from tests.fuzz.sentences import commands
from tests.fuzz.world import PREDICTED, TASKS, settings

Line = Callable[[Place], list[str]]

NUMBERS = ("x", "", "1.5.1", "--", "１x", "0x10", "1e", "None", "[1]", "1 2")
"""That no integer and no fraction is written as."""
INTEGERS = ("0", "1")
NEGATIVE = ("-1", "-9223372036854775809")
HUGE = ("99999999999999999999999", "18446744073709551616", "2147483648")
FRACTIONS = ("1e-320", "0", "-0.0")
NO_FRACTIONS = ("nan", "inf", "-inf", "-1", "1e999")
TEXTS = ("", " ", "=", "a=b=c", "x" * 5000, "\U0001f600é", "\udcff\udc80", "none", "[", "\x1b[31m", "%s{0}", "-1")
PATHS = (
    "",
    ".",
    "*.txt",
    "there.txt",
    "x" * 300,
    "no/such/place",
    "/dev/null",
    "/dev/null/x",
    "\udcff",
    "~nobody/x",
    "two\nlines",
    "-dashed",
)
NONE = (
    ["trian"],
    ["train", "sing"],
    ["train", ""],
    ["train lm"],
    ["data", "lsit"],
    ["bench", "everything"],
    ["--nonsense"],
    ["-x"],
    [""],
    ["\udcff"],
    ["LIST"],
    ["évaluer"],
    ["generate", "--", "--"],
)
BENCHES = ("layers", "streaming", "prediction", "decoding", "vectors", "adapting")
LONG = {"--length", "--seconds"}
"""Options whose large values are right, and only take long."""
READ = {"--train", "--dev", "--test", "--channel", "--lm", "--ensemble", "--data-dir"}
NO_PLACE = ("x" * 300, "/dev/null", "/dev/null/x")
"""Where nothing can be written."""
CHOSEN = {"--set", "--vary", "--channel-weights", "--on-error", "--label", "--missing"}
"""Options that take texts of a form that none of ours has."""


def lines() -> dict[str, Line]:
    """For each command a line that is right, to be spoiled."""
    found: dict[str, Line] = {f"train {task}": _training(task) for task in TASKS}
    found |= {
        "evaluate": lambda place: ["evaluate", place.world.model("lm"), place.world.data("lm")],
        "predict": lambda place: ["predict", place.world.model("translate"), place.write("in.txt", "abc\nde\n")],
        "rerank": _reranking,
        "generate": lambda place: ["generate", place.world.model("lm"), "-n", "5", "--seed", "1"],
        "explain": lambda place: ["explain", place.world.model("translate"), "abc", "--out", f"{place.out}.json"],
        "states": lambda place: ["states", place.world.model("lm"), "the cat", "--out", f"{place.out}.npz"],
        "compare": _comparing,
        "export": lambda place: ["export", place.world.model("lm"), "--out", place.out],
        "data list": lambda place: ["data", "list"],
        "data info": lambda place: ["data", "info", "python"],
        "data get": lambda place: ["data", "get", "python"],
        "data export": lambda place: ["data", "export", "python", "--out", place.out],
        "doctor": lambda place: ["doctor"],
        "demo": lambda place: ["demo", "--out", place.out, "-s", "model.hidden=no"],
    }
    found |= {f"predict {task}": _predicting(task) for task in PREDICTED if task != "translate"}
    found["predict lm"] = lambda place: ["predict", place.world.model("lm"), place.write("in.txt", "the\na\n")]
    return found | {f"bench {name}": _bench(name) for name in BENCHES}


def _training(task: str) -> Line:
    def line(place: Place) -> list[str]:
        return ["train", task, "--train", place.world.data(task), "--out", place.out, *settings(task)]

    return line


def _predicting(task: str) -> Line:
    return lambda place: ["predict", place.world.model(task), place.world.data(task)]


def _bench(name: str) -> Line:
    return lambda place: ["bench", name, "--quick"]


def _reranking(place: Place) -> list[str]:
    world = place.world
    pairs = place.write("few.tsv", "ab\tba\ncd\tdc\n")
    models = ["rerank", world.model("translate"), "--channel", world.model("reverse"), "--lm", world.model("lm")]
    return [*models, "--test", pairs, "--n-best", "2"]


def _comparing(place: Place) -> list[str]:
    recipe = place.write("recipe.toml", 'task = "classify"\n')
    data = ["-s", f"data.train={place.world.data('classify')}", *settings("classify")]
    return ["compare", recipe, "--vary", "model.hidden=2,3", "--seeds", "1", "--out", place.out, *data]


def cases() -> list[Case]:
    """All of them."""
    found = list(_commands())
    for name, line in lines().items():
        found += _shapes(name, line)
        found += _options(name, line)
    return found


def _commands() -> Iterator[Case]:
    """Commands that are none."""
    for number, words in enumerate(NONE):
        yield Case(f"command-{number}", lambda place, words=words: Command(words))  # type: ignore[misc]


def _command(name: str) -> str:
    """The command of a line: `predict` of `predict tag`."""
    return name if name in commands() else name.split()[0]


def _shapes(name: str, line: Line) -> Iterator[Case]:
    """A word too many, too few, in the wrong place."""
    slug, words = name.replace(" ", "-"), len(_command(name).split())

    def spoiled(spoil: Callable[[list[str], random.Random], list[str]]) -> Callable[[Place], Command]:
        return lambda place: Command(spoil(line(place), place.chance))

    def shuffled(arguments: list[str], chance: random.Random) -> list[str]:
        rest = arguments[words:]
        chance.shuffle(rest)
        return arguments[:words] + rest

    def without(arguments: list[str], chance: random.Random) -> list[str]:
        place = chance.randrange(words, len(arguments)) if len(arguments) > words else words - 1
        return arguments[:place] + arguments[place + 1 :]

    yield Case(f"{slug}-unknown-option", spoiled(lambda a, c: [*a, "--no-such-option"]))
    yield Case(f"{slug}-unknown-letter", spoiled(lambda a, c: [*a, "-Z"]))
    yield Case(f"{slug}-unknown-value", spoiled(lambda a, c: [*a, "--no-such-option=3"]))
    are_texts = _command(name) == "predict"  # which takes as many as there are
    yield Case(f"{slug}-too-many-words", spoiled(lambda a, c: [*a, "one", "two", "three"]), refused=not are_texts)
    if name.startswith("bench"):  # the rest may be right, and take minutes
        return
    if name not in ("data list", "doctor"):  # which have nothing to leave out
        for number in range(4):
            yield Case(f"{slug}-without-{number}", spoiled(without), refused=False)
        for number in range(3):
            yield Case(f"{slug}-shuffled-{number}", spoiled(shuffled), refused=False)


def _options(name: str, line: Line) -> Iterator[Case]:
    """Every option of a command, spoiled in every way that its type has."""
    command = commands()[_command(name)]
    kinds = typing.get_type_hints(command.callback)
    own = None if _command(name) == name else {"column", *tasks.TASKS[name.split()[1]].Options.model_fields}
    for parameter in command.params:
        kind = _plain(kinds.get(parameter.name, str))
        if parameter.param_type_name != "option" or parameter.name == "help":
            continue
        if own is not None and parameter.name not in own:  # spoiled where another task's model is asked
            continue
        option = parameter.opts[0]
        slug = f"{name.replace(' ', '-')}{option.replace('--', '-')}"
        yield Case(f"{slug}-misspelt", _with(line, _misspelt(option), "1"))
        yield Case(f"{slug}-single-dash", _with(line, option.removeprefix("-") + "9", "1"))
        if kind is bool:
            yield Case(f"{slug}-with-value", _with(line, f"{option}=maybe"))
            continue
        yield Case(f"{slug}-without-value", _with(line, option))
        told = {"INTEGER": int, "FLOAT": float}.get(str(parameter.metavar)) if kind is str else None
        values = _values(kind, option) if told is None or parameter.multiple else _numbers(told)
        for number, (value, refused) in enumerate(values):
            if not refused and (name.startswith("bench") or name == "demo" or (option in LONG and len(value) > 3)):
                continue
            yield Case(f"{slug}-{number}", _with(line, option, value), refused=refused, fails=value in HUGE)


def _plain(kind: Any) -> type:
    """`int` of `int | None` and of `list[int]`."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) in (list, typing.Union):
        return next(_plain(part) for part in typing.get_args(kind) if part is not types.NoneType)
    return typing.cast(type, kind)


def _values(kind: type, option: str) -> Iterator[tuple[str, bool]]:
    """Values for an option, and whether every one of them has to be refused."""
    if kind in (int, float):
        yield from ((value, True) for value in NUMBERS)
        yield from ((value, True) for value in (NEGATIVE if kind is int else NO_FRACTIONS))
        yield from ((value, False) for value in ((*INTEGERS, *HUGE) if kind is int else FRACTIONS))
    elif option in READ:  # none of them is there, but the folder that one is in
        yield from ((value, option != "--data-dir" or value not in ("", ".")) for value in PATHS)
    elif kind is Path:
        yield from ((value, option == "--out" and value in NO_PLACE) for value in PATHS)
    else:
        yield from ((value, option in CHOSEN) for value in TEXTS)


def _numbers(kind: type) -> Iterator[tuple[str, bool]]:
    """Values for a number of a task or a view, which arrives as text and is read as TOML is."""
    yield from ((value, value not in ("0x10", "None")) for value in NUMBERS)  # some may be none
    yield from ((value, False) for value in ((*INTEGERS, *HUGE) if kind is int else FRACTIONS))


def _with(line: Line, *more: str) -> Callable[[Place], Command]:
    return lambda place: Command([*line(place), *more])


def _misspelt(option: str) -> str:
    """Two letters swapped, or one doubled where all are the same."""
    chance = random.Random(option)
    place = chance.randrange(2, max(len(option) - 1, 3))
    letters = list(option + option[-1])
    letters[place : place + 2] = reversed(letters[place : place + 2])
    return "".join(letters) if "".join(letters) != option else f"{option}x"
