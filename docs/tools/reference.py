"""The reference, made from docstrings: a page for each room, and one for the command line.

A docstring is Markdown but for two things, which are set in fixed letters as they stand there: examples (`>>>`), and
indented lines or lines with an equation.
"""

import importlib
import inspect
import io
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from types import ModuleType
from typing import Any
from unittest.mock import patch

ROOMS = [
    "elman",
    *(
        f"elman.{room}"
        for room in ("nn", "decode", "inspect", "lab", "tasks", "train", "metrics", "baselines", "batches")
    ),
    *(f"elman.{room}" for room in ("corpora", "records", "text", "runtime", "sklearn", "ragged", "sampling")),
    *("elman.draw.panels", "elman.draw.picture", "elman.lab.bptt_numpy", "elman.lab.minimal_numpy"),
]
EQUATION = re.compile(r"^\S+ = |^[A-Za-z_']+\(.*\) = |^ ")


def pages() -> dict[str, str]:
    """Every page by its name."""
    made = {f"reference/{room}.md": page(room) for room in ROOMS}
    lines = [f"- [`{room}`]({room}.md): {summary(importlib.import_module(room))}" for room in ROOMS]
    made["reference/index.md"] = "# Python\n\nEvery public name, made from its docstring.\n\n" + "\n".join(lines) + "\n"
    made["reference/commands.md"] = commands()
    return made


def summary(thing: Any) -> str:
    """The first sentence of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")


def page(name: str) -> str:
    """All public names of a room."""
    room = importlib.import_module(name)
    parts = [f"# {name}", prose(inspect.getdoc(room) or "")]
    for public in public_names(room):
        parts.append(entry(public, getattr(room, public), 2))
    return "\n\n".join(parts) + "\n"


def public_names(room: ModuleType) -> list[str]:
    """What a room says is public, or what is defined there."""
    if hasattr(room, "__all__"):
        return [name for name in room.__all__ if not name.startswith("_")]
    here = (name for name, thing in vars(room).items() if getattr(thing, "__module__", None) == room.__name__)
    return [name for name in here if not name.startswith("_")]


def entry(name: str, thing: Any, level: int) -> str:
    """A class with its methods, a function, or a value."""
    heading = f"{'#' * level} {name}"
    if inspect.isclass(thing):
        parts = [heading, f"```python\n{signature(name, thing)}\n```", prose(inspect.getdoc(thing) or "")]
        parts += [entry_of_method(method, found) for method, found in methods(thing)]
        return "\n\n".join(parts)
    if callable(thing):
        return "\n\n".join([heading, f"```python\n{signature(name, thing)}\n```", prose(inspect.getdoc(thing) or "")])
    kinds = (
        f"one of {', '.join(f'`{key}`' for key in thing)}" if isinstance(thing, dict) else f"a `{type(thing).__name__}`"
    )
    return f"{heading}\n\n{kinds[0].upper()}{kinds[1:]}."


def methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class itself defines and documents."""
    for name, value in vars(thing).items():
        found = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        found = found.fget if isinstance(found, property) else getattr(found, "func", found)
        if not name.startswith("_") and inspect.isfunction(found) and found.__doc__:
            yield name, found


def entry_of_method(name: str, found: Any) -> str:
    text = prose(inspect.getdoc(found) or "")
    return f"```python\n{signature(name, found)}\n```\n\n{text}"


def signature(name: str, thing: Any) -> str:
    """How it is called; long ones have a line for each parameter."""
    try:
        called = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    bare = [one for one in called.parameters.values() if one.name not in ("self", "cls")]
    shown = [re.sub(r"<factory>|<dataclasses\._\w+ object>", "...", plain(str(one))) for one in bare]
    end = (
        ""
        if called.return_annotation in (inspect.Signature.empty, None) or inspect.isclass(thing)
        else f" -> {plain(annotation(called))}"
    )
    line = f"{name}({', '.join(shown)}){end}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {one},\n" for one in shown) + f"){end}"


def annotation(called: inspect.Signature) -> str:
    return inspect.formatannotation(called.return_annotation)


def plain(text: str) -> str:
    """Names of types without where they come from, and without addresses in memory."""
    return re.sub(r" at 0x[0-9a-f]+", "", re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text))


def prose(text: str) -> str:
    """A docstring as Markdown."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.split("\n")
        if lines[0].lstrip().startswith(">>>"):
            blocks.append("```pycon\n" + block + "\n```")
        elif all(EQUATION.match(line) for line in lines) or "python -m" in lines[0]:
            blocks.append("```\n" + inspect.cleandoc(block) + "\n```")
        elif looks_like_code(lines):
            blocks.append("```python\n" + block + "\n```")
        else:
            blocks.append(re.sub(r"(?<=\w)\*(?=\w)|(?<= )\*(?= )", r"\\*", block).replace("<", "&lt;"))
    return "\n\n".join(blocks)


def looks_like_code(lines: list[str]) -> bool:
    return any(re.match(r"(?:import|from) \w|\w+ = \w+\.|elman\.\w+|print\(", line) for line in lines)


# The command line


def commands() -> str:
    """The help of every command."""
    from elman.cli.main import run

    def told(*arguments: str) -> str:
        out = io.StringIO()
        with (
            patch.object(sys, "argv", ["elman", *arguments, "--help"]),
            patch.dict("os.environ", {"COLUMNS": "80", "TERMINAL_WIDTH": "80", "NO_COLOR": "1"}),
            redirect_stdout(out),
            redirect_stderr(out),
            suppress(SystemExit),
        ):
            run()
        return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())

    listed = told()
    names = re.findall(r"^│ ([a-z]+) ", listed.partition("Commands")[2], flags=re.MULTILINE)
    if "train" not in names:
        raise ValueError(f"the help of elman names no commands:\n{listed}")
    parts = ["# Command line", "What `elman` and each of its commands say with `--help`.", f"```text\n{listed}\n```"]
    for name in names:
        text = told(name)
        parts += [f"## elman {name}", f"```text\n{text}\n```"]
        for below in re.findall(r"^│ ([a-z]+) ", text.partition("Commands")[2], flags=re.MULTILINE):
            parts += [f"### elman {name} {below}", f"```text\n{told(name, below)}\n```"]
    return "\n\n".join(parts) + "\n"
