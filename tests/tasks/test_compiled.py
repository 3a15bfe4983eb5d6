"""Classifiers and taggers by the compiled runtime and in int8: what PyTorch says, in any folder, damaged or not."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from elman import kernels
from elman.errors import UserError
from elman.tasks import evaluate, load
from elman.tasks.export import export
from elman.tasks.tag import TagModel
from tests.cli.invoke import invoke
from tests.end_to_end.processes import environment
from tests.tasks import classify_runs as classifiers
from tests.tasks import tag_runs as taggers

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

TEXTS = [name for name, _ in classifiers.names(60)]
SENTENCES = [list(sentence.tokens) for sentence in taggers.sentences(40, seed=3)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier, a tagger and one with a CRF, large enough that their matrices are most of them."""
    folder = tmp_path_factory.mktemp("compiled")
    classifiers.write_table(folder / "names.csv")
    classifiers.run(folder / "names.csv", folder / "classify", "model.hidden=64", "model.embedding=32")
    taggers.write(folder / "train.conll")
    for name, crf in (("tag", "false"), ("crf", "true")):
        wide = ("model.hidden=64", "model.embedding=32", "train.epochs=8", f"model.crf={crf}")
        taggers.run(folder / "train.conll", folder / name, *wide)
    for name in ("classify", "tag", "crf"):
        code, out, error = invoke("export", str(folder / name), "--int8", "--out", str(folder / f"{name}-int8"))
        assert code == 0, error
        assert "% of" in out
    return folder


@pytest.mark.parametrize("settings", [(), ("model.pooling=attention", "model.cell=lstm"), ("model.pooling=last",)])
@pytest.mark.parametrize("text", ["characters", "words"])
def test_a_classifier_says_what_pytorch_says(tmp_path: Path, settings: tuple[str, ...], text: str) -> None:
    spelled = ("model.characters=5",) if text == "words" else ()
    classifiers.write_table(tmp_path / "names.csv")
    made = classifiers.run(
        tmp_path / "names.csv", tmp_path / "run", f"text.kind={text}", "train.steps=3", *settings, *spelled
    )
    assert made.refusal() is None
    expected = load(tmp_path / "run", backend="torch").probabilities(TEXTS)
    np.testing.assert_allclose(made.probabilities(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(made.probabilities(TEXTS[:1]), expected[:1], atol=1e-6)


@pytest.mark.parametrize("crf", ["true", "false"])
@pytest.mark.parametrize(
    "settings",
    [
        ("model.cell=lstm", "model.layers=2"),
        ("model.cell=rnn", "model.character_cell=gru", "model.connections=residual"),
        ("model.character_hidden=0", "model.connections=dense", "model.layers=2"),
        ("model.embedding=0", "model.case_embedding=0"),
    ],
)
def test_a_tagger_says_what_pytorch_says(tmp_path: Path, settings: tuple[str, ...], crf: str) -> None:
    taggers.write(tmp_path / "a.conll")
    made = taggers.run(tmp_path / "a.conll", tmp_path / "run", "train.epochs=1", f"model.crf={crf}", *settings)
    assert made.refusal() is None
    expected = load(tmp_path / "run", backend="torch").tag_tokens(SENTENCES)
    assert made.tag_tokens(SENTENCES) == expected
    assert [made.tag_tokens([sentence])[0] for sentence in SENTENCES] == expected


def test_what_the_runtime_cannot_run_goes_through_pytorch(tmp_path: Path) -> None:
    classifiers.write_table(tmp_path / "names.csv")
    made = classifiers.run(tmp_path / "names.csv", tmp_path / "run", "model.cell=mut1", "train.steps=2")
    assert made.refusal() == "the engine runs rnn, lstm and gru, and this network's cell is mut1"
    with pytest.raises(UserError, match="does not run this model: the engine runs rnn"):
        made.runtime()
    assert made.predict("ola").label in made.labels
    rounded = load(export(tmp_path / "run", tmp_path / "int8", int8=True))
    np.testing.assert_allclose(rounded.probabilities(TEXTS), made.probabilities(TEXTS), atol=0.05)


def test_the_runtime_follows_weights_that_change(folder: Path) -> None:
    model = load(folder / "classify")
    before = model.probabilities(TEXTS)
    assert model.runtime() is model.runtime()
    with torch.no_grad():
        model.network.output.weight.mul_(0.5)
    assert not np.allclose(model.probabilities(TEXTS), before)
    kept = model.network.output.bias.data
    model.network.output.bias.data = kept + torch.tensor([9.0, 0.0, 0.0])
    assert {found.label for found in model.predict(TEXTS)} == {model.labels[0]}


def test_threads_of_a_program_share_a_model(folder: Path) -> None:
    sentences = [" ".join(words) for words in SENTENCES]
    for model, given in ((load(folder / "crf"), sentences), (load(folder / "classify"), TEXTS)):
        expected = [model.predict(text) for text in given]
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(model.predict, given * 5))
        if isinstance(model, TagModel):
            assert found == expected * 5
        else:
            assert [one.label for one in found] == [one.label for one in expected] * 5


# int8


def test_int8_is_a_quarter_of_the_size_and_as_good(folder: Path) -> None:
    for name, data in (("classify", "names.csv"), ("tag", "train.conll"), ("crf", "train.conll")):
        both = (folder / name, folder / f"{name}-int8")
        before, after = ((each / "model.safetensors").stat().st_size for each in both)
        assert after < 0.4 * before  # a quarter, and the biases and names of so small a model
        whole, rounded = (evaluate(each, folder / data, baselines=False)[str(folder / data)] for each in both)
        assert rounded["accuracy"] >= whole["accuracy"] - 0.003
        assert rounded["loss"] == pytest.approx(whole["loss"], rel=0.05, abs=0.01)
        assert rounded["loss"] != whole["loss"]


def test_int8_predicts_from_the_command_line(folder: Path, tmp_path: Path) -> None:
    text = tmp_path / "new.txt"
    text.write_text("Ada went to Paris!\nGrace Emmy went to Rome.\n")
    for name in ("tag", "crf"):
        code, shown, error = invoke("predict", str(folder / f"{name}-int8"), str(text), "--json")
        assert code == 0, error
        found = [json.loads(line) for line in shown.splitlines()]
        assert [span["text"] for record in found for span in record["spans"]] == ["Ada", "Paris", "Grace Emmy", "Rome"]
    text.write_text("grimulfa\nolaettie\n")
    code, shown, error = invoke("predict", str(folder / "classify-int8"), str(text))
    assert code == 0, error
    assert [line.split("\t")[0] for line in shown.splitlines()] == ["north", "south"]


def test_int8_saved_again_is_the_same(folder: Path, tmp_path: Path) -> None:
    for name in ("crf-int8", "classify-int8"):
        model = load(folder / name)
        assert model.to_int8() is model
        model.save(tmp_path / name)
        first, second = (place / name / "model.safetensors" for place in (folder, tmp_path))
        assert first.read_bytes() == second.read_bytes()


def test_int8_runs_without_the_kernels_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = load(folder / "tag-int8").tag_tokens(SENTENCES)
    monkeypatch.setattr(kernels, "native", None)
    model = load(folder / "tag-int8")
    assert "not installed" in model.refusal()
    assert model.tag_tokens(SENTENCES) == tags


DAMAGE = """
import random, shutil, sys
from pathlib import Path
import elman
from elman.errors import ElmanError

whole, scratch, seed = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
files = ("model.safetensors", "config.json", "tokenizer.json", "lexicon.json")
names = [name for name in files if (whole / name).exists()]
told = lived = 0
draw = random.Random(seed)
for case in range(40):
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
        model.predict("Ada went to Paris")
        model.predict(["one more", "and another of them"])
        lived += 1
    except ElmanError as error:
        assert str(error) and "\\n" not in str(error).strip(), repr(str(error))
        told += 1
print(told, lived)
"""


@pytest.mark.parametrize("name", ["classify-int8", "crf-int8"])
def test_damaged_folders_are_told_of_and_never_crash(folder: Path, tmp_path: Path, name: str) -> None:
    command = [sys.executable, "-c", DAMAGE, str(folder / name), str(tmp_path / "scratch"), "7"]
    found = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-2000:]
    told, lived = map(int, found.stdout.split())
    assert told > 10
    assert told + lived == 40
