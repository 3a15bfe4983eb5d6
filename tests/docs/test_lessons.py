"""The lessons run and are written as pages and notebooks: in small settings, and in full in `make test-slow`."""

import doctest
import json
import re
from pathlib import Path

import pytest

from tests.docs.tools import DOCS, load

lesson = load("lesson")
LESSONS = sorted((DOCS / "lessons").glob("*.py"))


def check_page(folder: Path, name: str) -> None:
    """What every page has: its outcome in words and pictures that are there, each with a description."""
    page = (folder / f"{name}.md").read_text(encoding="utf-8")
    assert "{{" not in page and "# fast:" not in page
    pictures = re.findall(r'<img src="([^"]+)" alt="([^"]*)"', page)
    assert pictures and all(described for _, described in pictures)
    for file, _ in pictures:
        assert (folder / file).read_bytes().startswith(b"\x89PNG")
    assert "solutions.md#lesson-" in page


def check_notebook(file: Path) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    kinds = [cell["cell_type"] for cell in notebook["cells"]]
    assert kinds[0] == "markdown" and kinds.count("code") > 5
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            compile("".join(cell["source"]), str(file), "exec")
    pytest.importorskip("nbformat", reason="nbformat is installed by `make docs`").validate(notebook)


@pytest.mark.parametrize("file", LESSONS, ids=lambda file: file.stem)
def test_a_lesson_runs_in_small_settings(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("faker", reason="the surnames and entities are made with elman[demo]")
    lesson.write(file, tmp_path, fast=True)
    check_page(tmp_path, file.stem)
    check_notebook(tmp_path / f"{file.stem}.ipynb")


@pytest.mark.slow
@pytest.mark.parametrize("file", LESSONS, ids=lambda file: file.stem)
def test_a_lesson_says_what_is_true(file: Path, tmp_path: Path) -> None:
    """In full, with the assertions on which its prose rests."""
    assert lesson.write(file, tmp_path) < 600
    check_page(tmp_path, file.stem)


def test_there_are_five_lessons_with_solutions() -> None:
    assert [file.name[0] for file in LESSONS] == list("12345")
    for file in LESSONS:
        text, number = file.read_text(encoding="utf-8"), file.name[0]
        exercises = re.findall(r"^# (\d)\. ", text.partition("# ## Exercises")[2], flags=re.MULTILINE)
        solved = (DOCS / "lessons" / "solutions" / f"test_lesson_{number}.py").read_text(encoding="utf-8")
        assert set(exercises) == set(re.findall(r"^def test_(\d)_", solved, flags=re.MULTILINE)), file.name


# The executor


TEXT = """# %% [markdown]
# # A lesson
#
# Words.

# %%
N = 1000  # fast: 3
print("counted", N)
N

# %% [markdown]
# There are {{N:,}} of them, or {{N / 2:.1f}} pairs.

# %% [check]
assert N == 1000, "only in full"
"""


def run(text: str, tmp_path: Path, fast: bool = False) -> str:
    (tmp_path / "small.py").write_text(text, encoding="utf-8")
    lesson.write(tmp_path / "small.py", tmp_path / "out", fast)
    return (tmp_path / "out" / "small.md").read_text(encoding="utf-8")


def test_code_what_it_prints_and_values_in_prose_stand_on_the_page(tmp_path: Path) -> None:
    page = run(TEXT, tmp_path)
    assert page.startswith("# A lesson\n") and "There are 1,000 of them, or 500.0 pairs." in page
    assert "counted 1000" in page and "only in full" not in page and "small.ipynb" in page
    assert "There are 3 of them" in run(TEXT, tmp_path, fast=True)  # whose check is left out
    assert "N = 1000\n" in run(TEXT, tmp_path, fast=True)  # the code that is shown is that of the full form


def test_a_check_that_fails_is_an_error_that_names_its_line(tmp_path: Path) -> None:
    wrong = TEXT.replace("assert N == 1000", "assert N == 999")
    with pytest.raises(AssertionError, match="only in full") as raised:
        run(wrong, tmp_path)
    frame = raised.traceback[-1]
    assert str(frame.path).endswith("small.py") and frame.lineno + 1 == len(wrong.splitlines())


def test_a_picture_without_a_caption_is_refused(tmp_path: Path) -> None:
    drawing = "# %% [markdown]\n# # L\n# %%{}\nfrom matplotlib.figure import Figure\nFigure()\n"
    with pytest.raises(ValueError, match="needs a caption"):
        run(drawing.format(""), tmp_path)
    page = run(drawing.format(' Curves of "a" & b'), tmp_path)
    assert 'alt="Curves of &quot;a&quot; &amp; b"' in page and (tmp_path / "out" / "small-1.png").exists()


def test_code_before_the_first_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="line 1 stands before the first cell"):
        lesson.parse("import elman\n# %%\n")
    assert doctest.testmod(lesson).failed == 0


def test_a_notebook_has_the_same_cells_and_outputs(tmp_path: Path) -> None:
    run(TEXT, tmp_path)
    cells = json.loads((tmp_path / "out" / "small.ipynb").read_text(encoding="utf-8"))["cells"]
    assert [cell["cell_type"] for cell in cells] == ["markdown", "code", "markdown"]
    printed, shown = cells[1]["outputs"]
    assert printed["text"] == ["counted 1000\n"] and shown["data"]["text/plain"] == "1000"
