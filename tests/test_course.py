"""docs/course.md: every command and every example of it runs, and prints what it says there."""

import importlib
import os
import re
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.course_page import PAGE, Block, check, fast_form, parts, same
from tests.test_equations import found

TEXT = PAGE.read_text(encoding="utf-8")
SETUP, *NOTES = [part for part in parts(TEXT) if part.blocks]
TITLES = ("M1", "C", "B", "W", "M2")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A folder with the files and models of the page, and the names that its Python has."""
    folder, names = tmp_path_factory.mktemp("course"), dict[str, Any]()
    width = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    with chdir(folder):
        check(SETUP, names, data=False)
        yield folder, names
    if width is None:
        del os.environ["COLUMNS"]
    else:
        os.environ["COLUMNS"] = width


@pytest.mark.parametrize("part", NOTES, ids=TITLES)
def test_a_part_of_the_page_runs(part: Any, world: tuple[Path, dict[str, Any]]) -> None:
    """In the order of the page: a part may use what one before it has made."""
    assert check(part, world[1], data=False) > 5


@pytest.mark.slow
@pytest.mark.parametrize("part", NOTES, ids=TITLES)
def test_what_takes_long_runs_whole(part: Any, world: tuple[Path, dict[str, Any]], data_dir: Path) -> None:
    long = [block for block in part.blocks if "long" in block.flags]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ELMAN_DATA", str(data_dir))
        assert check(type(part)(part.title, long), {}, data=True, whole=True) == sum(len(b.commands) for b in long)


def test_every_set_of_notes_has_a_part_and_every_section_something_that_runs() -> None:
    assert [part.title.partition(":")[0] for part in NOTES] == list(TITLES)
    sections = re.split(r"^\*\*", TEXT.partition("\n## M1")[2], flags=re.MULTILINE)[1:]
    assert len(sections) > 60
    bare = [section.partition("**")[0] for section in sections if "```" not in section]
    assert bare == ["15. Translation, decoding, BLEU"], "which points to M1"


def test_every_name_that_is_told_is_there() -> None:
    told = set(re.findall(r"`(elman(?:\.\w+)+)", TEXT))
    assert len(told) > 20
    for name in told:
        assert found(name) if name.count(".") > 1 else importlib.import_module(name), name


def test_what_is_wrong_on_the_page_is_noticed() -> None:
    broken = Block("console", (), 1, "$ elman lab nothing\n")
    with pytest.raises(AssertionError, match="nothing"):
        check(type(SETUP)("", [broken]), {}, data=False)
    with pytest.raises(AssertionError, match="shown"):
        check(type(SETUP)("", [Block("console", (), 1, "$ elman --version\nmoon\n")]), {}, data=False)
    with pytest.raises(AssertionError, match="Expected"):
        check(type(SETUP)("", [Block("python", (), 1, ">>> 1 + 1\n3\n")]), {}, data=False)


def test_output_is_the_same_whatever_its_numbers() -> None:
    assert same("loss 1.25  in 3 s\n", "loss 7.5 in 12 s\n")
    assert same("┃ a ┃ 1 ┃\n", "│ a │ 22 │\n") and not same("a 1\n", "b 1\n")
    assert same("a\n...\nz 1\n", "a\nb\nc\nz 2\n") and not same("a\n...\nz\n", "a\nb\n")
    assert fast_form(["train", "lm"])[-1] == "train.threads=1" and "--updates" in fast_form(["lab", "memory"])


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
