"""What the documentation site has beside the files of docs/: MkDocs calls the functions `on_...` of this file.

`make docs` runs the lessons (lesson.py), draws the gallery (gallery.py) and measures (`elman bench --json`) before,
into build/docs; the reference is made here, from docstrings (reference.py).
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reference  # beside this file
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parents[1]
MADE = DOCS.parent / "build" / "docs"

BENCHMARKS = {
    "layers": "RNN, GRU and LSTM, forward and backward, beside `torch.nn`",
    "streaming": "a character model that writes, beside loops in PyTorch and ONNX Runtime",
    "prediction": "taggers and a classifier, one sentence at a time and many together",
    "vectors": "word vectors that learn, one seed, on the source code of Python's library",
    "decoding": "translators that write and learn, beside a course's loop in PyTorch",
}
LEFT_OUT = {"real_steps", "flops", "gflops"}
"""Columns that follow from others."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages of the reference stand in the navigation without being named in mkdocs.yml."""
    (section,) = (one["Reference"] for one in config.nav or [] if isinstance(one, dict) and "Reference" in one)
    section += [{room: f"reference/{room}.md"} for room in reference.ROOMS]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what is made to what is written."""
    if not any(MADE.glob("lessons/*.md")):
        raise SystemExit(f"there are no lessons in {MADE}: `make docs` runs them first")
    for path in sorted(MADE.rglob("*")):
        if path.is_file():
            files.append(File.generated(config, path.relative_to(MADE).as_posix(), abs_src_path=str(path)))
    pages = {
        "index.md": (DOCS / "tools" / "index.md").read_text(encoding="utf-8"),
        "lessons/index.md": lessons(),
        "lessons/solutions.md": solutions(),
        "benchmarks.md": benchmarks(),
    }
    for name, text in {**pages, **reference.pages()}.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Names of files outside docs/ are links where the project is read, and plain names on the site."""
    return re.sub(r"\[([^\]]+)\]\(\.\./(?:tests|elman|csrc|recipes|benchmarks)/[^)]+\)", r"\1", markdown)


def lessons() -> str:
    """The list of lessons, each with the sentence that it begins with."""
    parts = [
        "# Lessons\n\nFive lessons, one for each set of the course's notes. Each is a Python file (`docs/lessons`) "
        "that was run when this page was made: every number and every picture is its outcome. They need no download, "
        "and each is a notebook, too. `pip install '.[demo]'` in Elman's folder is all that they need.\n"
    ]
    for path in sorted((MADE / "lessons").glob("*.md")):
        title, _, rest = path.read_text(encoding="utf-8").partition("\n")
        opening = re.search(r"^This lesson follows.*?(?=\n\n)", rest, flags=re.MULTILINE | re.DOTALL)
        parts.append(f"## [{title.lstrip('# ')}]({path.name})\n\n{opening.group() if opening else ''}\n")
    parts.append("## [Solutions](solutions.md)\n\nOf the exercises at the end of each lesson, as tests.\n")
    return "\n".join(parts)


def solutions() -> str:
    """The solutions of all lessons, as the files have them."""
    parts = ["# Solutions\n\nEach is a test: `pytest docs/lessons/solutions` runs them, and so does `make test`.\n"]
    for path in sorted((DOCS / "lessons" / "solutions").glob("test_*.py")):
        number = re.search(r"\d", path.stem)
        assert number is not None
        parts.append(f"## Lesson {number.group()}\n\n```python\n{path.read_text(encoding='utf-8').strip()}\n```\n")
    return "\n".join(parts)


# Benchmarks


def benchmarks() -> str:
    """A table for each file that `elman bench --json` wrote."""
    parts = [
        "# Benchmarks\n\nA speed is a ratio: what is compared runs in turns in one process. These are short runs on "
        "the machine that made this page, when it was made; what else ran there at that time has its part in them. "
        "[Speed](speed.md) tells of longer runs, and how much they differ.\n"
    ]
    for name, about in BENCHMARKS.items():
        measured = json.loads((MADE / "benchmarks" / f"{name}.json").read_text(encoding="utf-8"))
        machine = measured["machine"]
        versions = ", ".join(f"{package} {version}" for package, version in machine["versions"].items() if version)
        parts.append(
            f"## {name}\n\n{about[0].upper()}{about[1:]}: `elman bench {name} --quick`. "
            f"{machine['processor']}, {machine['instruction_set']}, {machine['threads']} of {machine['cores']} cores; "
            f"{versions}.\n"
        )
        rows = measured["runs"] if name == "vectors" else measured["rows"]
        parts.append("\n".join(table([dict(flat(row)) for row in rows])) + "\n")
        if name == "vectors" and measured["ratio"] is not None:
            parts.append(f"By the clock Elman is {cell(measured['ratio'])} times as fast.\n")
    return "\n".join(parts)


def flat(row: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """The cells of a row; `{"seconds": {"torch": 0.1}}` is a column `seconds, torch`."""
    for key, value in row.items():
        if key in LEFT_OUT or value is None:
            continue
        if isinstance(value, dict):
            yield from flat(value, f"{before}{key}, ".replace("_", " "))
        elif not isinstance(value, list):
            yield f"{before}{key}".replace("_", " "), cell(value)


def cell(value: Any) -> str:
    """Three digits of a number, or all before the point of a large one; yes or nothing."""
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return str(value)


def table(rows: list[dict[str, str]]) -> Iterator[str]:
    """Rows in Markdown, with every column that any of them has: what was measured, the ratios, then the figures."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    columns.sort(key=lambda column: (", " in column) + (", " in column and not column.startswith("ratio")))
    yield "| " + " | ".join(columns) + " |"
    yield "|" + "---|" * len(columns)
    for row in rows:
        yield "| " + " | ".join(row.get(column, "") for column in columns) + " |"
