"""The recipes of docs/examples.md, on small files of a user's own: each trains and answers."""

import re
from pathlib import Path

import pytest

import elman
from elman.records.trees import with_words
from elman.tasks.recipes import recipe_names
from tests.cli.invoke import invoke

PAGE = Path(__file__).parents[2] / "docs" / "examples.md"
FEW = [part for one in ("train.steps=2", "train.threads=1", "model.hidden=8") for part in ("-s", one)]
SMALL = ["-s", "model.embedding=8", "-s", "batch.tokens=64"]
PLAY = "".join(f"{name}:\nWhat is the hour, number {place}?\n\n" for place in range(30) for name in ("Ann", "Bob"))
GUIDE = "".join(f"# The part {place % 5}\n\nWords of part {place % 5} come first.\n\nMore.\n\n" for place in range(60))
TREES = "(3 (2 It) (4 (3 works) (2 .)))\n(1 (2 It) (1 (1 fails) (2 .)))\n" * 30
CODE = '#ifndef ONE_H\n#define ONE_H 1\n/* "x" */\nint one(void);\n#endif\n' * 40


def train(task: str, recipe: str, file: Path, out: Path, *more: str) -> None:
    code, _, error = invoke("train", task, recipe, "--train", str(file), "--out", str(out), *FEW, *more)
    assert code == 0, error


@pytest.mark.parametrize(
    ("recipe", "name", "text"),
    [("dialogue", "play.txt", PLAY), ("headlines", "guide.md", GUIDE), ("parses", "trees.txt", TREES)],
)
def test_a_recipe_of_pairs_learns_from_files_of_ones_own(recipe: str, name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    train("translate", recipe, tmp_path / name, tmp_path / "run", *SMALL)
    code, out, error = invoke("predict", str(tmp_path / "run"), "It works .")
    assert code == 0 and out.strip(), error
    code, out, error = invoke("evaluate", str(tmp_path / "run"), str(tmp_path / name), "--no-baselines")
    assert code == 0 and "BLEU" in out, error


def test_a_parse_is_made_of_what_is_said(tmp_path: Path) -> None:
    (tmp_path / "trees.txt").write_text(TREES)
    settings = {"train.steps": 80, "train.threads": 1, "train.lr": 2e-2, "model.hidden": 16, "text.min_count": 1}
    model = elman.fit("translate", "parses", train=tmp_path / "trees.txt", settings=settings, verbose=False)
    said = model.predict("It works .").text
    assert str(with_words(said, ["It", "works", "."])) == "(3 (2 It) (4 (3 works) (2 .)))"


def test_source_text_of_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "src" / "deep"
    folder.mkdir(parents=True)
    for number in range(3):
        (folder / f"{number}.h").write_text(CODE)
    (tmp_path / "src" / "notes.md").write_text("no code\n" * 50)
    train("lm", "code", tmp_path / "src" / "**" / "*.h", tmp_path / "run", "-s", "batch.size=4")
    model = elman.load(tmp_path / "run")
    assert "#" in model.tokenizer.tokens and "e" in model.tokenizer.tokens
    assert not {"r", "c"} & set(model.tokenizer.tokens) - set(CODE)
    code, out, error = invoke("generate", str(tmp_path / "run"), "--prompt", "#ifndef ", "--length", "20")
    assert code == 0 and out.startswith("#ifndef "), error


def test_the_page_names_recipes_that_are_there() -> None:
    told = re.findall(r"^elman train (\w+) ([a-z-]+)", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert {"dialogue", "headlines", "parses", "docstrings", "code", "agreement"} <= {recipe for _, recipe in told}
    assert {recipe for _, recipe in told} <= set(recipe_names())
