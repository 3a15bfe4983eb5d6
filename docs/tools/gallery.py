"""Draws every picture that Elman draws, by the command that a user would type, and writes the page that shows them.

python docs/tools/gallery.py --out build/docs

The commands stand in gallery.toml. One that fails, or draws nothing, is an error.
"""

import argparse
import contextlib
import io
import re
import shlex
import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from unittest.mock import patch

STEPS: list[dict[str, str]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["step"]


def run(command: str) -> None:
    """Run a command line in this process, which is spared the import of PyTorch; `> FILE` takes what it prints."""
    from elman.cli.main import run as elman

    words, _, file = command.partition(" > ")
    printed, told = io.StringIO(), io.StringIO()
    with (
        patch.object(sys, "argv", shlex.split(words)),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(told),
    ):
        try:
            elman()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"{command}\n{told.getvalue()}") from None
    if file:
        Path(file).write_text(printed.getvalue(), encoding="utf-8")


def draw(out: Path) -> str:
    """Run all commands in a folder that is thrown away, keep their pictures, and return the page in Markdown."""
    pictures = out / "gallery"
    shutil.rmtree(pictures, ignore_errors=True)
    pictures.mkdir(parents=True)
    parts = [
        "# Gallery\n\nEvery picture that Elman draws, and the command that drew it when this page was made: "
        "on built-in data, in small runs.\n"
    ]
    before: list[str] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for step in STEPS:
            began = time.monotonic()
            run(step["command"])
            print(f"{time.monotonic() - began:5.0f} s  {step['command']}", file=sys.stderr, flush=True)
            before.append(step["command"])
            if "picture" in step:
                kept = re.sub(r"^runs-", "", step["picture"].replace("/", "-"))
                shutil.copy(step["picture"], pictures / kept)
                parts.append(
                    f"## {step['title']}\n\n![{step['title']}](gallery/{kept})\n\n```\n" + "\n".join(before) + "\n```\n"
                )
                before = []
    return "\n".join(parts)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Draw every picture that Elman draws.")
    options.add_argument("--out", type=Path, required=True)
    folder = options.parse_args().out.resolve()
    page = draw(folder)
    (folder / "gallery.md").write_text(page, encoding="utf-8")
