"""Whether a sentence can be acted on: what it names has to exist, so that it can be typed."""

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elman.cli.app import build
from elman.tasks import TASKS
from elman.tasks.recipes import recipe_names
from elman.train.recipe import known_keys

PYTHON = re.compile(
    r"Traceback|\b\w+(?:Error|Exception|Warning)\b|<class |\bobject at 0x|NoneType|\[Errno|pydantic|validation error"
    r"|--debug shows|\bPosixPath\b|not JSON serializable|\bstate_dict\b|DefaultCPUAllocator"
)
"""Words of Python's that mean nothing to who typed the command."""
REPORTING = ("train", "compare", "demo")
"""Commands that also say on standard error what they found and how far they are."""
SUFFIXES = (".safetensors", ".json", ".toml", ".txt", ".csv", ".tsv", ".conll", ".png")
"""Ends of files' names, which keys may look like."""
FORMS = ("section.key=value", "pip install", "name=value")
"""What to type, in general."""
PLACEHOLDERS = {"name", "key", "value", "label", "value,value"}


@functools.cache
def commands() -> dict[str, Any]:
    """Every command, as Typer made it, by the words that it is called with."""
    return dict(_walk("", build()))


def _walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for word, inner in command.commands.items():
            yield from _walk(f"{name} {word}".strip(), inner)
    else:
        yield name, command


@functools.cache
def options() -> frozenset[str]:
    """Every option of every command."""
    found = {"--debug", "--help", "--version"}
    for command in commands().values():
        for parameter in command.params:
            found |= {name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("-")}
    return frozenset(found)


@functools.cache
def keys() -> frozenset[str]:
    """Every key of every recipe."""
    return frozenset(key for task in TASKS.values() for key in known_keys(task.Recipe))


def complaints(error: str, arguments: list[str], folder: Path) -> list[str]:
    """What is wrong with what a command said on standard error before it ended."""
    if found := PYTHON.search(error):
        return [f"{found.group()!r} is no word of a user's"]
    if "\u2500 Error \u2500" in error:
        return []  # the command line's own frame, with what is wrong and how to get help
    lines = error.strip().splitlines()
    if not lines or not lines[-1].startswith("elman: "):
        return ["there is no sentence"]
    sentence, typed = lines[-1].removeprefix("elman: "), "\n".join(_typed(arguments, folder))
    wrong = [] if len(lines) == 1 or arguments[0] in REPORTING else [f"{len(lines)} lines"]
    if len(sentence) > 1500 and len(max(arguments, key=len)) < 500:
        wrong.append(f"{len(sentence)} characters")
    wrong += [
        f"there is no option {name}" for name in _options_in(sentence) if name not in options() | {*typed.split()}
    ]
    if " is damaged" not in sentence:  # what a damaged file holds may have any name
        wrong += [f"there is no key {name}" for name in _keys_in(sentence) if not _is_key(name, typed)]
    wrong += [f"{name} cannot be typed" for name in _assignments_in(sentence) if name not in typed]
    wrong += [f"there is no {name}" for name in _paths_in(sentence, folder) if not _is_there(name, typed, folder)]
    if not _has_a_hold(sentence, typed):
        wrong.append("it names nothing to change")
    return wrong


def _typed(arguments: list[str], folder: Path) -> Iterator[str]:
    """What a user wrote: the arguments, as they stand and as full paths, and the recipes that they name."""
    for argument in arguments:
        yield argument or "."  # an empty path is where one is
        yield from (os.path.normpath(folder / argument), str(folder / argument))
        if argument.endswith(".toml") and (folder / argument).is_file():
            yield (folder / argument).read_bytes().decode("utf-8", "replace")


def _options_in(sentence: str) -> list[str]:
    return re.findall(r"(?<![\w/.-])--[a-z][a-z0-9-]*", sentence)


def _keys_in(sentence: str) -> list[str]:
    sections = sorted({key.partition(".")[0] for key in keys() if "." in key})
    found = re.findall(rf"(?<![\w/.-])(?:{'|'.join(sections)})\.[a-z_]+\b(?!\.\w)(?!/)", sentence)
    return [name for name in found if not name.endswith(SUFFIXES)]


def _is_key(name: str, typed: str) -> bool:
    """Whether a key exists, or was typed: in a recipe its section stands above it."""
    return name in keys() or name in typed or name.rpartition(".")[2] in typed


def _assignments_in(sentence: str) -> list[str]:
    """`word=`, which looks as if it could be typed, and is the end of no key and of no option."""
    found = re.findall(r"(?<![\w.'\"-])([A-Za-z_]+)=(?=\S|$)", sentence)
    return [f"{word}=" for word in found if word not in PLACEHOLDERS and not word.isupper()]


def _paths_in(sentence: str, folder: Path) -> list[str]:
    return [name.rstrip(".,:;)'\"") for name in re.findall(rf"{re.escape(str(folder))}/[^\s:;,'\")]+", sentence)]


def _is_there(name: str, typed: str, folder: Path) -> bool:
    """Whether a path was typed, or is there, or lacks from a folder that was typed."""
    above = [str(parent) for parent in Path(name).parents if folder in parent.parents]
    above += [os.path.relpath(parent, folder) for parent in above]
    return name in typed or os.path.lexists(name) or any(path in typed for path in above)


def _has_a_hold(sentence: str, typed: str) -> bool:
    """Whether something that was typed or can be typed is named."""
    if _options_in(sentence) or any(key in sentence for key in keys()) or any(form in sentence for form in FORMS):
        return True
    if sentence.startswith(("- ", "-:", ". is", "standard input")):  # as short as names of files can be
        return True
    if (place := re.search(r"(?:folder at|folder|file:) ([^\s:;,]+)", sentence)) and place[1] in typed.splitlines():
        return True
    parts = {part for line in typed.splitlines() for part in (line, *re.split(r"[=,\s]", line))}
    parts |= {line.partition(".")[0] for line in typed.splitlines() if "=" in line}  # the section of a setting
    known = {f"elman {name}" for name in commands()} | {name.lstrip("-").replace("-", "_") for name in options()}
    shown = {way for part in parts for way in (part, ascii(part)[1:-1]) if len(way) >= 4}
    return any(_stands_in(word, sentence) for word in (*shown, *known, *recipe_names()))


def _stands_in(word: str, sentence: str) -> bool:
    """Whether a sentence has a word, and not only as a part of a longer one."""
    end = r"(?!\w)" if len(word) <= 150 else ""  # a longer one may be shortened
    return re.search(rf"(?<!\w){re.escape(word[:150])}{end}", sentence) is not None
