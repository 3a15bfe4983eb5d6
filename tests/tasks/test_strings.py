"""Contextual strings: what a tagger sees of character models is what those say themselves, however it is computed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elman
from elman.errors import UserError
from elman.tasks import strings
from elman.tasks.export import export
from elman.tasks.strings import StringStates
from elman.text.encoder import words
from tests.tasks import tag_runs
from tests.tasks.conftest import LanguageModels
from tests.tasks.resuming import assert_resumes_exactly

SENTENCES = [["the", "cat", "sat"], ["Ω", "rain"], ["a", "b", "c", "dog"]]
TUNED = ("train.steps=3", "model.hidden=8")


@pytest.fixture(scope="module")
def tagger(tmp_path_factory: pytest.TempPathFactory, language_models: LanguageModels) -> Path:
    """One with a forward model and one that reads both ways."""
    folder = tmp_path_factory.mktemp("strings")
    models = [str(language_models("characters", "forward")), str(language_models("characters", "both"))]
    tag_runs.run(tag_runs.write(folder / "train.conll"), folder / "run", *TUNED, f"model.strings={models}")
    return folder / "run"


def states_of(language: Any, sentence: list[str], tower: int, backward: bool) -> np.ndarray:
    """The states of a language model at the borders of words, by running it on the text of the sentence."""
    text = " ".join(sentence)
    ids = language.tokenizer.encode(text)
    ends = np.cumsum([len(word) + 1 for word in sentence]) - 1  # one behind the last character of each word
    read = np.concatenate([[language.reading.start_id], ids[::-1] if backward else ids])
    with torch.no_grad():
        network = language.network.eval()
        hidden, _ = network.bodies[tower](network.embed(torch.from_numpy(read).unsqueeze(0)), None)
    places = [len(text) - (end - len(word)) for end, word in zip(ends, sentence, strict=True)] if backward else ends
    return hidden[0, np.array(places)].numpy()  # type: ignore[no-any-return]


def test_the_states_are_those_of_the_language_models(tagger: Path, language_models: LanguageModels) -> None:
    model = elman.load(tagger, "tag", backend="torch")
    found = model.read_strings(words(SENTENCES))
    forward, both = (elman.load(language_models("characters", kind), "lm") for kind in ("forward", "both"))
    for sentence, rows in zip(SENTENCES, words(SENTENCES).with_data(np.arange(len(found))), strict=True):
        right = [states_of(forward, sentence, 0, False), states_of(both, sentence, 0, False)]
        right.append(states_of(both, sentence, 1, True))
        np.testing.assert_allclose(found[rows], np.concatenate(right, axis=1), atol=1e-6)


def test_compiled_and_in_int8(tagger: Path, tmp_path: Path) -> None:
    compiled, plain = (elman.load(tagger, "tag", backend=backend) for backend in ("compiled", "torch"))
    sentences = words(SENTENCES)
    by_pytorch = plain.network.eval()(plain.inputs(sentences)).detach().numpy()
    right = sentences.unpacked(by_pytorch).data
    np.testing.assert_allclose(compiled.runtime().scores(sentences), right, atol=1e-5)
    small = elman.load(export(tagger, tmp_path / "int8", int8=True), "tag", backend="compiled")
    assert small.weights()["strings.2.body.layers.0.weight_hh_l0"].dtype == np.int8
    np.testing.assert_allclose(small.runtime().scores(sentences), right, atol=0.05)
    assert small.recipe["model"]["strings"] == ["characters-forward", "characters-both"]
    assert str(tagger.parent.parent) not in (tmp_path / "int8" / "config.json").read_text()  # no path of this machine


def test_the_character_models_never_learn(tagger: Path, language_models: LanguageModels) -> None:
    own, theirs = elman.load(tagger).weights(), elman.load(language_models("characters", "both")).weights()
    np.testing.assert_array_equal(own["strings.1.embedding.weight"], theirs["embedding.weight"])
    for tower in (0, 1):
        for name in [name for name in theirs if name.startswith(f"bodies.{tower}.")]:
            kept = own[f"strings.{tower + 1}.body.{name.removeprefix(f'bodies.{tower}.')}"]
            np.testing.assert_array_equal(kept, theirs[name])


def test_strings_may_be_all_that_a_tagger_sees(tmp_path: Path, language_models: LanguageModels) -> None:
    file, model = tag_runs.write(tmp_path / "train.conll"), language_models("bytes", "backward", "model.embedding=0")
    alone = ("model.embedding=0", "model.character_hidden=0", "model.case_embedding=0")
    told = (*TUNED, *alone, f'model.strings="{model}"', "train.unfreeze=0.2")
    tagger = tag_runs.run(file, tmp_path / "run", *told)
    assert tagger.config.strings[0].backward
    assert (
        tagger.predict(tokens=["Ada", "went"]).tags
        == elman.load(tmp_path / "run", backend="torch").predict(tokens=["Ada", "went"]).tags
    )


@pytest.mark.parametrize("most", [strings.CACHE_BYTES, 1])
def test_resumed_equals_uninterrupted(
    tmp_path: Path, language_models: LanguageModels, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(strings, "CACHE_BYTES", most)
    file, model = tag_runs.write(tmp_path / "train.conll"), language_models("characters", "both")
    told = ("train.steps=12", "model.hidden=8", f'model.strings=["{model}"]', "batch.swapped=0.3")
    more = ("train.checkpoint_seconds=0", "train.evaluate_every=4")
    assert_resumes_exactly(tmp_path, lambda folder: tag_runs.trainer(file, folder, *told, *more), stops=(3, 7))


def test_states_that_are_kept_are_computed_once() -> None:
    asked: list[int] = []

    def make(sentences: Any) -> np.ndarray:
        asked.append(len(sentences))
        return np.array([[len(word)] for word in sentences.data], np.float32)

    states = StringStates()
    for _ in range(2):  # as by each member of an ensemble
        states.keep([("one", "three"), ("two",), ("two",)], make)
    assert states.of(words([["two"], ["one", "three"]]), make).tolist() == [[3], [3], [5]]
    assert asked == [2]
    assert states.of(words([["four"], ["two"]]), make).tolist() == [[4], [3]]
    assert asked == [2, 1]


def test_other_models_are_refused(tmp_path: Path, language_models: LanguageModels) -> None:
    file = tag_runs.write(tmp_path / "train.conll")
    for folder, sentence in (
        (language_models("words", "both"), "model.strings: .* reads words, and strings are of characters or bytes"),
        (language_models("characters", "forward", "model.kind=ngram"), "model.strings: .* is an n-gram model"),
        (tmp_path / "nowhere", "model.strings: no model folder at"),
    ):
        with pytest.raises(UserError, match=sentence):
            tag_runs.run(file, tmp_path / "run", f'model.strings=["{folder}"]')
