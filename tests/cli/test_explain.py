"""`elman explain` from the command line, on a model of each task: terminal, page, data, picture; and in a browser."""

import json
from pathlib import Path
from typing import Any

import pytest

import elman
from elman.inspect import views_of
from tests.cli.invoke import invoke
from tests.draw.test_browser import opened  # noqa: F401

KEPT = Path(__file__).parents[1] / "tasks" / "kept"
TEXTS = {
    "lm": "the cat sat on",
    "classify": "ulf",
    "tag": "Ada went to Oslo .",
    "translate": "der hund sieht ein vogel",
}
VIEWS = [(task, view) for task in TEXTS for view in views_of(elman.load(KEPT / task))]


@pytest.fixture
def needed(tmp_path: Path) -> dict[str, list[str]]:
    """Options that a view cannot do without."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat sat on the mat. the dog sat on the cat.\n" * 40)
    return {
        "matches": ["--phrase", "cat", "--corpus", str(corpus)],
        "features": ["--feature", "regex:cat", "--corpus", str(corpus)],
        "what-if": ["--prefix", "the"],
    }


@pytest.mark.parametrize(("task", "view"), VIEWS)
def test_every_view_is_shown_in_every_way(
    task: str,
    view: str,
    tmp_path: Path,
    needed: dict[str, list[str]],
    opened: Any,  # noqa: F811
) -> None:
    line = ["explain", str(KEPT / task), TEXTS[task], "--view", view, *needed.get(view, [])]
    code, out, error = invoke(*line)
    assert code == 0 and out.startswith(view), error
    for name, begins in (("a.json", b"{"), ("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.html", b"<!DOCTYPE html>")):
        code, out, error = invoke(*line, "--out", str(tmp_path / name))
        assert code == 0 and out == f"{view} of 1 text is in {tmp_path / name}\n", error
        assert (tmp_path / name).read_bytes().lower().startswith(begins.lower())
    assert json.loads((tmp_path / "a.json").read_text())["view"] == view
    html = (tmp_path / "a.html").read_text()
    assert len(html) < 1_000_000
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page = opened(html).page  # which sees that nothing is said or asked for
    found = axe.Axe().run(page).response["violations"]
    assert [issue["id"] for issue in found if issue["impact"] in ("serious", "critical")] == []


def test_several_texts_stand_side_by_side(tmp_path: Path) -> None:
    code, _, error = invoke("explain", str(KEPT / "classify"), "ulf", "ada", "--out", str(tmp_path / "a.json"))
    assert code == 0, error
    assert [one["text"] for one in json.loads((tmp_path / "a.json").read_text())["texts"]] == ["ulf", "ada"]


def test_records_of_a_file_are_measured_together(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("name,language\nulf,north\nada,south\nolof,north\n")
    line = ["explain", str(KEPT / "classify"), "--data", str(tmp_path / "new.csv"), "--faithfulness"]
    code, _, error = invoke(*line, "--out", str(tmp_path / "a.json"))
    assert code == 0, error
    found = json.loads((tmp_path / "a.json").read_text())
    assert found["texts"] == ["ulf", "ada", "olof"] and found["explained"] == 3 and found["most_faithful"]


def test_a_file_is_one_text_of_a_language_model_and_lines_of_the_others(tmp_path: Path) -> None:
    (tmp_path / "two.txt").write_text("the cat\nthe dog\n")
    for task, count in (("lm", 1), ("classify", 2)):
        code, _, error = invoke(
            "explain", str(KEPT / task), str(tmp_path / "two.txt"), "--out", str(tmp_path / "a.json")
        )
        assert code == 0, error
        assert len(json.loads((tmp_path / "a.json").read_text())["texts"]) == count
    code, _, error = invoke("explain", str(KEPT / "classify"), "--out", str(tmp_path / "b.json"), stdin="ulf\n")
    assert code == 0 and json.loads((tmp_path / "b.json").read_text())["texts"][0]["text"] == "ulf", error


def test_help_shows_the_options_of_the_model_and_of_the_view() -> None:
    _, of_lm, _ = invoke("explain", str(KEPT / "lm"), "--help")
    assert "--against" in of_lm and "--feature" in of_lm and "--beam" not in of_lm
    _, of_view, _ = invoke("explain", str(KEPT / "lm"), "--view", "neurons", "--help")
    assert "--units" in of_view and "--feature" not in of_view


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{lm}", "the cat", "--view", "saliency"], "this model has no view 'saliency'"),
        (["{lm}", "the cat", "--view", "rank"], "did you mean 'ranks'"),
        (["{lm}", "the cat", "--view", "neurons", "--units", "4000"], "4000"),
        (["{lm}", "the cat", "--view", "neurons", "--units", "x"], "units"),
        (["{lm}", ""], "empty"),
        (["{lm}", "the cat", "--view", "features", "--feature", "regex:("], "regular expression"),
        (["{lm}", "the cat sat " * 30, "--view", "features", "--feature", "regex:zzz"], "zzz"),
        (["{lm}", "the cat", "--view", "matches", "--phrase", "dog", "--corpus", "{lm}/config.json"], "dog"),
        (["{lm}", "the cat", "--beam", "3"], "--beam is an option of the views tree, what-if, and not of 'ranks'"),
        (["{classify}", "ulf", "--target", "nort"], "did you mean 'north'"),
        (["{classify}", "ulf", "--method", "magic"], "method"),
        (["{classify}", "ulf", "--view", "edits", "--faithfulness"], "--faithfulness is a view of its own"),
        (["{classify}", *"abcdefghi", "--out", "a.html"], "cannot be drawn side by side"),
        (["{classify}", "no/such/file.txt"], "no such file"),
        (["{tag}", "Ada went", "--position", "9"], "9"),
        (["{lm}", "--data", "{lm}/config.json"], "reads running text, not records"),
        (["{classify}", "--data", "nofile"], "no such file: nofile"),
        (["{translate}", "abcd", "--out", "a.pdf"], "should end in .html"),
        (["nowhere", "abcd"], "no model folder"),
    ],
)
def test_what_does_not_fit_is_one_sentence(arguments: list[str], sentence: str) -> None:
    names = {task: KEPT / task for task in TEXTS}
    code, _, error = invoke("explain", *(part.format(**names) for part in arguments))
    assert code == 2 and sentence in error, error
    assert len(error.strip().splitlines()) == 1


def test_a_folder_is_no_place_for_a_page(tmp_path: Path) -> None:
    (tmp_path / "a.html").mkdir()
    code, _, error = invoke("explain", str(KEPT / "lm"), "the cat", "--out", str(tmp_path / "a.html"))
    assert code == 2 and "a.html is a folder: give the name of a file in it" in error
