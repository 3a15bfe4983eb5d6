"""Every wrong input: exit code 2, one sentence, no traceback, nothing half-written."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.invoke import invoke
from tests.tasks.runs import SMALL, prose, write_names

OVERRIDES = [part for setting in (*SMALL, "train.steps=2") for part in ("-s", setting)]


def refused(*arguments: str) -> str:
    """The one sentence that a wrong command is answered with."""
    code, out, error = invoke(*arguments)
    assert code == 2, error
    assert out == ""
    assert "Traceback" not in error
    lines = error.strip().splitlines()
    assert len(lines) == 1, error
    assert lines[0].startswith("elman: ")
    return lines[0]


def misused(*arguments: str) -> str:
    """What the command line itself answers: usage and an error, in a frame."""
    code, out, error = invoke(*arguments)
    assert code == 2, error
    assert out == ""
    assert "Traceback" not in error
    return error


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(prose())
    return path


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain model, and one with labels."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "text.txt").write_text(prose())
    table = write_names(folder / "names.csv")
    plain = ("train", "lm", "--train", str(folder / "text.txt"), "-o", str(folder / "plain"), *OVERRIDES)
    assert invoke(*plain)[0] == 0
    lines = ("-s", "data.unit=line", "-s", "data.label_column=label")
    assert invoke("train", "lm", "--train", str(table), "-o", str(folder / "labels"), *OVERRIDES, *lines)[0] == 0
    return folder


# Text that is no text


def binary(path: Path) -> str:
    path.write_bytes(bytes(range(256)) * 20)
    return "looks like a binary file"


def latin(path: Path) -> str:
    path.write_bytes(b"one\ntwo\ncaf\xe9\n" * 9)
    return f"{path}:3 is not utf-8"


def empty(path: Path) -> str:
    path.write_bytes(b"")
    return "is empty"


def missing(path: Path) -> str:
    return f"no such file: {path}"


def tiny(path: Path) -> str:
    path.write_text("a")
    return ""


def unreadable(path: Path) -> str:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path.write_text("text")
    path.chmod(0)
    return "cannot be read: permission denied; change its permissions"


@pytest.mark.parametrize("split", ["--train", "--dev", "--test"])
@pytest.mark.parametrize("make", [missing, empty, binary, latin, unreadable])
def test_text_that_cannot_be_used(tmp_path: Path, text: Path, make: Callable[[Path], str], split: str) -> None:
    bad = tmp_path / "bad.txt"
    expected = make(bad)
    files = [split, str(bad)] if split == "--train" else ["--train", str(text), split, str(bad)]
    assert expected in refused("train", "lm", *files, "--out", str(tmp_path / "run"), *OVERRIDES)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("make", [missing, empty, binary, latin])
def test_evaluating_text_that_cannot_be_used(tmp_path: Path, models: Path, make: Callable[[Path], str]) -> None:
    expected = make(tmp_path / "bad.txt")
    assert expected in refused("evaluate", str(models / "plain"), str(tmp_path / "bad.txt"))


def test_too_little_text(tmp_path: Path) -> None:
    tiny(tmp_path / "tiny.txt")
    refused("train", "lm", "--train", str(tmp_path / "tiny.txt"), "--out", str(tmp_path / "run"), *OVERRIDES)
    line = ("-s", "data.unit=line")
    refused("train", "lm", "--train", str(tmp_path / "tiny.txt"), "--out", str(tmp_path / "run"), *OVERRIDES, *line)
    assert not (tmp_path / "run").exists()


def test_nothing_to_train_on(tmp_path: Path) -> None:
    assert "--train" in refused("train", "lm", "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


# Recipes


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("model.hiden=3", ["unknown key 'model.hiden'", "did you mean 'model.hidden'?"]),
        ("modle.hidden=3", ["unknown key 'modle'"]),
        ("model.hidden=many", ["'model.hidden' = 'many'", "integer"]),
        ("model.hidden=0", ["'model.hidden' = 0", "greater than or equal to 1"]),
        ("model.dropout=1.0", ["model.dropout", "less than 1"]),
        ("model.cell=lsmt", ["model.cell", "'lstm'"]),
        ("train.lr=-1", ["train.lr", "greater than 0"]),
        ("train.lr=nan", ["train.lr", "finite"]),
        ("text.kind=letters", ["text.kind", "'characters'"]),
        ("data.encoding=utf-99", ["no such encoding"]),
        ("data.label_column=label", ["data.unit"]),
        ("model.projection=9", ["projection", "lstm"]),
        ("model.hidden", ["write section.key=value"]),
        ("=3", ["write section.key=value"]),
        ("task.inner=3", ["task"]),
    ],
)
def test_wrong_settings(tmp_path: Path, text: Path, setting: str, words: list[str]) -> None:
    out = str(tmp_path / "run")
    sentence = refused("train", "lm", "--train", str(text), "--out", out, *OVERRIDES, "-s", setting)
    for word in words:
        assert word in sentence
    assert not (tmp_path / "run").exists()


def test_wrong_recipes(tmp_path: Path, text: Path) -> None:
    rest = ("--train", str(text), "--out", str(tmp_path / "run"))
    assert "did you mean 'tinyshakespeare'?" in refused("train", "lm", "tinyshakespear", *rest)
    assert "no recipe" in refused("train", "lm", str(tmp_path / "none.toml"), *rest)
    assert "known are: formulas, listops, sst-tree, sst-tree-binary" in refused("train", "tree", "none", *rest)
    recipe = tmp_path / "bad.toml"
    recipe.write_text("[model]\nhidden 3\n")
    assert "line 2" in refused("train", "lm", str(recipe), *rest)
    recipe.write_text("[model]\nhiden = 3\n")
    assert f"{recipe}: unknown key 'model.hiden'" in refused("train", "lm", str(recipe), *rest)
    assert "corpus" in refused("train", "lm", "-s", "data.corpus=nosuchcorpus", "--out", str(tmp_path / "run"))
    assert not (tmp_path / "run").exists()


# Folders of runs


def test_an_out_folder_that_is_in_use(tmp_path: Path, text: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "thesis.tex").write_text("precious")
    for force in ([], ["--force"]):
        assert "holds no run" in refused("train", "lm", "--train", str(text), "--out", str(out), *OVERRIDES, *force)
    assert [path.name for path in out.iterdir()] == ["thesis.tex"]
    (out / "thesis.tex").rename(tmp_path / "thesis.tex")
    arguments = ("train", "lm", "--train", str(text), "--out", str(out), *OVERRIDES)
    assert invoke(*arguments)[0] == 0
    sentence = refused(*arguments)
    assert "--resume" in sentence
    assert "--force" in sentence
    assert "is a file" in refused("train", "lm", "--train", str(text), "--out", str(text), *OVERRIDES)


def test_resuming_what_cannot_be_resumed(tmp_path: Path, models: Path) -> None:
    assert "no run to resume" in refused("train", "lm", "--out", str(tmp_path / "none"), "--resume")
    assert "give one of them" in refused("train", "lm", "--out", str(tmp_path / "none"), "--resume", "--force")
    assert not (tmp_path / "none").exists()
    run = tmp_path / "run"
    shutil.copytree(models / "plain", run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    text = str(models / "text.txt")
    changed = ("train", "lm", "--train", text, "--out", str(run), "--resume", *OVERRIDES, "-s", "train.lr=0.5")
    assert "train.lr: 0.002 -> 0.5" in refused(*changed)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_resuming_from_a_damaged_checkpoint(tmp_path: Path, models: Path) -> None:
    shutil.copytree(models / "plain", tmp_path / "run")
    path = tmp_path / "run" / "checkpoint" / "state.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    code, _, error = invoke("train", "lm", "--out", str(tmp_path / "run"), "--resume")
    assert code == 2
    assert "Traceback" not in error
    assert f"the checkpoint {path} is damaged" in error.splitlines()[-1]


def test_resuming_when_the_text_has_changed(tmp_path: Path, text: Path) -> None:
    arguments = ("train", "lm", "--train", str(text), "--out", str(tmp_path / "run"), *OVERRIDES)
    assert invoke(*arguments)[0] == 0
    text.write_text(prose() + "with Other Letters 123\n" * 30)
    code, _, error = invoke("train", "lm", "--out", str(tmp_path / "run"), "--resume")
    assert code == 2
    assert "training text has changed" in error.splitlines()[-1]


# Model folders


def no_folder(folder: Path) -> str:
    shutil.rmtree(folder)
    return "no model folder"


def no_config(folder: Path) -> str:
    (folder / "config.json").unlink()
    return "is not a model folder"


def broken_config(folder: Path) -> str:
    (folder / "config.json").write_text("{")
    return "is damaged"


def lacking_config(folder: Path) -> str:
    change_config(folder, reading=None)
    return "is damaged"


def other_task(folder: Path) -> str:
    change_config(folder, task="sing")
    return "for the task 'sing'"


def newer_format(folder: Path) -> str:
    change_config(folder, format_version=99, elman_version="7.0")
    return "newer Elman (7.0"


def other_sizes(folder: Path) -> str:
    config = json.loads((folder / "config.json").read_text())
    change_config(folder, model={**config["model"], "hidden": 99})
    return "do not fit its config.json"


def truncated_weights(folder: Path) -> str:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    return "damaged or truncated"


def no_weights(folder: Path) -> str:
    (folder / "model.safetensors").unlink()
    return "has no model.safetensors"


def no_tokenizer(folder: Path) -> str:
    (folder / "tokenizer.json").unlink()
    return "tokenizer.json"


def broken_tokenizer(folder: Path) -> str:
    (folder / "tokenizer.json").write_text("[]")
    return "tokenizer.json is damaged"


def change_config(folder: Path, **values: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))


DAMAGES = [
    no_folder,
    no_config,
    broken_config,
    lacking_config,
    other_task,
    newer_format,
    other_sizes,
    truncated_weights,
    no_weights,
    no_tokenizer,
    broken_tokenizer,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_models_that_cannot_be_loaded(tmp_path: Path, models: Path, damage: Callable[[Path], str]) -> None:
    folder = tmp_path / "model"
    shutil.copytree(models / "plain", folder)
    expected = damage(folder)
    for command in (("generate", str(folder)), ("evaluate", str(folder), str(models / "text.txt"))):
        sentence = refused(*command)
        assert expected in sentence
        assert str(folder) in sentence


def test_a_model_whose_recipe_is_damaged(tmp_path: Path, models: Path) -> None:
    shutil.copytree(models / "plain", tmp_path / "model")
    change_config(tmp_path / "model", recipe={"model": {"hidden": "wide"}})
    assert "config.json" in refused("evaluate", str(tmp_path / "model"), str(models / "text.txt"))


# Writing


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--prompt", "Zürich"], ["'Z'", "'ü'", "never saw"]),
        (["--label", "north"], ["knows no labels"]),
        (["--temperature", "-1"], ["temperature"]),
        (["--temperature", "nan"], ["temperature"]),
        (["--top-k", "-3"], ["top_k"]),
        (["--top-p", "0"], ["top_p"]),
        (["--top-p", "1.5"], ["top_p"]),
        (["--repetition-penalty", "0"], ["repetition_penalty"]),
        (["--seed", "-1"], ["seed"]),
        (["--stop", ""], ["stop string"]),
        (["--exhaustive", "-n", "30"], ["sequences"]),
    ],
)
def test_wrong_requests_to_write(models: Path, options: list[str], words: list[str]) -> None:
    code, out, error = invoke("generate", str(models / "plain"), *options)
    assert code == 2, error
    assert out == ""
    assert len(error.strip().splitlines()) == 1
    for word in words:
        assert word in error


def test_a_prompt_that_is_no_option(models: Path) -> None:
    plain = str(models / "plain")
    sentence = refused("generate", plain, "to be", "or", "-n", "3")
    assert sentence.endswith(f"the text to continue is an option: elman generate {plain} --prompt 'to be or'")


def test_wrong_labels(models: Path) -> None:
    assert "did you mean 'north'?" in refused("generate", str(models / "labels"), "--label", "noth")
    assert "north, south" in refused("generate", str(models / "labels"))


def test_an_unknown_label_in_a_table(tmp_path: Path, models: Path) -> None:
    (tmp_path / "more.csv").write_text("text,label\nab,north\nxy,west\n")
    sentence = refused("evaluate", str(models / "labels"), str(tmp_path / "more.csv"))
    assert "more.csv:3" in sentence
    assert "west" in sentence


@pytest.mark.parametrize(
    "options", [["-n", "-4"], ["--samples", "0"], ["-n", "many"], ["--nonsense"], ["--temperature", "warm"]]
)
def test_options_that_are_none(models: Path, options: list[str]) -> None:
    assert options[0].lstrip("-") in misused("generate", str(models / "plain"), *options)


def test_commands_that_are_none() -> None:
    assert "trian" in misused("trian")
    assert "--out" in misused("train", "lm")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    from elman.errors import UserError

    with pytest.raises(UserError, match="no model folder"):
        invoke("generate", str(tmp_path / "none"), "--debug")


# A failure that is nobody's mistake


def test_an_out_folder_that_cannot_be_made_is_a_failure(text: Path) -> None:
    code, _, error = invoke("train", "lm", "--train", str(text), "--out", str(text / "run"), *OVERRIDES)
    assert code in (1, 2)
    assert "Traceback" not in error
    assert error.strip().splitlines()[-1].startswith("elman: ")


def test_a_nan_is_exit_code_1_with_step_and_batch(tmp_path: Path, text: Path) -> None:
    hot = ("-s", "train.optimizer=sgd", "-s", "train.lr=1e38", "-s", "train.clip_norm=none", "-s", "train.steps=50")
    code, _, error = invoke("train", "lm", "--train", str(text), "--out", str(tmp_path / "run"), *OVERRIDES, *hot)
    assert code == 1, error
    last = error.strip().splitlines()[-1]
    assert last.startswith("elman: training stopped at step ")
    assert "tokens " in last
