"""Exported models: a quarter of the size in int8, the same scores in any process, and no damage that goes unsaid."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from elman import kernels
from elman.decode import Sampling
from elman.errors import UserError
from elman.tasks import evaluate, load
from elman.tasks.export import export
from tests.cli.invoke import invoke
from tests.end_to_end.processes import environment
from tests.tasks.runs import ids_of, prose, run, write_names

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

SETTINGS = ("model.cell=lstm", "model.hidden=64", "model.embedding=32", "model.layers=2", "train.steps=60")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, a run on it, and its int8 twin."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "text.txt").write_text(prose())
    run(folder / "text.txt", folder / "run", *SETTINGS)
    code, out, error = invoke("export", str(folder / "run"), "--int8", "--out", str(folder / "int8"))
    assert code == 0, error
    assert "% of" in out
    return folder


def test_int8_is_a_quarter_of_the_size_and_scores_the_same_within_a_percent(folder: Path) -> None:
    before, after = ((folder / name / "model.safetensors").stat().st_size for name in ("run", "int8"))
    assert after < 0.35 * before  # a quarter, and the biases and names of so small a model
    text = ids_of(load(folder / "run"), folder / "text.txt")
    whole, rounded = (load(folder / name).scores(text)["perplexity"] for name in ("run", "int8"))
    assert rounded == pytest.approx(whole, rel=0.01)
    assert rounded != whole


def test_an_exported_model_scores_the_same_to_the_last_digit_in_another_process(folder: Path) -> None:
    code = (
        "import json, sys, elman\n"
        "model = elman.load(sys.argv[1])\n"
        "print(json.dumps([[t.log_prob for t in model.score('the cat sat')], model.generate('the ', length=40)]))"
    )
    for name in ("run", "int8"):
        found = subprocess.run(
            [sys.executable, "-c", code, str(folder / name)],
            env=environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        model = load(folder / name)
        here = [[t.log_prob for t in model.score("the cat sat")], model.generate("the ", length=40)]
        assert json.loads(found.stdout) == here


def test_the_engine_writes_what_pytorch_writes(folder: Path) -> None:
    model = load(folder / "run")
    for sampling in (Sampling(seed=3), Sampling(0.7, 8, 0.9, 1.2, seed=4), Sampling(temperature=0)):
        options = {"length": 80, "samples": 3, "sampling": sampling, "stop": ["rain"]}
        by_pytorch = load(folder / "run", backend="torch")
        assert model.generate("the cat", **options) == by_pytorch.generate("the cat", **options)


def test_an_int8_model_is_read_by_pytorch_where_that_is_asked_for(folder: Path) -> None:
    by_pytorch, compiled = load(folder / "int8", backend="torch"), load(folder / "int8")
    found, right = ([token.log_prob for token in model.score("the cat")] for model in (by_pytorch, compiled))
    assert found == pytest.approx(right, abs=0.05) and found != right
    assert len(by_pytorch.generate("the ", length=9)[0]) == 9


def test_labels_reach_the_engine(tmp_path: Path) -> None:
    table = write_names(tmp_path / "names.csv")
    settings = ("data.unit=line", "data.label_column=label", "train.lr=0.02", "train.epochs=15")
    model = run(table, tmp_path / "run", *settings)
    for label in ("north", "south"):
        wanted = load(tmp_path / "run", backend="torch").generate(label=label, samples=5)
        assert model.generate(label=label, samples=5) == wanted
    rounded = load(export(tmp_path / "run", tmp_path / "int8", int8=True))
    assert set(rounded.generate(label="south", samples=5, sampling=Sampling(0.5))[0]) <= set("xy")


def test_the_engine_follows_weights_that_change(folder: Path) -> None:
    model = load(folder / "run")
    before = model.generate("the ", length=30)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.zero_()
    assert model.generate("the ", length=30) != before


def test_export_without_rounding_is_the_model_alone(folder: Path, tmp_path: Path) -> None:
    plain = export(folder / "run", tmp_path / "plain")
    assert {path.name for path in plain.iterdir()} == {
        "config.json",
        "tokenizer.json",
        "model.safetensors",
        "metrics.json",
        "README.md",
    }
    assert load(plain).generate("the ", length=30) == load(folder / "run").generate("the ", length=30)


def test_what_cannot_be_exported_is_told_in_a_sentence(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is there already"):
        export(folder / "run", folder / "int8", int8=True)
    run(folder / "text.txt", tmp_path / "mut", "model.cell=mut1", "train.steps=1")
    with pytest.raises(UserError, match="int8: the engine runs rnn"):
        export(tmp_path / "mut", tmp_path / "out", int8=True)
    assert not (tmp_path / "out").exists()


def test_nothing_of_the_training_machine_is_exported(folder: Path, tmp_path: Path) -> None:
    assert str(folder) in (folder / "run" / "config.json").read_text()
    plain = export(folder / "run", tmp_path / "plain")
    for path in plain.iterdir():
        assert str(folder).encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o777 == (folder / "text.txt").stat().st_mode & 0o777
    found = load(plain)
    found.recipe["baseline"]["order"] = 2
    report = evaluate(found, folder / "text.txt")
    assert "the model's folder does not name them" in report["note"] and "it was exported" in report["note"]
    assert set(report["baselines"]) == {"unigram"}


def test_a_place_that_may_not_be_written_to_is_a_sentence(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match=r"could not write .*: file name too long; give a shorter name"):
        export(folder / "run", tmp_path / ("x" * 300))

    def refuse(path: Path, *arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)  # root may write everywhere
    with pytest.raises(UserError, match=r"could not write .*: permission denied; .*name another place"):
        export(folder / "run", tmp_path / "out")


DAMAGE = """
import random, shutil, sys
from pathlib import Path
import elman
from elman.decode import Sampling
from elman.errors import ElmanError

whole, scratch, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
names = ["model.safetensors", "config.json", "tokenizer.json"]
told = lived = 0
draw = random.Random(seed)
for case in range(120):
    shutil.copytree(whole, scratch, dirs_exist_ok=True)
    path = scratch / draw.choice(names)
    content = bytearray(path.read_bytes())
    kind = draw.choice(["cut", "flip", "zero", "swap", "empty"])
    place = draw.randrange(min(len(content), draw.choice([200, 2000, 10**9])))
    if kind == "cut": del content[place:]
    elif kind == "flip": content[place] ^= 1 << draw.randrange(8)
    elif kind == "zero": content[place : place + 64] = bytes(64)
    elif kind == "swap": content[place : place + 8] = bytes(draw.randrange(256) for _ in range(8))
    else: content.clear()
    path.write_bytes(bytes(content))
    try:
        model = elman.load(scratch)
        model.generate("", length=5, sampling=Sampling(seed=case))
        model.score("the")
        lived += 1
    except ElmanError as error:
        assert str(error) and "\\n" not in str(error).strip(), repr(str(error))
        told += 1
print(told, lived)
"""


@pytest.mark.parametrize("name", ["run", "int8"])
def test_damaged_folders_are_told_of_and_never_crash(folder: Path, tmp_path: Path, name: str) -> None:
    clean = export(folder / "run", tmp_path / "clean", int8=name == "int8")
    command = [sys.executable, "-c", DAMAGE, str(clean), str(tmp_path / "scratch"), "7"]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]
    told, lived = map(int, found.stdout.split())
    assert told > 30
    assert told + lived == 120
