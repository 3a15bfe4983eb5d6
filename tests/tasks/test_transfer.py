"""Language models under other tasks: what a network begins with, what follows from it, how it is tuned and shipped."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import elman
from elman.corpora import CATALOGUE, CorpusFile
from elman.errors import UserError
from elman.tasks import TASKS, training
from elman.tasks.export import export
from elman.tasks.recipes import load_recipe
from elman.tasks.task import Source
from tests.tasks import classify_runs, tag_runs, translate_runs
from tests.tasks.conftest import LanguageModels
from tests.tasks.language_models import untrained
from tests.tasks.resuming import assert_resumes_exactly
from tests.tasks.runs import prose
from tests.train.toy import quiet

TEXTS = prose(40).splitlines()
LABELLED = [(f"{line} zebra", "even" if number % 2 else "odd") for number, line in enumerate(TEXTS)]
TAGGED = [(line.split(), ["T" if word in ("the", "a") else "O" for word in line.split()]) for line in TEXTS]
PAIRS = [(f"{line} zebra", " ".join(reversed(line.split()))) for line in TEXTS]
SHORT: dict[str, Any] = {"train.steps": 3, "train.threads": 1, "batch.size": 8}


def begun(task: str, records: list[Any], settings: dict[str, Any]) -> Any:
    """A fresh model as a run begins with it."""
    recipe = load_recipe(TASKS[task].Recipe, None, settings)
    data = TASKS[task].open(recipe, {"train": Source(objects=records, name="train")}, None, lambda line: None)
    return training.begin(TASKS[task], recipe, data).model


def assert_tower(model: Any, stack: str, language: Any, tower: int) -> None:
    own, theirs = model.weights(), language.weights()
    names = [name for name in theirs if name.startswith(f"bodies.{tower}.")]
    assert len(names) == 8
    for name in names:
        np.testing.assert_array_equal(own[f"{stack}.{name.removeprefix(f'bodies.{tower}.')}"], theirs[name])


@pytest.mark.parametrize(
    ("kind", "direction"),
    [("words", "forward"), ("words", "backward"), ("words", "both"), ("characters", "both"), ("bpe", "both")],
)
def test_a_classifier_begins_with_the_weights_of_its_language_model(
    language_models: LanguageModels, kind: str, direction: str
) -> None:
    folder = language_models(kind, direction)
    language, model = elman.load(folder, "lm"), begun("classify", LABELLED, {"model.start": str(folder)})
    for tower in range(2 if direction == "both" else 1):
        assert_tower(model, f"body.towers.{tower}", language, tower)
    size, vectors = language.tokenizer.size, model.weights()["embedding.weight"]
    np.testing.assert_array_equal(vectors[:size], language.weights()["embedding.weight"])
    if kind == "words":
        assert model.vocabulary.tokenizer.tokens[size:] == ["zebra"]
        np.testing.assert_allclose(vectors[size], language.weights()["embedding.weight"].mean(axis=0), atol=1e-6)


def test_padding_stays_zero_and_long_vectors_are_shortened_as_the_language_model_does(tmp_path: Path) -> None:
    language = untrained("words", max_norm=0.5)
    language.save(tmp_path / "language")
    vectors = begun("classify", LABELLED, {"model.start": str(tmp_path / "language"), "model.padding_index": 3})
    rows = vectors.weights()["embedding.weight"][: language.tokenizer.size]
    read = language.network.embedding(torch.arange(len(rows))).detach().numpy()
    assert np.linalg.norm(language.weights()["embedding.weight"], axis=1).max() > 0.6
    assert not rows[3].any() and read[3].any()
    np.testing.assert_allclose(np.delete(rows, 3, axis=0), np.delete(read, 3, axis=0), atol=1e-6)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"model.vectors": "vectors.txt"}, r"vectors of its own: leave model\.vectors out"),
        ({"model.embedding": 0}, r"needs vectors: give model\.embedding above 0"),
    ],
)
def test_vectors_are_those_of_the_language_model(tmp_path: Path, setting: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        elman.fit("classify", train=LABELLED, unlabelled=tmp_path / "more.txt", settings=setting, verbose=False)


@pytest.mark.parametrize("given", ["start", "unlabelled"])
def test_a_language_model_does_not_go_under_a_combined_output(
    tmp_path: Path, language_models: LanguageModels, given: str
) -> None:
    (tmp_path / "more.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    settings = {"model.output": "combined", "model.cell": "rnn", "model.layers": 1}
    own: dict[str, Any] = {"unlabelled": tmp_path / "more.txt"}
    if given == "start":
        settings, own = {"model.output": "combined"}, {}
        settings["model.start"] = str(language_models("words", "forward"))
    with pytest.raises(UserError, match=r"model\.output = combined was asked for, and the language model"):
        elman.fit("classify", train=LABELLED, settings=settings, verbose=False, **own)


def test_a_tagger_begins_with_its_words_wherever_they_stand(language_models: LanguageModels) -> None:
    folder = language_models("words", "both", "text.lowercase=true")
    language = elman.load(folder, "lm")
    records = [([*words, "Zebra"], [*tags, "O"]) for words, tags in TAGGED]
    model = begun("tag", records, {"model.start": str(folder)})
    assert_tower(model, "body.towers.1", language, 1)
    theirs = language.weights()["embedding.weight"]
    for word, row in zip(model.vocabulary.words.tokens, model.weights()["words.weight"], strict=True):
        if word in language.tokenizer.tokens:
            np.testing.assert_array_equal(row, theirs[language.tokenizer.tokens.index(word)])
        else:
            assert word == "zebra"
            np.testing.assert_allclose(row, theirs.mean(axis=0), atol=1e-6)


def test_both_sides_of_a_translator_begin_with_language_models(language_models: LanguageModels) -> None:
    source, target = language_models("words", "both"), language_models("characters", "forward")
    settings = {"model.start": str(source), "model.decoder_start": str(target), "model.decoder": "bahdanau"}
    model = begun("translate", PAIRS, {**settings, "model.attention": "additive"})
    languages = [elman.load(folder, "lm") for folder in (source, target)]
    for tower in (0, 1):
        assert_tower(model, f"encoder.towers.{tower}", languages[0], tower)
    own, theirs = model.weights(), languages[1].weights()
    np.testing.assert_array_equal(own["target.weight"], theirs["embedding.weight"])
    fed = own["decoder.body.layers.0.weight_ih_l0"]  # which sees the context behind the token
    np.testing.assert_array_equal(fed[:, :6], theirs["bodies.0.layers.0.weight_ih_l0"])
    assert fed.shape[1] == 6 + 20
    assert_same = np.testing.assert_array_equal
    assert_same(own["decoder.body.layers.1.weight_hh_l0"], theirs["bodies.0.layers.1.weight_hh_l0"])
    assert (model.settings.layers, model.settings.encoder_hidden, model.settings.decoder_layers) == (2, 10, 2)


RUNS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "classify": (LABELLED, {"model.pooling": "last-max-mean", "baseline.ngrams": False}),
    "tag": (TAGGED, {"model.crf": True}),
    "translate": (PAIRS, {"report.baselines": False, "search.beam": 2}),
}


@pytest.mark.parametrize(
    ("task", "direction"),
    [
        *[("classify", direction) for direction in ("forward", "backward", "both")],
        *[(task, direction) for task in ("tag", "translate") for direction in ("backward", "both")],
    ],
)
def test_predictions_are_the_same_compiled_by_pytorch_and_nearly_in_int8(
    tmp_path: Path, language_models: LanguageModels, task: str, direction: str
) -> None:
    records, settings = RUNS[task]
    short = {key: value for key, value in SHORT.items() if task != "translate" or key != "batch.size"}
    start = {"model.start": str(language_models("words", direction))}
    elman.fit(task, train=records, out=tmp_path / "run", settings={**short, **settings, **start}, verbose=False)
    compiled, plain = (elman.load(tmp_path / "run", backend=backend) for backend in ("compiled", "torch"))
    small = elman.load(export(tmp_path / "run", tmp_path / "int8", int8=True), backend="compiled")
    texts = TEXTS[:5]
    if task == "classify":
        close = {"atol": 1e-5}
        np.testing.assert_allclose(compiled.probabilities(texts), plain.probabilities(texts), **close)
        np.testing.assert_allclose(small.probabilities(texts), plain.probabilities(texts), atol=0.03)
    elif task == "tag":
        assert [one.tags for one in compiled.predict(texts)] == [one.tags for one in plain.predict(texts)]
        assert len(small.predict(texts[0]).tags) == len(texts[0].split())
    else:
        options = {"max_length": 4}
        found, right = compiled.predict(texts, **options), plain.predict(texts, **options)
        assert [one.text for one in found] == [one.text for one in right]
        scores = [[one.n_best[0].log_prob for one in several] for several in (found, right)]
        assert scores[0] == pytest.approx(scores[1], rel=1e-4)
        assert small.predict(texts[0], **options).text is not None


@pytest.mark.parametrize(
    "layers",
    [
        ("model.cell=lstm", "model.projection=4", "model.learned_state=true"),
        ("model.cell=rnn", "model.nonlinearity=logistic"),
        ("model.cell=rnn", "model.nonlinearity=identity", "model.learned_state=true"),
    ],
)
@pytest.mark.parametrize("direction", ["backward", "both"])
def test_layers_of_any_make_go_under_a_classifier(
    language_models: LanguageModels, layers: tuple[str, ...], direction: str
) -> None:
    folder = language_models("words", direction, *layers)
    settings = {"model.start": str(folder), "model.pooling": "last-max-mean"}
    model = begun("classify", LABELLED, settings)
    theirs, own = elman.load(folder, "lm").weights(), model.weights()
    for name in (name for name in theirs if name.startswith("bodies.")):
        np.testing.assert_array_equal(own[name.replace("bodies.", "body.towers.")], theirs[name])
    compiled = type(model)(model.config, model.vocabulary, model.weights(), backend="compiled")
    plain = type(model)(model.config, model.vocabulary, model.weights(), backend="torch")
    np.testing.assert_allclose(compiled.probabilities(TEXTS[:5]), plain.probabilities(TEXTS[:5]), atol=1e-5)


def test_the_folder_needs_the_language_model_no_more(tmp_path: Path, language_models: LanguageModels) -> None:
    folder = language_models("words", "both")
    moved = tmp_path / "moved"
    moved.symlink_to(folder)
    settings = {**SHORT, "model.start": str(moved), "baseline.ngrams": False}
    model = elman.fit("classify", train=LABELLED, out=tmp_path / "run", settings=settings, verbose=False)
    moved.unlink()
    again = elman.load(tmp_path / "run")
    np.testing.assert_array_equal(again.probabilities(TEXTS), model.probabilities(TEXTS))
    exported = elman.load(export(tmp_path / "run", tmp_path / "exported"))
    assert exported.recipe["model"]["start"] == "moved"
    more = elman.fit("classify", train=LABELLED, start=tmp_path / "run", settings=SHORT, verbose=False)
    assert more.config.model.direction == "both"
    assert more.config.model.start is None


# What follows, and what is refused


def test_sizes_follow_over_a_recipe_and_are_told(tmp_path: Path, language_models: LanguageModels) -> None:
    folder = language_models("words", "both")
    mine = tmp_path / "mine.toml"
    mine.write_text('task = "classify"\n[model]\nhidden = 99\ncell = "lstm"\n[text]\nkind = "bpe"\n')
    recipe = load_recipe(classify_runs.ClassifyRecipe, mine, {"model.start": str(folder)})
    assert (recipe.model.hidden, recipe.model.cell, recipe.model.layers, recipe.model.embedding) == (10, "gru", 2, 6)
    assert (recipe.model.direction, recipe.model.bidirectional, recipe.text.kind) == ("both", True, "words")
    mine.write_text(mine.read_text().replace("hidden = 99", f'hidden = 99\nstart = "{folder}"'))
    with pytest.raises(UserError, match=r"model.cell = lstm was asked for, and the language model .* makes it gru"):
        load_recipe(classify_runs.ClassifyRecipe, mine, {})


@pytest.mark.parametrize(
    ("task", "settings", "sentence"),
    [
        ("classify", {"model.hidden": 64}, "model.hidden = 64 was asked for, and the language model .* makes it 10"),
        ("classify", {"text.kind": "bpe"}, "text.kind = bpe was asked for, and the language model .* makes it words"),
        ("classify", {"model.bidirectional": False}, "model.bidirectional = false was asked for"),
        ("classify", {"model.characters": 8}, "model.characters = 8 was asked for"),
        ("tag", {"model.character_hidden": 5}, "model.character_hidden = 5 was asked for"),
        ("tag", {"model.strings": ["x"]}, "model.start reads words alone"),
        ("translate", {"model.encoder_hidden": 5}, "model.encoder_hidden = 5 was asked for"),
        ("translate", {"text.joint": True}, "text.joint = true was asked for"),
        ("translate", {"model.direction": "backward"}, "model.direction = backward was asked for"),
    ],
)
def test_what_was_asked_for_and_differs_is_refused(
    language_models: LanguageModels, task: str, settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        load_recipe(TASKS[task].Recipe, None, {"model.start": str(language_models("words", "both")), **settings})


def test_two_language_models_that_do_not_go_together_are_refused(language_models: LanguageModels) -> None:
    settings = {"model.start": str(language_models()), "model.decoder_start": str(language_models())}
    other = str(language_models("words", "forward", "model.embedding=7"))
    with pytest.raises(UserError, match=r"model.embedding is 6 by model.start and 7 by model.decoder_start"):
        load_recipe(translate_runs.TranslateRecipe, None, {**settings, "model.decoder_start": other})
    backward = {"model.decoder_start": str(language_models("words", "backward"))}
    with pytest.raises(UserError, match=r"is model\.reverse_source = true"):
        turned = {"model.direction": "backward", "model.bidirectional": False}
        load_recipe(translate_runs.TranslateRecipe, None, turned)
    with pytest.raises(UserError, match="a decoder writes forwards"):
        load_recipe(translate_runs.TranslateRecipe, None, backward)


def test_folders_that_are_no_recurrent_language_model_are_refused(
    tmp_path: Path, language_models: LanguageModels
) -> None:
    def refused(folder: Path, sentence: str, task: str = "classify", key: str = "model.start") -> None:
        with pytest.raises(UserError, match=sentence) as error:
            elman.fit(task, train=LABELLED, settings={key: str(folder)}, verbose=False)
        assert str(error.value).count("\n") == 0

    refused(tmp_path / "nowhere", "model.start: no model folder at .*nowhere")
    refused(tmp_path, "model.start: .* is not a model folder")
    refused(language_models("words", "forward", "model.kind=ngram"), "is an n-gram model, which has no recurrent")
    refused(language_models("words", "forward", "model.kind=window"), "is a window model")
    learned = language_models("words", "forward", "model.learned_state=true")
    with pytest.raises(UserError, match=r"has model\.learned_state, which these layers have not"):
        load_recipe(translate_runs.TranslateRecipe, None, {"model.start": str(learned)})
    combined = ("model.cell=rnn", "model.output=combined", "model.layers=1")
    refused(language_models("words", "forward", *combined), "has model.output = combined")
    refused(language_models("bpe"), "reads bpe, and a tagger's tokens are words", task="tag")
    classifier = tmp_path / "classifier"
    settings = {**SHORT, "baseline.ngrams": False}
    elman.fit("classify", train=LABELLED, out=classifier, settings=settings, verbose=False)
    refused(classifier, "holds a model for the task 'classify', and this needs one for 'lm'")
    with pytest.raises(UserError, match=r"holds a language model, no classify model: give it as -s model\.start="):
        elman.fit("classify", train=LABELLED, start=language_models(), verbose=False)


def test_towers_without_a_language_model(tmp_path: Path) -> None:
    settings = {**SHORT, "model.direction": "both", "model.layers": 2, "model.hidden": 8, "baseline.ngrams": False}
    model = elman.fit("classify", train=LABELLED, out=tmp_path / "run", settings=settings, verbose=False)
    assert "body.towers.1.layers.1.weight_ih_l0" in model.weights()
    with pytest.raises(UserError, match=r'model\.direction = "forward" goes with'):
        elman.fit("classify", train=LABELLED, settings={"model.direction": "forward"}, verbose=False)


# Tuning


TUNED = ("train.unfreeze=0.5", "train.layer_factor=2.6", "train.schedule=slanted", "train.checkpoint_seconds=0")


def test_a_run_that_is_killed_while_layers_thaw_ends_with_the_same_bytes(
    tmp_path: Path, language_models: LanguageModels
) -> None:
    table = classify_runs.write_table(tmp_path / "names.csv")
    start = f'model.start="{language_models("characters", "both")}"'
    mine = [one for one in classify_runs.SMALL if not one.startswith(("model.hidden", "model.embedding="))]
    recipe = load_recipe(
        classify_runs.ClassifyRecipe, None, [*mine, f'data.train=["{table}"]', "train.steps=30", start, *TUNED]
    )
    assert_resumes_exactly(
        tmp_path, lambda folder: classify_runs.task_trainer("classify", recipe, folder), stops=(4, 9, 20)
    )


@pytest.mark.parametrize("task", ["tag", "lm", "series"])
def test_the_ways_of_tuning_work_in_every_task_without_a_start(tmp_path: Path, task: str) -> None:
    records: dict[str, Any] = {"tag": TAGGED, "lm": TEXTS, "series": {"value": list(range(200))}}
    settings = [*TUNED, "train.steps=6", "train.threads=1", "model.hidden=8", "model.layers=2"]
    seen: list[dict[str, Any]] = []
    elman.fit(task, train=records[task], settings=settings, verbose=False, callbacks=[seen.append])
    assert any(record["kind"] == "dev" for record in seen)


# Language models on the texts of other tasks


@pytest.mark.parametrize("unit", ["stream", "line"])
def test_a_language_model_learns_on_from_the_texts_of_labelled_files(
    tmp_path: Path, language_models: LanguageModels, unit: str
) -> None:
    table = tmp_path / "reviews.csv"
    table.write_text("text,label\n" + "".join(f'"{text}",LABEL\n' for text, _ in LABELLED), encoding="utf-8")
    start = language_models("words", "forward", f"data.unit={unit}")
    settings = {"train.steps": 2, "train.threads": 1, "data.texts_of": "classify", "baseline.order": 0}
    model = elman.fit("lm", train=table, start=start, out=tmp_path / "tuned", settings=settings, verbose=False)
    assert model.tokenizer.tokens == elman.load(start).tokenizer.tokens
    assert model.config.recipe["data"]["unit"] == unit
    data = TASKS["lm"].open(
        load_recipe(TASKS["lm"].Recipe, None, {"data.texts_of": "classify", "data.unit": unit, "text.kind": "words"}),
        {"train": Source([table]), "dev": Source([table])},
        None,
        lambda line: None,
    )
    assert "zebra" in data.facts["tokenizer"].tokens
    assert not {"LABEL", "label", "text"} & set(data.facts["tokenizer"].tokens)


def test_of_a_table_with_odd_columns_that_of_the_text_is_enough(tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text("Nr.,What was said?,again\n" + '7,"fine soup",\n8,"cold soup",no\n' * 4, encoding="utf-8")
    settings = {"data.texts_of": "classify", "data.text_column": "What was said?", "text.kind": "words"}
    settings |= {"data.unit": "line", "baseline.order": 0, "train.steps": 1}
    model = elman.fit("lm", train=table, settings=settings, reporter=quiet())
    assert {"fine", "cold", "soup"} <= set(model.tokenizer.tokens)
    assert not {"no", "7", "Nr.", "said?"} & set(model.tokenizer.tokens)


def test_word_vectors_go_to_the_language_model_of_unlabelled_texts(tmp_path: Path) -> None:
    more, vectors = tmp_path / "more.txt", tmp_path / "vectors.txt"
    more.write_text("a fine film\n" * 9, encoding="utf-8")
    vectors.write_text("fine 1 2\nfilm 3 4\n", encoding="utf-8")
    settings = {"text.kind": "words", "model.vectors": str(vectors)}
    with pytest.raises(UserError, match=r"has vectors of its own: leave model.vectors out, or .*transfer.lm"):
        elman.fit("classify", train=list(LABELLED), unlabelled=more, settings=settings, reporter=quiet())


def test_the_same_command_resumes_where_a_folder_was_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "vectors.txt").write_text("cat 1 2\nsat 3 4\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    settings = {"text.kind": "words", "model.vectors": "vectors.txt", "model.hidden": 3, "train.epochs": 1}
    told = {"train": list(LABELLED), "out": "run", "reporter": quiet()}
    elman.fit("classify", settings=settings, **told)
    model = elman.fit("classify", settings={**settings, "train.epochs": 2}, resume=True, **told)
    assert model.config.recipe["train"]["epochs"] == 2


def test_tagged_files_are_texts_too(tmp_path: Path) -> None:
    file = tag_runs.write(tmp_path / "train.conll")
    settings = {"data.texts_of": "tag", "text.kind": "words", "data.unit": "line", "baseline.order": 0}
    model = elman.fit("lm", train=file, settings={**settings, "train.steps": 1}, reporter=quiet())
    assert {"went", "Ada"} <= set(model.tokenizer.tokens)
    assert "B-PER" not in model.tokenizer.tokens


@pytest.mark.parametrize("unit", ["stream", "line"])
def test_a_corpus_of_plain_text_stands_beside_tagged_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    for name, tasks, text in (
        ("posts", ("tag",), "Ada B-PER\nwent O\n\n" * 9),
        ("books", ("lm",), "a fine zebra\n" * 9),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "train.txt").write_text(text)
        entry = replace(CATALOGUE["sonnets"], name=name, tasks=tasks, splits={"train": ("train.txt",)})
        file = CorpusFile("train.txt", len(text), sha256=hashlib.sha256(text.encode()).hexdigest())
        monkeypatch.setitem(CATALOGUE, name, replace(entry, files=(file,)))
    settings = {"data.corpus": ["books", "posts"], "data.texts_of": "tag", "text.kind": "words", "data.unit": unit}
    settings |= {"train.steps": 1, "baseline.order": 0}
    model = elman.fit("lm", settings=settings, data_dir=tmp_path, reporter=quiet())
    assert {"fine", "zebra", "went", "Ada"} <= set(model.tokenizer.tokens)
    assert not {"B-PER", "O"} & set(model.tokenizer.tokens)


def test_a_run_that_names_its_language_model_from_here_resumes_by_the_same_command(
    tmp_path: Path, language_models: LanguageModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(language_models("words", "both"))
    monkeypatch.chdir(folder.parent)
    settings = SHORT | {"model.start": folder.name}
    elman.fit("classify", train=LABELLED, out=tmp_path / "run", settings=settings, verbose=False)
    more = settings | {"train.steps": 4}
    model = elman.fit("classify", train=LABELLED, out=tmp_path / "run", settings=more, resume=True, verbose=False)
    assert model.report["run"]["steps"] == 4
