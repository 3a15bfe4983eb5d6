"""What the model cards of all tasks have in common: a table of scores, how to use the model, where it was made."""

import platform
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from elman import __version__

USE = "## Use"
"""The heading behind which commands name the model's folder."""


def score_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Scores as the lines of a Markdown table, the first column being who scored them.

    >>> print("\\n".join(score_table(["accuracy"], [["this model", "0.9"]])))
    | | accuracy |
    |---|---|
    | this model | 0.9 |
    <BLANKLINE>
    """
    lines = [["", *columns], *rows]
    if any(len(line) != len(lines[0]) for line in lines):
        raise ValueError(f"a row of scores has other columns than {', '.join(columns)}")
    heading, *rest = ("| " + " | ".join(line) + " |" for line in lines)
    return [heading.replace("|  |", "| |", 1), "|---" * len(lines[0]) + "|", *rest, ""]


def use(folder: Path, commands: Iterable[str], example: str) -> list[str]:
    """How to use the model: commands, in which `{model}` is its folder, and a line of Python.

    >>> print("\\n".join(use(Path("runs/my model"), ["elman predict {model} FILE"], 'model.predict("a text")')))
    ## Use
    <BLANKLINE>
    ```
    elman predict 'my model' FILE
    ```
    <BLANKLINE>
    ```python
    import elman
    model = elman.load("my model")
    model.predict("a text")
    ```
    """
    name = folder.resolve().name
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    typed = [command.replace("{model}", shlex.quote(name)) for command in commands]
    python = ["import elman", f'model = elman.load("{quoted}")', example]
    return [USE, "", "```", *typed, "```", "", "```python", *python, "```"]


def renamed(card: str, old: Path, new: Path) -> str:
    """The card of a model that was copied to another folder: its title and its commands name that one.

    >>> renamed("# a\\n\\na model\\n\\n## Use\\n\\nelman predict a FILE\\n", Path("a"), Path("b"))
    '# b\\n\\na model\\n\\n## Use\\n\\nelman predict b FILE\\n'
    """
    before, after = old.resolve().name, new.resolve().name
    head, heading, commands = card.partition(f"\n{USE}\n")
    for shown in (shlex.quote, lambda name: f'"{name}"'):
        commands = commands.replace(f" {shown(before)} ", f" {shown(after)} ").replace(
            f"({shown(before)})", f"({shown(after)})"
        )
    return head.replace(f"# {before}\n", f"# {after}\n", 1) + heading + commands


def platform_facts() -> dict[str, Any]:
    """What a report says of the machine that it was made on."""
    return {
        "elman": __version__,
        "torch": torch.__version__,
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
    }


def trained_on(corpus: str | None, files: Sequence[str]) -> str:
    """The data of a run, as a card names them.

    >>> trained_on(None, ["/home/me/a.txt"]), trained_on("names", [])
    ('`a.txt`', 'the corpus `names`')
    """
    return ", ".join(f"`{Path(name).name}`" for name in files) if files else f"the corpus `{corpus}`"
