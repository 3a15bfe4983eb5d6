"""docs/architecture.md names files, classes and functions that are there, and its examples run."""

import re
from pathlib import Path

import torch

from elman.nn import Recurrent

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMED = re.findall(
    r"`([a-z_/]+\.(?:py|cpp|hpp))`((?:(?::|,)? `[A-Za-z_]\w*`(?=[,; |(.]|$))*)", PAGE, flags=re.MULTILINE
)


NAMED += [(file, names) for names, file in re.findall(r"((?:`\w+`(?: and |, )?)+) of\s`([a-z_/]+\.(?:py|hpp))`", PAGE)]


def _where(name: str) -> Path:
    return ROOT / name if name.startswith("csrc/") else ROOT / "elman" / name


def test_the_map_names_what_is_there() -> None:
    for file, names in NAMED:
        assert _where(file).is_file(), file
        text = _where(file).read_text(encoding="utf-8")
        for name in re.findall(r"`(\w+)`", names):
            made = rf"^\s*(?:class|(?:async )?def) {name}\b|^(?:#define )?{name}\b"
            assert re.search(made, text, flags=re.MULTILINE), f"{file}: {name}"


def test_the_walk_is_short() -> None:
    assert len(re.findall(r"^\| \d+ \| `", PAGE, flags=re.MULTILINE)) == 15


def test_the_rooms_are_all_on_the_map() -> None:
    parts = {path.name for path in (ROOT / "elman").iterdir() if path.is_dir() or path.suffix == ".py"}
    drawing = PAGE.split("```")[1].partition("csrc/")[0]
    shown = set(re.findall(r"^  (\w+(?:\.py)?)/? ", drawing, flags=re.MULTILINE))
    assert shown == {name for name in parts if not name.startswith("_")} - {"recipes"}


def test_the_cell_of_the_example_runs() -> None:
    (code,) = re.findall(r"```python\n(import torch\n.*?)```", PAGE, flags=re.DOTALL)
    namespace: dict[str, object] = {}
    exec(code, namespace)
    assert namespace["output"].shape == (7, 2, 10)  # type: ignore[attr-defined]
    bare = Recurrent(namespace["MGUCell"], 3, 5, bias=False)  # type: ignore[arg-type]
    assert bare(torch.ones(7, 2, 3))[0].shape == (7, 2, 5)
