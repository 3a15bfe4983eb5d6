"""Runs a lesson, and writes it as a page and as a notebook.

python docs/tools/lesson.py docs/lessons/1_from_rnn_to_translation.py --out build/lessons

A lesson is a Python file in cells, as editors and Jupytext know them. It runs as a plain script, too.

    # %% [markdown]        prose in comments; {{accuracy:.1%}} is the value of an expression when the prose is reached
    # %% A caption         code; what it prints, and what its last line is worth, stands below it
    # %% [check]           assertions on which the prose rests: run, but not shown

A figure of matplotlib's, and all that has a page of Elman's (`elman.lab.run`, `elman.inspect.explain`), is drawn; the
caption is what the picture is called for those who do not see it. The fast form (`--fast`) is for tests: an
assignment that ends in `# fast: VALUE` gets that value, and checks are left out, since a model that has learned nothing
says nothing.
"""

import argparse
import ast
import base64
import html
import io
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

MARK = re.compile(r"^# %% ?(.*)$")
FAST = re.compile(r"^(\s*\w+ = )(.*?)  # fast: (.*)$", flags=re.MULTILINE)
VALUE = re.compile(r"\{\{(.+?)\}\}")


@dataclass
class Cell:
    """A part of a lesson, and what came of it."""

    kind: Literal["markdown", "code", "check"]
    caption: str
    source: str
    line: int
    """Of the file, where the source begins: tracebacks name it."""
    printed: str = ""
    shown: list[dict[str, str]] = field(default_factory=list)
    """By MIME type, as notebooks have it; "page" is a page of Elman's beside its picture."""


def parse(text: str) -> list[Cell]:
    """The cells of a lesson.

    >>> [(cell.kind, cell.caption, cell.source) for cell in parse("# %% [markdown]\\n# # One\\n# %% two\\n1 + 1\\n")]
    [('markdown', '', '# One'), ('code', 'two', '1 + 1')]
    """
    cells: list[Cell] = []
    for number, line in enumerate(text.splitlines(), 1):
        if found := MARK.match(line):
            kind = found[1].strip("[]") if found[1] in ("[markdown]", "[check]") else "code"
            cells.append(Cell(kind, "" if kind != "code" else found[1], "", number + 1))  # type: ignore[arg-type]
        elif cells:
            cells[-1].source += (re.sub("^# ?", "", line) if cells[-1].kind == "markdown" else line) + "\n"
        elif line.strip():
            raise ValueError(f"line {number} stands before the first cell: begin with '# %%'")
    for cell in cells:
        cell.source = cell.source.strip("\n")
    return cells


def run(text: str, name: str, fast: bool = False) -> list[Cell]:
    """The cells of a lesson after they have run, one after the other, in a folder that is thrown away."""
    os.environ.setdefault("MPLBACKEND", "agg")
    namespace: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for cell in (cells := parse(text)):
            if cell.kind == "markdown":
                cell.source = VALUE.sub(lambda found: str(eval(f'f"""{{{found[1]}}}"""', namespace)), cell.source)
            elif cell.kind == "code" or not fast:
                _run_cell(cell, name, namespace, fast)
    return cells


def _run_cell(cell: Cell, name: str, namespace: dict[str, Any], fast: bool) -> None:
    source = FAST.sub(r"\1\3" if fast else r"\1\2", cell.source)
    cell.source = FAST.sub(r"\1\2", cell.source)
    tree = ast.parse("\n" * (cell.line - 1) + source, name)
    end = tree.body[-1] if tree.body else None
    last = ast.Expression(end.value) if isinstance(end, ast.Expr) else None
    if last is not None:
        tree.body.pop()
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, name, "exec"), namespace)
        value = None if last is None else eval(compile(last, name, "eval"), namespace)
    cell.printed = printed.getvalue()
    if value is not None:
        cell.shown.append(_display(value, cell.caption))


def _display(value: Any, caption: str) -> dict[str, str]:
    """What a value is shown as, by MIME type."""
    from matplotlib.figure import Figure

    if isinstance(value, Figure):
        if not caption:
            raise ValueError("a picture needs a caption: write it behind '# %%'")
        drawn = io.BytesIO()
        value.savefig(drawn, format="png", dpi=120)
        return {"image/png": base64.b64encode(drawn.getvalue()).decode(), "text/plain": caption}
    if callable(getattr(value, "page", None)):
        from elman.draw.page import page_html
        from elman.draw.picture import picture

        return _display(picture(value.page()), caption) | {"page": page_html(value.page())}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_(), "text/plain": repr(value)}
    return {"text/plain": repr(value)}


# As a page


def page(cells: list[Cell], name: str, seconds: float, folder: Path) -> str:
    """The lesson in Markdown; its pictures are written into a folder beside it."""
    parts: list[str] = []
    for number, cell in enumerate(cells):
        if cell.kind == "markdown":
            parts.append(cell.source)
        elif cell.kind == "code":
            parts.append(f"```python\n{cell.source}\n```")
            if cell.printed:
                parts.append(_output(cell.printed))
            parts += [_shown(shown, cell.caption, f"{name}-{number}", folder) for shown in cell.shown]
    title, *rest = parts
    about = (
        f'!!! note ""\n    Everything below was run when this page was made ({seconds:.0f} s): every number and every '
        f"picture is its outcome. [The same as a notebook]({name}.ipynb){{ download }}."
    )
    heading, _, opening = title.partition("\n")
    return "\n\n".join([heading, about, opening.strip("\n"), *rest]) + "\n"


def _output(text: str) -> str:
    return f'<pre class="output"><code>{html.escape(text.rstrip())}</code></pre>'


def _shown(shown: dict[str, str], caption: str, name: str, folder: Path) -> str:
    if "image/png" in shown:
        (folder / f"{name}.png").write_bytes(base64.b64decode(shown["image/png"]))
        below = html.escape(caption)
        if "page" in shown:
            (folder / f"{name}.html").write_text(shown["page"], encoding="utf-8")
            below += f' (<a href="{name}.html">as a page</a> that can be pointed at)'
        alternative = html.escape(caption, quote=True)
        image = f'<img src="{name}.png" alt="{alternative}" loading="lazy">'
        return f'<figure class="drawn">{image}<figcaption>{below}</figcaption></figure>'
    if "text/html" in shown:
        return f'<div class="output">{shown["text/html"]}</div>'
    return _output(shown["text/plain"])


# As a notebook


def notebook(cells: list[Cell], name: str) -> dict[str, Any]:
    """The lesson as Jupyter's format 4.5 has it, with its outputs."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
            "title": name,
        },
        "cells": [_notebook_cell(cell, number) for number, cell in enumerate(cells) if cell.kind != "check"],
    }


def _notebook_cell(cell: Cell, number: int) -> dict[str, Any]:
    shared = {"id": f"cell-{number}", "metadata": {}}
    if cell.kind == "markdown":
        prose = re.sub(r"\]\(([\w./-]+)\.md(#[\w-]+)?\)", r"](\1.html\2)", cell.source)  # as pages of the site
        return {"cell_type": "markdown", **shared, "source": prose.splitlines(keepends=True)}
    outputs = list(_outputs(cell))
    source = cell.source.splitlines(keepends=True)
    return {"cell_type": "code", **shared, "execution_count": number + 1, "source": source, "outputs": outputs}


def _outputs(cell: Cell) -> Iterator[dict[str, Any]]:
    if cell.printed:
        yield {"output_type": "stream", "name": "stdout", "text": cell.printed.splitlines(keepends=True)}
    for shown in cell.shown:
        data = {kind: text for kind, text in shown.items() if kind != "page"}
        yield {"output_type": "display_data", "data": data, "metadata": {}}


def write(file: Path, out: Path, fast: bool = False) -> float:
    """Run a lesson and write NAME.md, its pictures, and NAME.ipynb; how many seconds it ran."""
    began = time.monotonic()
    cells = run(file.read_text(encoding="utf-8"), str(file.resolve()), fast)
    seconds = time.monotonic() - began
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob(f"{file.stem}*"):
        old.unlink()
    (out / f"{file.stem}.ipynb").write_text(json.dumps(notebook(cells, file.stem), ensure_ascii=False, indent=1))
    (out / f"{file.stem}.md").write_text(page(cells, file.stem, seconds, out), encoding="utf-8")
    return seconds


if __name__ == "__main__":
    options = argparse.ArgumentParser(description="Run lessons, and write each as a page and a notebook.")
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--fast", action="store_true", help="Small settings, without checks.")
    asked = options.parse_args()
    for one in asked.files:
        print(f"{one}: {write(one, asked.out, asked.fast):.0f} s", flush=True)
