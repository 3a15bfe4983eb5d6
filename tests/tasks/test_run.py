"""Folders of runs: what is refused, what is removed."""

import subprocess
import sys
from pathlib import Path

import pytest

import elman
from elman.errors import UserError
from elman.tasks import language
from elman.tasks.run import check_folder, prepare_folder, remove_leftovers
from tests.tasks.runs import SMALL, prose, recipe, run


def test_force_never_touches_a_folder_that_is_no_run(tmp_path: Path) -> None:
    mine = tmp_path / "project"
    (mine / "checkpoint").mkdir(parents=True)
    (mine / "README.md").write_text("my own")
    with pytest.raises(UserError, match="holds no run of Elman's"):
        check_folder(mine, recipe(tmp_path / "x.txt"), resume=False, force=True)
    assert (mine / "README.md").read_text() == "my own"
    assert (mine / "checkpoint").is_dir()


def test_force_removes_only_what_elman_wrote(tmp_path: Path) -> None:
    chosen = recipe(tmp_path / "x.txt")
    prepare_folder(tmp_path / "run", chosen)
    (tmp_path / "run" / "notes.txt").write_text("keep me")
    (tmp_path / "run" / "log.jsonl").write_text("old")
    assert check_folder(tmp_path / "run", chosen, resume=False, force=True) is False
    prepare_folder(tmp_path / "run", chosen)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["notes.txt", "recipe.toml"]


def test_leftovers_of_a_kill_are_swept_away(tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / ".state.safetensors.123.tmp").write_text("half")
    (tmp_path / "checkpoint" / "state.safetensors").write_text("whole")
    remove_leftovers(tmp_path)
    assert [path.name for path in (tmp_path / "checkpoint").iterdir()] == ["state.safetensors"]


def test_the_library_resumes_by_the_folder_alone(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose())
    settings = {key: value for key, _, value in (setting.partition("=") for setting in SMALL)}
    first = elman.fit("lm", out=tmp_path / "run", train=text, settings={**settings, "train.steps": 3})
    again = elman.fit("lm", out=tmp_path / "run", resume=True)
    assert again["dev"] == first["dev"]
    with pytest.raises(UserError, match="no run to resume"):
        elman.fit("lm", out=tmp_path / "nothing", resume=True)
    report = elman.evaluate(tmp_path / "run", text, baselines=False)
    assert report[str(text)]["tokens"] == len(text.read_text())


def test_other_text_of_the_same_length_is_not_resumed(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("abcabcaab" * 40)
    run(text, tmp_path / "run", "train.steps=3")
    text.write_text("cbacbaccb" * 40)
    with pytest.raises(UserError, match="training text has changed"):
        language.train(recipe(text, "train.steps=3"), tmp_path / "run", resume=True)


def test_the_doors_of_the_package_stay_open_in_a_fresh_process() -> None:
    code = "import elman, elman.train; print(callable(elman.fit), callable(elman.load), callable(elman.evaluate))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3
