"""Networks of every task that begin with word vectors."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elman
from elman import kernels
from elman.errors import UserError
from elman.tasks import TASKS, training
from elman.tasks.export import export
from elman.tasks.recipes import load_recipe
from elman.text.vector_files import write_vectors
from elman.text.vectors import WordVectors
from elman.train.loop import Trainer
from tests.tasks import embed_runs
from tests.tasks.runs import open_task
from tests.train.toy import quiet

SIZE = 5
LINES = ["The cat sat there", "a dog ran off", "the cat ran off", "a dog sat there"] * 6
TASKS_WITH_WORDS = {
    "lm": ("embedding", "text.txt", ("text.kind=words", "model.layers=1", "batch.size=2", "batch.steps=4")),
    "classify": ("embedding", "texts.csv", ("text.kind=words", "batch.size=4")),
    "tag": ("words", "tags.conll", ("model.character_hidden=0", "model.layers=1", "batch.size=4")),
    "translate": ("source", "pairs.tsv", ("text.kind=words", "text.min_count=1", "batch.tokens=20")),
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("\n".join(LINES))
    (tmp_path / "texts.csv").write_text("text,label\n" + "".join(f"{line},{line[0]}\n" for line in LINES))
    rows = ["".join(f"{word}\tX{len(word)}\n" for word in line.split()) for line in LINES]
    (tmp_path / "tags.conll").write_text("\n".join(rows))
    (tmp_path / "pairs.tsv").write_text("".join(f"{line}\t{line.upper()}\n" for line in LINES))
    words = ["the", "cat", "dog", "CAT", "never"]
    matrix = np.arange(len(words) * SIZE, dtype=np.float32).reshape(-1, SIZE) / 10
    write_vectors(tmp_path / "vectors.txt", WordVectors(words, matrix))
    return tmp_path


def begun(task: str, data: Path, *settings: str) -> tuple[Any, list[str]]:
    """A run that is about to begin, and what was said."""
    said: list[str] = []
    _, file, own = TASKS_WITH_WORDS[task]
    given = [f'data.train=["{data / file}"]', f'model.vectors="{data / "vectors.txt"}"', "model.hidden=6", *own]
    recipe = load_recipe(TASKS[task].Recipe, None, [*given, "train.threads=1", "train.epochs=2", *settings])
    return training.begin(TASKS[task], recipe, open_task(task, recipe), say=said.append), said


def row_of(run: Any, task: str, word: str) -> np.ndarray:
    embedded = run.task.embedded(run.model.vocabulary)["vectors"]
    weight = getattr(run.network, TASKS_WITH_WORDS[task][0]).weight.detach().numpy()
    return np.array(weight[list(embedded.tokens).index(word)])


@pytest.mark.parametrize("task", TASKS_WITH_WORDS)
def test_words_begin_with_their_vectors(task: str, data: Path) -> None:
    run, said = begun(task, data)
    assert run.recipe.model.embedding == run.model.config.model.embedding == SIZE
    assert row_of(run, task, "cat").tolist() == np.arange(5, 10).astype(np.float32).__truediv__(10).tolist()
    the = "the" if task in ("classify", "tag") else "The"  # found in small letters as well
    assert row_of(run, task, the)[1] == pytest.approx(0.1)
    assert any(line.startswith("model.vectors: ") and "have a vector in vectors.txt" in line for line in said)
    other = row_of(run, task, "there")
    assert np.isfinite(other).all() and other.any()


@pytest.mark.parametrize("task", TASKS_WITH_WORDS)
@pytest.mark.parametrize(
    ("frozen", "sparse"), [("false", "false"), ("true", "false"), ("true", "true"), ("1", "false"), ("1", "true")]
)
def test_they_stay_or_move_as_the_settings_say(task: str, frozen: str, sparse: str, data: Path, tmp_path: Path) -> None:
    told = (f"model.vectors_frozen={frozen}", f"model.sparse={sparse}")
    if task == "translate" and sparse == "true":
        told = (*told, "model.tied=none")
    run, _ = begun(task, data, *told, "train.evaluate_every=1000000")
    before = {word: row_of(run, task, word) for word in ("cat", "there")}
    trainer = Trainer(run, run.recipe.train, tmp_path / "run", quiet())
    first, seen = True, []
    while trainer.fraction < 1.0:
        trainer._update()
        if first and trainer.batches.progress < 1.0:
            seen.append(np.array_equal(row_of(run, task, "cat"), before["cat"]))
    still = np.array_equal(row_of(run, task, "cat"), before["cat"])
    assert still == (frozen == "true")
    if frozen != "false":
        assert seen and all(seen)  # all through the first epoch
    assert not np.array_equal(row_of(run, task, "there"), before["there"])


@pytest.mark.parametrize("characters", ["0", "4"])
def test_a_classifier_knows_words_of_the_vectors_that_training_lacks(characters: str, data: Path) -> None:
    run, _ = begun("classify", data, f"model.characters={characters}")
    assert row_of(run, "classify", "never").tolist() == pytest.approx([2.0, 2.1, 2.2, 2.3, 2.4])
    assert list(run.task.embedded(run.model.vocabulary)["vectors"].tokens).count("cat") == 1
    run, _ = begun("classify", data, f"model.characters={characters}", "text.vector_words=2")
    assert "never" not in run.task.embedded(run.model.vocabulary)["vectors"].tokens


@pytest.mark.parametrize(
    ("task", "key", "recipe", "made"),
    [
        ("classify", "vectors", "wikitext2-vectors", "embed"),
        ("tag", "vectors", "wikitext2-vectors", "embed"),
        ("translate", "target_vectors", "wikitext2-vectors", "embed"),
        ("classify", "start", "tinyshakespeare", "lm"),
        ("translate", "decoder_start", "tinyshakespeare", "lm"),
        ("tag", "strings", "tinyshakespeare", "lm"),
    ],
)
def test_a_folder_that_is_not_there_is_told_with_the_command_that_makes_it(
    task: str, key: str, recipe: str, made: str, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(data)
    _, file, own = TASKS_WITH_WORDS[task]
    folder: Any = [f"runs/{recipe}"] if key == "strings" else f"runs/{recipe}"
    with pytest.raises(UserError) as error:
        elman.fit(task, train=data / file, settings=[*own, f"model.{key}={folder!r}"], verbose=False)
    command = f"elman train {made} {recipe} --out runs/{recipe}"
    assert str(error.value) == f"model.{key}: runs/{recipe} is not there: make it with {command}"


def test_the_padding_stays_zero(data: Path) -> None:
    run, _ = begun("lm", data)
    place = list(run.model.tokenizer.tokens).index("cat")
    run, _ = begun("lm", data, f"model.padding_index={place}")
    assert not row_of(run, "lm", "cat").any() and row_of(run, "lm", "dog").any()


@pytest.mark.parametrize(
    ("task", "key", "settings"), [("tag", "vectors", "embedding = 9"), ("translate", "target_vectors", "")]
)
def test_a_run_by_a_recipe_is_resumed(data: Path, tmp_path: Path, task: str, key: str, settings: str) -> None:
    _, file, own = TASKS_WITH_WORDS[task]
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(f'task = "{task}"\n[model]\nhidden = 4\n{key} = "{data / "vectors.txt"}"\n{settings}\n')
    options: dict[str, Any] = {"train": data / file, "out": tmp_path / "run", "verbose": False}
    elman.fit(task, recipe, settings=[*own, "train.epochs=1", "train.threads=1"], **options)
    model = elman.fit(task, recipe, settings=[*own, "train.epochs=2", "train.threads=1"], resume=True, **options)
    assert model.config.model.embedding == SIZE and model.recipe["train"]["epochs"] == 2


def test_both_sides_of_a_translator(data: Path) -> None:
    run, said = begun("translate", data, f'model.target_vectors="{data / "vectors.txt"}"', "model.tied=none")
    tokens = list(run.model.vocabulary.target.tokens)
    assert run.network.target.weight[tokens.index("CAT")].tolist() == pytest.approx([1.5, 1.6, 1.7, 1.8, 1.9])
    assert [line.split(":")[0] for line in said if "have a vector" in line] == ["model.vectors", "model.target_vectors"]


def test_the_model_is_whole_without_the_file(data: Path, tmp_path: Path) -> None:
    _, file, own = TASKS_WITH_WORDS["classify"]
    settings = [*own, f'model.vectors="{data / "vectors.txt"}"', "model.hidden=4", "train.epochs=1", "train.threads=1"]
    elman.fit("classify", train=data / file, out=tmp_path / "run", settings=settings, verbose=False)
    again = [*settings[:-2], "train.epochs=2", "train.threads=1"]
    elman.fit("classify", train=data / file, out=tmp_path / "run", settings=again, resume=True, verbose=False)
    further: dict[str, Any] = {"train": data / file, "start": tmp_path / "run", "verbose": False}
    elman.fit("classify", settings={"train.epochs": 1, "train.threads": 1}, **further)
    with pytest.raises(UserError, match=r"model\.vectors is for a fresh network"):
        elman.fit("classify", settings={"model.vectors": "other.txt"}, **further)
    same = {"model.vectors": str(data / "vectors.txt"), "model.vectors_frozen": True}
    with pytest.raises(UserError, match=r"model\.vectors_frozen is for a fresh network"):
        elman.fit("classify", settings=same, **further)
    (data / "vectors.txt").unlink()
    model = elman.load(tmp_path / "run")
    assert model.config.model.embedding == SIZE
    assert model.predict("a cat").label in "aTt"
    export(tmp_path / "run", tmp_path / "out")
    assert str(tmp_path) not in (tmp_path / "out" / "config.json").read_text()


@pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
def test_a_folder_of_vectors_will_do_and_ngrams_know_every_word(tmp_path: Path, data: Path) -> None:
    text = embed_runs.write_text(tmp_path / "groups.txt")
    made = embed_runs.run(text, tmp_path / "words", "train.epochs=1", "model.ngram_max=3", "model.embedding=7")
    run, _ = begun("lm", data, f'model.vectors="{tmp_path / "words"}"')
    assert row_of(run, "lm", "cat") == pytest.approx(made.vector("cat"))
    assert row_of(run, "lm", "sat") == pytest.approx(made.vector("sat"))  # of its n-grams: it has none of its own


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("model.embedding=9",), "vectors of 5 dimensions, and model.embedding is 9: say -s model.embedding=5"),
        (("model.vectors=none", "model.vectors_frozen=true"), "model.vectors_frozen needs model.vectors"),
        (("model.vectors=missing.txt",), "model.vectors: no word vectors at .*missing.txt"),
        (("model.kind=ngram",), "n-grams and one-hot input have none"),
        (("model.vectors_frozen=true", "train.weight_decay=0.1"), "train.weight_decay would change frozen vectors"),
        (("model.vectors_frozen=true", "model.max_norm=1"), "model.max_norm would shorten frozen vectors"),
    ],
)
def test_what_does_not_fit_is_told(data: Path, settings: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        begun("lm", data, *settings)


def test_the_older_names_of_a_tagger_are_understood(data: Path) -> None:
    from elman.tasks.tag import ModelSettings, TagRecipe

    older = load_recipe(TagRecipe, None, [f'text.vectors="{data / "vectors.txt"}"', "model.freeze_vectors=true"])
    assert (older.model.vectors, older.model.vectors_frozen) == (str(data / "vectors.txt"), True)
    assert ModelSettings.model_validate({"freeze_vectors": True}).vectors_frozen is False  # a folder that is trained


def test_a_negative_number_of_epochs_is_refused() -> None:
    with pytest.raises(UserError, match="a number of epochs from 0 on"):
        load_recipe(TASKS["lm"].Recipe, None, {"model.vectors": "any", "model.vectors_frozen": -1})


def test_a_key_of_several_types_is_named_as_it_is_typed() -> None:
    with pytest.raises(UserError, match=r"'model.vectors_frozen' = nan: should be true or false or should be a finite"):
        load_recipe(TASKS["lm"].Recipe, None, {"model.vectors": "any", "model.vectors_frozen": float("nan")})
    with pytest.raises(UserError, match=r"'train.clip_norm' = 1: should be left out"):
        load_recipe(TASKS["embed"].Recipe, None, {"train.clip_norm": 1})
