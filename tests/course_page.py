"""docs/course.md as something that runs: its commands and its Python, in the order of the page, in one folder.

`console` blocks hold commands (`$ elman ...`) with what they print, `python` blocks doctests. A block whose fence says
`long` takes a minute or more: it is run in a fast form unless asked for whole, and not at all where it says `data`,
since it needs the public corpora as well.
Numbers may differ from one machine to the next, so output is compared without them. A line `...` stands for any lines.

    python -m tests.course_page        writes what is printed now into the page; with `long`, into long blocks too
"""

import doctest
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from tests.cli.invoke import invoke

PAGE = Path(__file__).parents[1] / "docs" / "course.md"
FENCE = re.compile(r"^```(console|python)([ a-z]*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
DRAWN = re.compile(r"[\u2500-\u259f\s]+")  # lines and bars of tables and curves
NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*(?:e-?\d+)?")
FAST = {
    "gradients": "--cells rnn --cells lstm --seeds 1 --steps 24 --hidden 8 --updates 2",
    "memory": "--cells lstm --seeds 1 --distances 2 --hidden 8 --updates 5",
    "languages": "--cells lstm --seeds 1 --hidden 6 --updates 2",
    "minimal": "--updates 5 --hidden 8",
    "init": "--seeds 1 --hidden 8 --steps 16 --updates 2",
    "agreement": "--cells rnn --seeds 1 --hidden 8 --updates 2 --pairs 5",
    "bptt": "--seeds 1 --steps 12 --truncations 1",
}
FEW = "-s train.steps=2 -s train.threads=1"


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, whether it is long or needs data, and its text."""

    kind: str
    flags: tuple[str, ...]
    line: int
    text: str

    @property
    def commands(self) -> list[tuple[str, str]]:
        """Each command of a console block with what the page says that it prints."""
        parts = re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]
        return [(first, rest) for first, _, rest in (part.partition("\n") for part in parts)]


@dataclass
class Part:
    """A part of the page under one heading of the second level: its blocks, in order."""

    title: str
    blocks: list[Block] = field(default_factory=list)


def parts(page: str) -> list[Part]:
    """The parts of a page."""
    found = [Part("")]
    for match in re.finditer(r"^## ([^\n]*)$|" + FENCE.pattern, page, flags=re.MULTILINE | re.DOTALL):
        if match[1] is not None:
            found.append(Part(match[1]))
        else:
            flags, line = tuple(match[3].split()), page[: match.start()].count("\n") + 2
            found[-1].blocks.append(Block(match[2], flags, line, match[4]))
    return found


def fast_form(words: list[str]) -> list[str]:
    """A command that takes minutes, so small that it takes a second."""
    if words[0] == "lab":
        asked = shlex.split(FAST[words[1]])
        return [*words[:2], *asked, *(word for word in words[2:] if word.startswith("--out") or word == "--json")]
    return [*words, *shlex.split(FEW)]


def run_command(command: str, *, fast: bool = False) -> str:
    """What a command of the page prints; it has to succeed."""
    typed, *filters = [part.strip() for part in command.split(" | ")]
    program, *words = shlex.split(typed)
    assert program == "elman", f"a command of the page is one of elman: {command}"
    code, out, error = invoke(*(fast_form(words) if fast else words))
    assert code == 0, f"{command}\n{error}"
    lines = [line.rstrip() for line in out.splitlines()]
    for one in filters:
        tool, *options = shlex.split(one)
        count = int(options[-1]) if tool in ("head", "tail") else 0
        if tool == "grep":
            lines = [line for line in lines if re.search(options[-1], line)]
        else:
            lines = lines[:count] if tool == "head" else lines[-count:]
    return "".join(f"{line}\n" for line in lines)


def same(shown: str, printed: str) -> bool:
    """Whether two outputs say the same, whatever their numbers and how they are drawn."""

    def bare(text: str) -> str:
        return DRAWN.sub(" ", NUMBER.sub("#", text)).strip()

    wanted = [bare(piece) for piece in re.split(r"^\.\.\.$", shown, flags=re.MULTILINE)]
    text, place = bare(printed), 0
    if len(wanted) == 1:
        return wanted[0] == text
    for number, piece in enumerate(wanted):
        found = text.find(piece, place)
        if found < 0 or (number == 0 and found):
            return False
        place = found + len(piece)
    return text.endswith(wanted[-1])


def check(part: Part, names: dict[str, Any], data: bool, *, whole: bool = False) -> int:
    """Run the blocks of a part in the folder of the process; how many commands and examples there were."""
    count = 0
    for block in part.blocks:
        long = "long" in block.flags
        if "data" in block.flags and not (data and whole):
            continue
        where = f"docs/course.md:{block.line}"
        if block.kind == "python":
            test = doctest.DocTestParser().get_doctest(block.text, names, "course.md", str(PAGE), block.line - 1)
            told = StringIO()
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            failed, tried = runner.run(test, out=told.write, clear_globs=False)
            names.update(test.globs)
            assert not failed, f"{where}\n{told.getvalue()}"
            count += tried
            continue
        for command, shown in block.commands:
            printed = run_command(command, fast=long and not whole)
            assert long or same(shown, printed), f"{where}: {command}\nshown:\n{shown}\nprinted:\n{printed}"
            count += 1
    return count


def filled(page: str, long: bool) -> Iterator[str]:
    """The page with what it prints now, run whole; where `long` is not asked for, blocks that are stay as they are."""
    place, names = 0, dict[str, Any]()
    for match in FENCE.finditer(page):
        yield page[place : match.start(3)]
        place = match.end(3)
        block = Block(match[1], tuple(match[2].split()), page[: match.start()].count("\n") + 2, match[3])
        print(f"docs/course.md:{block.line}", file=sys.stderr)
        if "long" in block.flags and not long:
            yield block.text
        elif block.kind == "python":
            examples = doctest.DocTestParser().get_examples(block.text)
            for example in examples:
                with redirect_stdout(StringIO()) as told:
                    exec(compile(example.source, "course.md", "single"), names)
                wanted = "" if example.want and "..." in example.want else told.getvalue()
                yield "".join(
                    f"{'... ' if number else '>>> '}{line}\n"
                    for number, line in enumerate(example.source.rstrip("\n").split("\n"))
                ) + (wanted or example.want)
        else:
            for command, shown in block.commands:
                kept = re.search(r"^\.\.\.$", shown, flags=re.MULTILINE)
                printed = shown if kept and same(shown, run_command(command)) else run_command(command)
                yield f"$ {command}\n{printed}"
    yield page[place:]


def main() -> None:
    """Write what is printed now into the page."""
    os.environ.setdefault("COLUMNS", "100")
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        text = "".join(filled(PAGE.read_text(encoding="utf-8"), "long" in sys.argv[1:]))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
