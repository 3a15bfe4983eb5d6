"""What a trained tagger does: it marks text, it scores, and a folder keeps it to the last digit."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from elman.errors import UserError
from elman.metrics.spans import span_scores
from elman.records.tagged import Sentence
from elman.tasks import evaluate
from elman.tasks.recipes import load_recipe
from elman.tasks.tag import TagModel, TagRecipe
from elman.text.spans import convert
from tests.end_to_end.processes import environment
from tests.tasks.tag_runs import recipe, run, sentences, write


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that found out who goes where."""
    folder = tmp_path_factory.mktemp("tag")
    test = write(folder / "test.conll", sentences(30, seed=7))
    run(write(folder / "train.conll"), folder / "run", "train.epochs=14", f'data.test=["{test}"]')
    return folder / "run"


@pytest.fixture(scope="module")
def model(trained: Path) -> TagModel:
    return TagModel.load(trained)


def test_raw_text_comes_back_with_spans_by_character(model: TagModel) -> None:
    text = "Ada  Grace went to\tParis!"
    tagging = model.predict(text)
    assert tagging.tokens == ("Ada", "Grace", "went", "to", "Paris", "!")
    assert tagging.tags == ("B-PER", "I-PER", "O", "O", "B-LOC", "O")
    assert [(span.type, span.text) for span in tagging.spans] == [("PER", "Ada  Grace"), ("LOC", "Paris")]
    assert all(text[span.start : span.end] == span.text for span in tagging.spans)
    assert [text[start:end] for start, end in tagging.offsets] == list(tagging.tokens)


def test_ready_tokens_one_sentence_or_several(model: TagModel) -> None:
    rows = [list(sentence.tokens) for sentence in sentences(20, seed=3)]
    together = model.predict(tokens=rows)
    assert [model.predict(tokens=row).tags for row in rows] == [tagging.tags for tagging in together]
    assert [tagging.tokens for tagging in together] == [tuple(row) for row in rows]
    assert model.predict([" ".join(row) for row in rows]) == together


@pytest.mark.parametrize(
    "given", [{}, {"text": "a", "tokens": ["a"]}, {"text": " "}, {"tokens": [""]}, {"tokens": "ab"}]
)
def test_what_cannot_be_tagged_is_refused(model: TagModel, given: dict[str, object]) -> None:
    with pytest.raises(UserError):
        model.predict(**given)  # type: ignore[call-overload]


def test_the_report_stands_beside_the_baseline(trained: Path) -> None:
    report = json.loads((trained / "metrics.json").read_text())
    assert report["test"]["accuracy"] > 0.95
    assert report["test"]["spans"]["f1"] > 0.95
    assert set(report["test"]["spans"]["by_type"]) == {"PER", "LOC"}
    baseline = report["baselines"]["most frequent tag per word"]["test"]
    assert baseline["accuracy"] < report["test"]["accuracy"]
    card = (trained / "README.md").read_text()
    assert "most frequent tag per word" in card and "span F1" in card and "confusion" in card
    assert (trained / "confusion.png").stat().st_size > 1000


def test_scores_are_those_of_a_new_process_to_the_last_digit(trained: Path) -> None:
    test = trained.parent / "test.conll"
    code = (
        "import json, sys, elman;print(json.dumps(elman.evaluate(elman.load(sys.argv[1]), [sys.argv[2]])[sys.argv[2]]))"
    )
    command = [sys.executable, "-c", code, str(trained), str(test)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == json.loads((trained / "metrics.json").read_text())["test"]


def test_saving_again_writes_the_same_bytes(model: TagModel, trained: Path, tmp_path: Path) -> None:
    model.save(tmp_path)
    for name in ("config.json", "tokenizer.json", "lexicon.json", "model.safetensors"):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes()


@pytest.mark.parametrize("scheme", ["IOB1", "BIOES"])
@pytest.mark.parametrize("settings", [("model.crf=true",), ("model.scheme=BIO",)])
def test_files_in_any_scheme_are_answered_in_it(tmp_path: Path, scheme: str, settings: tuple[str, ...]) -> None:
    rewritten = [
        Sentence(sentence.tokens, tuple(convert(sentence.tags, scheme)), sentence.where)  # type: ignore[arg-type]
        for sentence in sentences()
    ]
    found = run(write(tmp_path / "a.conll", rewritten), tmp_path / "run", "train.epochs=6", *settings)
    prefixes = {entry[0] for entry in found.tags}
    assert prefixes == set("OBI" if settings[0] == "model.scheme=BIO" else "OBIES")
    answers = found.tag_tokens([sentence.tokens for sentence in rewritten])
    assert span_scores([sentence.tags for sentence in rewritten], answers).overall.f1 > 0.9
    assert all(row == convert(row, scheme) for row in answers)  # type: ignore[arg-type]


def test_parts_of_speech_have_no_spans(tmp_path: Path) -> None:
    plain = [
        Sentence(sentence.tokens, tuple({"B": "PROPN", "I": "PROPN", "O": "X"}[entry[0]] for entry in sentence.tags))
        for sentence in sentences()
    ]
    path = write(tmp_path / "a.jsonl", plain)
    found = run(path, tmp_path / "run", "train.epochs=4")
    assert found.predict("Ada went to Oslo.").tags == ("PROPN", "X", "X", "PROPN", "X")
    assert found.predict("Ada went to Oslo.").spans == ()
    assert "spans" not in evaluate(found, [path])[str(path)]


def test_strictly_a_broken_span_is_none(model: TagModel) -> None:
    broken = [model.tags.index(name) for name in ("O", "I-PER", "E-PER", "S-LOC")]
    assert model._read(np.array(broken))[0] == ["O", "B-PER", "I-PER", "B-LOC"]
    assert model._read(np.array(broken), strict=True)[0] == ["O", "O", "O", "B-LOC"]


def test_an_unknown_tag_counts_as_a_mistake_and_not_in_the_loss(model: TagModel) -> None:
    known = sentences(5, seed=9)
    odd = Sentence(("Ada", "went"), ("B-GOD", "O"))
    scores, loss = model.measure([*known, odd])
    alone, same = model.measure(known)
    assert loss == pytest.approx(same, rel=1e-5)
    assert scores.confusion.counts.sum() == alone.confusion.counts.sum() + 2
    assert scores.accuracy < 1


def test_evaluate_tells_of_repairs(model: TagModel, tmp_path: Path) -> None:
    path = tmp_path / "odd.conll"
    path.write_text("Ada I-PER\nwent O\n")
    report = evaluate(model, [path], baselines=False)
    assert "not valid BIO" in report["note"]
    assert "baselines" not in report
    assert report[str(path)]["tokens"] == 2


def test_pre_trained_vectors_bring_words_that_training_has_not(tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("2 3\nparis 0.1 0.2 0.3\nvienna 0.1 0.2 0.4\n")
    settings = ("train.steps=3", f'text.vectors="{vectors}"', "model.freeze_vectors=true")
    found = run(write(tmp_path / "a.conll"), tmp_path / "run", *settings)
    assert found.network.words is not None
    rows = found.network.words.weight[[found.vocabulary.word_id("Paris"), found.vocabulary.word_id("Vienna")]]
    assert [[round(value, 4) for value in row] for row in rows.tolist()] == [[0.1, 0.2, 0.3], [0.1, 0.2, 0.4]]


def test_a_damaged_folder_is_named(trained: Path, tmp_path: Path, model: TagModel) -> None:
    model.save(tmp_path)
    (tmp_path / "lexicon.json").write_text("[]")
    with pytest.raises(UserError, match=r"lexicon\.json is damaged"):
        TagModel.load(tmp_path)
    (tmp_path / "lexicon.json").unlink()
    with pytest.raises(UserError, match="a tagger's folder holds a"):
        TagModel.load(tmp_path)


def test_settings_that_do_not_go_together_are_refused(tmp_path: Path) -> None:
    for settings, sentence in (
        (("model.freeze_vectors=true",), "needs model.vectors"),
        (("model.embeding=3",), "did you mean 'model.embedding'"),
        (("text.suffixes=[0]",), "different lengths from 1"),
    ):
        with pytest.raises(UserError, match=sentence):
            recipe(tmp_path / "a", *settings)


@pytest.mark.parametrize("name", ["ewt-upos", "wnut17", "entities"])
def test_the_recipes_that_come_with_elman_are_valid(name: str) -> None:
    found = load_recipe(TagRecipe, name)
    assert isinstance(found, TagRecipe)
    assert found.data.corpus is not None


def test_tokens_are_words(model: TagModel) -> None:
    assert model.predict(tokens=np.array(["Ada", "went"])).tokens == ("Ada", "went")  # type: ignore[call-overload]
    for wrong in (np.zeros(3), [["Ada", 3]], [["Ada"], "went"]):
        with pytest.raises(UserError, match="tokens are words"):
            model.predict(tokens=wrong)  # type: ignore[call-overload]


def test_evaluate_tells_of_tags_that_training_never_saw(model: TagModel, tmp_path: Path) -> None:
    path = tmp_path / "new.conll"
    path.write_text("Ada B-PER\nwent O\nto O\nAcme B-ORG\nCorp I-ORG\n\nAlan S-PER\nwent O\n")
    note = evaluate(model, [path])["note"]
    assert "2 tokens of new.conll have a tag that training never saw and count as mistakes, the first 'B-ORG'" in note
    assert "in the sentence at" in note and "new.conll:1: known are: LOC, PER" in note
    path.write_text("Ada B-PER\nwent O\nto O\nNew B-LOC\nYork I-LOC\n")  # places had one word each, but they are known
    assert "note" not in evaluate(model, [path])
    path.write_text("Ada B-PER\nwent O\nthere B\n")
    assert "1 tokens of new.conll have a tag that training never saw" in evaluate(model, [path])["note"]
    assert "note" not in evaluate(model, [write(tmp_path / "old.conll", sentences(10, seed=9))])
