"""Translators by the compiled decoder and in int8: what PyTorch says, from Python and from the command line."""

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from elman import kernels
from elman.ragged import Ragged
from elman.runtime.translator import CompiledSteps
from elman.tasks import load
from elman.tasks.steps import TranslationSteps
from elman.tasks.translate import Translator
from tests.cli.invoke import invoke
from tests.nn.translators import COMBINATIONS
from tests.tasks import translate_runs as runs

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

TEXTS = ["abc", "hgfe", "d", "aabbcc"]
SEARCHES: list[dict[str, Any]] = [
    {"beam": 1},
    {"beam": 4, "n_best": 3},
    {"beam": 3, "block_ngrams": 2, "min_length": 3},
    {"beam": 4, "require": ["c"], "forbid": ["a"]},
    {"temperature": 0.7, "seed": 3},
]


def by_pytorch(model: Translator) -> Translator:
    model.backend = "torch"
    return model


@pytest.mark.parametrize(("decoder", "attention"), COMBINATIONS)
def test_translations_are_those_of_pytorch(decoder: str, attention: str) -> None:
    made, other = (runs.untrained(decoder=decoder, attention=attention) for _ in range(2))
    for model in (made, other):
        model.network.float()
    assert made.refusal() is None and isinstance(made.steps(Ragged.of([[2]])), CompiledSteps)
    coverage = [] if decoder == "plain" else [{"beam": 3, "coverage": 0.2}]
    for options in [*SEARCHES, *coverage]:
        for found, right in zip(
            made.predict(TEXTS, **options), by_pytorch(other).predict(TEXTS, **options), strict=True
        ):
            assert [one.ids for one in found.n_best] == [one.ids for one in right.n_best], options
            assert [one.score for one in found.n_best] == pytest.approx([one.score for one in right.n_best], rel=1e-4)


def test_scores_equal_forced_decoding(tmp_path: Path) -> None:
    model = runs.run(runs.write(tmp_path / "a.tsv"), tmp_path / "run", "train.epochs=3")
    for text, found in zip(TEXTS, model.predict(TEXTS, n_best=3, beam=4), strict=True):
        for one in found.n_best:
            if one.finished:
                assert model.log_probs([(text, one.text)])[0] == pytest.approx(one.log_prob, abs=1e-4)


def test_what_it_cannot_run_goes_through_pytorch() -> None:
    model = runs.untrained(cell="gru-cho")
    assert "gru-cho" in str(model.network.float() and model.refusal())
    assert isinstance(model.steps(Ragged.of([[2]])), TranslationSteps)
    assert model.predict("abc").n_best


def test_new_weights_are_packed_anew() -> None:
    model = runs.untrained()
    model.network.float()
    before = model.predict("abcd").n_best[0]
    assert model.runtime() is model.runtime()
    with torch.no_grad():
        model.network.softmax.weight.neg_()
    after = model.predict("abcd").n_best[0]
    assert after.ids != before.ids
    assert copy.deepcopy(model).predict("abcd").n_best[0].ids == after.ids
    assert after.ids == by_pytorch(model).predict("abcd").n_best[0].ids


def test_int8_is_a_quarter_of_the_size_and_translates_alike(tmp_path: Path) -> None:
    wide = ("model.hidden=128", "model.embedding=64", "train.epochs=6")
    whole = runs.run(runs.write(tmp_path / "a.tsv"), tmp_path / "run", *wide)
    code, out, error = invoke("export", str(tmp_path / "run"), "--int8", "--out", str(tmp_path / "int8"))
    assert code == 0, error
    before, after = ((tmp_path / name / "model.safetensors").stat().st_size for name in ("run", "int8"))
    assert after < 0.3 * before
    rounded = load(tmp_path / "int8")
    assert rounded.int8 is not None and rounded.refusal() is None
    pairs = runs.strings(60)
    found, right = ([one.text for one in model.predict([pair.source for pair in pairs])] for model in (rounded, whole))
    assert sum(map(str.__eq__, found, right)) >= 55
    (tmp_path / "new.txt").write_text("\n".join(pair.source for pair in pairs))
    code, out, error = invoke("predict", str(tmp_path / "int8"), str(tmp_path / "new.txt"))
    assert code == 0, error
    assert out.split("\n")[: len(found)] == found
