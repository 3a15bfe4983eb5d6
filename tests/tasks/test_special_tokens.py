"""Models with a start token of their own, over code points, and as the notes' listings have them: whole small runs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elman
from elman.decode import Sampling
from elman.errors import UserError
from elman.train import loop as loop_module
from tests.cli.invoke import invoke
from tests.tasks import classify_runs, runs, translate_runs
from tests.tasks.resuming import assert_resumes_exactly

BOTH = ("text.bos=true", "text.pad=true")
LINES = ("data.unit=line", "data.text_column=text", *BOTH)
WILD = Sampling(temperature=3.0, seed=1)


@pytest.fixture(autouse=True)
def _no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_module, "draw_curves", lambda folder: None)


def tempted(model: Any) -> Any:
    """The model, now sure that start and padding come next."""
    model.network.softmax.bias.data[[2, 3]] = 30.0
    return model


# Language models


def test_a_language_model_of_lines_begins_with_its_start_token(tmp_path: Path) -> None:
    path = runs.write_names(tmp_path / "names.csv")
    model = runs.run(path, tmp_path / "run", "train.steps=30", *LINES)
    assert model.tokenizer.tokens[:4] == ["<unk>", "<eos>", "<bos>", "<pad>"]
    assert model.reading.start_id == 2 and model.tokenizer.counts[2:4].tolist() == [0, 0]
    assert model.tokenizer.counts[1] == 54  # the training lines, of 60 that there are
    before = model.network.embedding.weight[2].clone()
    again = runs.run(path, tmp_path / "more", "train.steps=31", *LINES)
    assert not torch.equal(before, again.network.embedding.weight[2])  # it is read, so it is learned
    scores = model.score("abab")
    assert [one.token for one in scores] == ["a", "b", "a", "b", "<eos>"]
    compiled, torch_ = (elman.load(tmp_path / "run", backend=backend) for backend in ("compiled", "torch"))
    assert compiled.generate("a", length=30, sampling=WILD) == torch_.generate("a", length=30, sampling=WILD)
    assert [x.log_prob for x in torch_.score("abab")] == pytest.approx([x.log_prob for x in scores], abs=1e-5)


def test_what_only_stands_around_a_text_is_never_written(tmp_path: Path) -> None:
    path = runs.write_names(tmp_path / "names.csv")
    runs.run(path, tmp_path / "run", "train.steps=2", *LINES)
    for backend in ("compiled", "torch"):
        model = tempted(elman.load(tmp_path / "run", backend=backend))
        assert model.score("ab")[-1].log_prob < -20  # it would write nothing else
        written = model.generate(length=60, samples=3, sampling=WILD)
        assert any(written) and all(set(text) <= set("abxy") for text in written)


def test_a_running_text_has_no_start(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(runs.prose())
    with pytest.raises(UserError, match=r"this is one running text: say -s data\.unit=line"):
        runs.run(tmp_path / "a.txt", tmp_path / "run", "train.steps=2", "text.bos=true")
    (tmp_path / "b.txt").write_text(runs.prose(20))
    settings = (f'data.train=["{tmp_path}/a.txt", "{tmp_path}/b.txt"]', "train.steps=2", "text.bos=true")
    model = runs.run(tmp_path / "a.txt", tmp_path / "two", *settings, f'data.dev=["{tmp_path}/b.txt"]')
    assert model.reading.start_id == 2 and model.tokenizer.counts[1] == 2


def test_a_language_model_with_a_start_token_resumes_exactly(tmp_path: Path) -> None:
    path = runs.write_names(tmp_path / "names.csv")
    settings = (*LINES, "model.dropout=0.2", "train.steps=9", "train.evaluate_every=4", "train.checkpoint_seconds=0")
    assert_resumes_exactly(tmp_path, lambda folder: runs.trainer(path, folder, *settings))


def test_code_points_as_tokens(tmp_path: Path) -> None:
    path = runs.write_names(tmp_path / "names.csv")
    settings = ("train.steps=40", "data.unit=line", "data.text_column=text", "text.kind=codepoints")
    model = runs.run(path, tmp_path / "run", *settings)
    assert model.tokenizer.size == 128 and model.tokenizer.encode("ab").tolist() == [97, 98]
    greedy = {"length": 10, "sampling": Sampling(temperature=0)}
    assert elman.load(tmp_path / "run", backend="torch").generate("a", **greedy) == model.generate("a", **greedy)
    assert model.reading.start_id == 1
    with pytest.raises(UserError, match="code points have their own"):
        runs.recipe(path, "text.kind=codepoints", "model.softmax=adaptive")


# Translators


@pytest.mark.parametrize("backend", ["compiled", "torch"])
def test_a_translator_with_a_start_token(backend: str) -> None:
    model = translate_runs.untrained(tokens={"bos": True, "pad": True}, tied="none")
    model.network.float()
    model = tempted(type(model)(model.config, model.sides, model.network, backend=backend))
    assert (model.start, model.end) == (2, 1)
    for options in ({"beam": 1}, {"beam": 4, "n_best": 4}, {"temperature": 2.0, "seed": 3}, {"forbid": ["a"]}):
        for found in model.predict(["abc", "hgf"], **options):
            assert all({2, 3}.isdisjoint(one.ids) for one in found.n_best)


def test_the_search_begins_where_training_does() -> None:
    """What a search says of its hypotheses is what the network says of them as targets."""
    model = translate_runs.untrained(tokens={"bos": True}, tied="none")
    pairs = [(one.source, other) for one in model.predict(["abc", "hgf"], n_best=4) for other in one.n_best]
    ended = [(source, other) for source, other in pairs if other.finished]
    assert ended
    forced = model.log_probs([(source, other.text) for source, other in ended])
    assert forced == pytest.approx([other.log_prob for _, other in ended], abs=1e-5)


@pytest.mark.parametrize(
    ("decoder", "others"),
    [("tutorial", []), ("tutorial-attention", ["model.attention=fixed-length", "model.longest=5"])],
)
def test_the_tutorials_translators_from_the_command_line(tmp_path: Path, decoder: str, others: list[str]) -> None:
    path = translate_runs.write(tmp_path / "a.tsv", translate_runs.strings(60))
    settings = [*translate_runs.SMALL, f"model.decoder={decoder}", "model.tied=none", "train.steps=8", *others]
    flags = [part for setting in [*settings, "report.baselines=false"] for part in ("-s", setting)]
    folder = str(tmp_path / "run")
    code, _, said = invoke("train", "translate", "--train", str(path), *flags, "--out", folder)
    assert code == 0 and f"{decoder} decoder" in said
    code, written, said = invoke("predict", folder, "abc", "abcdefgh", "--beam", "2")
    assert code == 0 and len(written.splitlines()) == 2
    assert ("learned from at most 5: such texts are translated in parts" in said) == bool(others)
    code, _, said = invoke("predict", folder, "abc", "--backend", "compiled")
    assert code == 2 and f"this network's decoder is {decoder}" in said


# Classifiers


def test_a_classifier_as_the_notes_have_it(tmp_path: Path) -> None:
    """Code points, a linear network, its output made of the last letter and the state before it."""
    path = classify_runs.write_table(tmp_path / "names.csv")
    settings = ("text.kind=codepoints", "model.cell=rnn", "model.nonlinearity=identity", "model.output=combined")
    settings += ("model.bidirectional=false", "model.pooling=last", "model.edges=false", "train.lr=0.005")
    model = classify_runs.run(path, tmp_path / "run", *settings)
    E, H = 8, 12
    assert model.weights()["output.weight"].shape == (3, E + H)
    assert json.loads((tmp_path / "run" / "config.json").read_text())["model"]["output"] == "combined"
    assert model.report["dev"]["accuracy"] > 0.6
    (letters,) = model.vocabulary.encode(["grimulfa"])
    W = {name: np.asarray(weight, np.float64) for name, weight in model.weights().items()}
    cell = {name.rsplit(".", 1)[1]: weight for name, weight in W.items() if name.startswith("body.")}
    h = np.zeros(H)
    for letter in letters:
        x = W["embedding.weight"][letter]
        u = np.concatenate((x, h))
        h = cell["weight_ih"] @ x + cell["bias_ih"] + cell["weight_hh"] @ h + cell["bias_hh"]
    scores = np.exp(W["output.weight"] @ u + W["output.bias"])
    found = model.predict("grimulfa").probabilities
    assert list(found.values()) == pytest.approx((scores / scores.sum()).tolist(), abs=1e-5)
    with pytest.raises(UserError, match="this network's cell is combined rnn"):
        elman.load(tmp_path / "run", backend="compiled").predict("a")
    with pytest.raises(UserError, match="combined goes with one layer of the rnn cell only"):
        classify_runs.recipe(path, "model.output=combined")


def test_the_edges_of_a_classifier_with_a_start_token(tmp_path: Path) -> None:
    path = classify_runs.write_table(tmp_path / "names.csv")
    model = classify_runs.run(path, tmp_path / "run", "text.bos=true", "train.steps=5")
    (ids,) = model.vocabulary.encode(["ola"])
    assert ids[0] == 2 and ids[-1] == 1 and len(ids) == 5
    compiled, torch_ = (elman.load(tmp_path / "run", backend=backend) for backend in ("compiled", "torch"))
    found = [list(one.predict("ola").probabilities.values()) for one in (compiled, torch_)]
    assert found[0] == pytest.approx(found[1], abs=1e-5)


def test_a_language_model_whose_output_is_combined(tmp_path: Path) -> None:
    path = runs.write_names(tmp_path / "names.csv")
    settings = ("data.unit=line", "data.text_column=text", "model.cell=rnn", "model.output=combined", "train.steps=30")
    model = runs.run(path, tmp_path / "run", *settings)
    assert model.weights()["softmax.weight"].shape[1] == 12 + 24
    scores = model.score("abab")
    written = model.exhaustive("", length=1)
    first = {one[0]: one[1] for one in written if one[0]}
    assert first["a"] == pytest.approx(scores[0].log_prob, abs=1e-5)
    assert "combined rnn" in (model.refusal() or "")
