"""Folders of runs: what is refused, what is removed."""

import subprocess
import sys
from pathlib import Path

import pytest

import elman
from elman.errors import RunError, UserError
from elman.tasks import report
from elman.tasks.run import check_folder, prepare_folder, remove_leftovers
from tests.tasks.classify_runs import SMALL as CLASSIFY
from tests.tasks.classify_runs import names
from tests.tasks.runs import SMALL, prose, recipe, run
from tests.train.toy import quiet


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


def test_force_starts_over_where_another_task_had_its_run(tmp_path: Path) -> None:
    text, out = tmp_path / "text.txt", tmp_path / "run"
    text.write_text(prose())
    elman.fit("classify", train=names(), out=out, settings=[*CLASSIFY, "train.steps=1", "data.folds=2"], verbose=False)
    assert (out / "confusion.png").exists() and (out / "folds" / "01" / "model.safetensors").exists()
    (out / "notes.txt").write_text("keep me")
    (out / "folds" / "mine.txt").write_text("me too")
    settings = [*SMALL, "train.steps=1"]
    for options in ({}, {"resume": True}):
        with pytest.raises(UserError, match="holds a run of the task 'classify'"):
            elman.fit("lm", train=text, out=out, settings=settings, verbose=False, **options)
    fresh = elman.fit("lm", train=text, out=tmp_path / "fresh", settings=settings, verbose=False)
    model = elman.fit("lm", train=text, out=out, settings=settings, verbose=False, force=True)
    assert model.score("the cat") == fresh.score("the cat")
    written = {path.name for path in (tmp_path / "fresh").iterdir()}
    assert {path.name for path in out.iterdir()} == written | {"notes.txt", "folds"}
    assert [path.name for path in (out / "folds").iterdir()] == ["mine.txt"]


def test_a_recipe_of_the_users_own_does_not_make_a_folder_a_run(tmp_path: Path) -> None:
    text, mine = tmp_path / "text.txt", tmp_path / "project"
    text.write_text(prose())
    (mine / "checkpoint").mkdir(parents=True)
    (mine / "checkpoint" / "own.txt").write_text("mine")
    (mine / "recipe.toml").write_text("[model]\nhidden = 8\n")
    (mine / "README.md").write_text("my own")
    for options in ({}, {"resume": True}, {"force": True}):
        with pytest.raises(UserError, match="holds no run of Elman's: name another folder with --out"):
            elman.fit("lm", mine / "recipe.toml", out=mine, train=text, reporter=quiet(), **options)  # type: ignore[arg-type]
    assert (mine / "README.md").read_text() == "my own"
    assert (mine / "checkpoint" / "own.txt").read_text() == "mine"


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
    assert again.report["dev"] == first.report["dev"]
    with pytest.raises(UserError, match="no run to resume"):
        elman.fit("lm", out=tmp_path / "nothing", resume=True)
    found = elman.evaluate(tmp_path / "run", text, baselines=False)
    assert found[str(text)]["tokens"] == len(text.read_text())


def test_other_text_of_the_same_length_is_not_resumed(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("abcabcaab" * 40)
    run(text, tmp_path / "run", "train.steps=3")
    text.write_text("cbacbaccb" * 40)
    with pytest.raises(UserError, match="training text has changed"):
        run(text, tmp_path / "run", "train.steps=3", resume=True)


def test_the_doors_of_the_package_stay_open_in_a_fresh_process() -> None:
    code = "import elman, elman.train; print(callable(elman.fit), callable(elman.load), callable(elman.evaluate))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3


def test_resuming_with_another_setting_names_that_setting(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text(prose())
    elman.fit("lm", out=tmp_path / "run", train=text, settings=[*SMALL, "train.steps=3"], reporter=quiet())
    with pytest.raises(UserError, match=r"\(train.seed: \d+ -> 80\), and only train.epochs, .* may change") as caught:
        elman.fit("lm", out=tmp_path / "run", settings=["train.seed=80"], resume=True, reporter=quiet())
    assert "data.train" not in str(caught.value)
    elman.fit("lm", out=tmp_path / "run", settings=["train.steps=3"], resume=True, reporter=quiet())


def test_a_report_is_the_last_that_a_run_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that has its report is done: a comparison does not train it again."""
    text = tmp_path / "text.txt"
    text.write_text(prose())

    def full(path: Path, text: str) -> None:
        raise RunError(f"could not write {path}: No space left on device")

    monkeypatch.setattr(report, "write_text", full)
    with pytest.raises(RunError, match=r"README.md: No space left"):
        run(text, tmp_path / "run", "train.steps=3")
    assert not (tmp_path / "run" / "metrics.json").exists()


def test_a_lock_that_a_kill_left_is_no_content(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").touch()
    assert check_folder(tmp_path / "run", recipe(tmp_path / "x.txt"), resume=False, force=False) is False


def test_a_name_too_long_for_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"could not write .*: file name too long; name another folder with --out"):
        check_folder(tmp_path / ("x" * 300), recipe(tmp_path / "x.txt"), resume=False, force=False)
