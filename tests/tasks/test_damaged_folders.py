"""A damaged model folder works all the same, or is told of in one sentence that names what is wrong with it."""

import functools
import io
import json
import random
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import elman
from elman import kernels
from elman.decode import Sampling
from elman.errors import UserError
from elman.runtime.weights import read_arrays, write_arrays
from elman.tasks import Captioner, ImageAnswerer, LanguageModel, Translator, VectorModel
from elman.tasks.export import export
from tests.tasks import answer_runs as answer
from tests.tasks import caption_runs as caption
from tests.tasks import classify_runs as classify
from tests.tasks import embed_runs as embed
from tests.tasks import runs as language
from tests.tasks import tag_runs as tag
from tests.tasks import translate_runs as translate
from tests.tasks import tree_runs as tree
from tests.tasks.damaged import Damage, damages
from tests.train.toy import quiet

MEGABYTES = 400  # that a damaged folder of a few kilobytes may take at most
QUICK, MANY = 25, 300  # damages of each model that every run of the tests tries, and that `make test-slow` tries


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small models of every task, of every kind of vocabulary, some in int8."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "text.txt").write_text(language.prose())
    short = "train.steps=2"
    language.run(folder / "text.txt", folder / "lm", short)
    language.run(folder / "text.txt", folder / "ngram", "model.kind=ngram", "text.kind=words", "model.order=2")
    names = language.write_names(folder / "labels.csv")
    language.run(names, folder / "labels", short, "data.unit=line", "data.label_column=label", "text.kind=bytes")
    table = classify.write_table(folder / "names.csv")
    classify.run(table, folder / "classify", short, "text.kind=bpe", "text.size=270")
    classify.run(table, folder / "words", short, "text.kind=words", "model.characters=4")
    sentences = tag.write(folder / "sentences.conll")
    tag.run(sentences, folder / "tag", short, "model.crf=true")
    translate.run(translate.write(folder / "pairs.tsv"), folder / "translate", short)
    others = {
        "tree": (tree.SMALL, tree.write_trees(folder / "trees.txt")),
        "answer": (answer.SMALL, answer.write(folder / "questions.tsv", 8)),
        "caption": (caption.SMALL, caption.images(folder, 8)),
        "embed": ((*embed.SMALL, "model.ngram_max=4"), folder / "text.txt"),
    }
    for name, (settings, data) in others.items():
        elman.fit(name, out=folder / name, train=data, settings=[*settings, short], reporter=quiet())
    if kernels.available():
        for name in ("lm", "classify", "tag", "translate", "tree", "answer", "caption"):
            export(folder / name, folder / f"{name}-int8", int8=True)
    return folder


NAMES = ("lm", "ngram", "labels", "classify", "words", "tag", "translate", "tree", "answer", "caption", "embed")
INT8 = ("lm-int8", "classify-int8", "tag-int8", "translate-int8", "tree-int8", "answer-int8", "caption-int8")
EVERY = [
    pytest.param(name, marks=pytest.mark.skipif(not kernels.available(), reason="the kernels were not built"))
    if name in INT8
    else name
    for name in (*NAMES, *INT8)
]


@functools.cache
def image() -> bytes:
    """The content of an image's file."""
    content = io.BytesIO()
    Image.new("RGB", (16, 16), "red").save(content, "PNG")
    return content.getvalue()


def use(folder: Path) -> None:
    """Load a model and have it answer, as a user would."""
    model: Any = elman.load(folder)
    if isinstance(model, LanguageModel):
        label = model.labels[0] if model.labels else None
        model.generate("", length=5, label=label, sampling=Sampling(seed=1))
        model.score("the", label=label)
    elif isinstance(model, Translator):
        model.predict("abc", max_length=8)
    elif isinstance(model, Captioner):
        model.predict(image(), max_length=8)
    elif isinstance(model, ImageAnswerer):
        model.predict(image(), "what is red ?")
    elif isinstance(model, VectorModel):
        model.predict("the")
    else:
        model.predict("Ada went to London")


def memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


def check(case: Damage, whole: Path, scratch: Path) -> str | None:
    """Try one damaged folder; returns the sentence that it was refused with, None where it works."""
    folder, before = case.copy(whole, scratch / "damaged"), memory()
    try:
        use(folder)
    except UserError as error:
        sentence = str(error)
        assert "\n" not in sentence.strip(), case
        assert len(sentence) < 1000, case
        assert "validation error" not in sentence, case
        return sentence
    finally:
        assert memory() - before < MEGABYTES, case
    return None


def cases(models: Path, name: str) -> Iterator[Damage]:
    others = sorted(path for path in models.iterdir() if path.is_dir() and path.name != name)
    return damages(models / name, others)


@pytest.mark.parametrize("name", EVERY)
def test_some_damages(models: Path, tmp_path: Path, name: str) -> None:
    try_some(models, tmp_path, name, QUICK, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_many_damages(models: Path, tmp_path: Path, name: str) -> None:
    try_some(models, tmp_path, name, MANY, f"many {name}")


def try_some(models: Path, scratch: Path, name: str, count: int, seed: str) -> None:
    chosen = random.Random(seed).sample(list(cases(models, name)), count)
    told = [check(case, models / name, scratch) for case in chosen]
    assert sum(sentence is not None for sentence in told) > count / 5


def changed(whole: Path, target: Path, file: str, change: Any) -> Path:
    """A copy of a model's folder with something else in one of its files."""
    shutil.copytree(whole, target)
    value = json.loads((target / file).read_text())
    change(value)
    (target / file).write_text(json.dumps(value))
    return target


@pytest.mark.parametrize(
    ("name", "file", "change", "words"),
    [
        ("lm", "config.json", lambda c: c.update(task=[1]), "'task' = [1]"),
        ("lm", "config.json", lambda c: c["reading"].update(start_id="a"), "'reading.start_id' = 'a'"),
        ("lm", "config.json", lambda c: c["reading"].update(start_id=10**6), "'reading.start_id' = 1000000"),
        ("lm", "config.json", lambda c: c["model"].pop("hidden"), "do not fit its config.json ('model')"),
        ("lm", "config.json", lambda c: c.pop("model"), "'model' is missing"),
        ("lm", "config.json", lambda c: c["model"].update(cell="lstn"), "'model.cell' = 'lstn'"),
        ("lm", "tokenizer.json", lambda c: c["characters"].append("xy"), "'characters."),
        ("lm", "tokenizer.json", lambda c: c["counts"].append(3), "'counts' has"),
        ("lm", "tokenizer.json", lambda c: c["settings"].update(kind=3), "'settings.kind' = 3"),
        ("classify", "config.json", lambda c: c.update(labels=[1, 2, 3]), "'labels.0' = 1"),
        ("classify", "tokenizer.json", lambda c: c["order"].pop(), "'order' does not fit 'model'"),
        ("words", "tokenizer.json", lambda c: c["words"].update(counts="a"), "'words.counts' = 'a'"),
        ("tag", "config.json", lambda c: c["tags"].append("B-X"), "'tags' are"),
        ("tag", "config.json", lambda c: c.update(scheme="BIOX"), "'scheme' = 'BIOX'"),
        ("tag", "lexicon.json", lambda c: c.update(unseen=3), "'unseen' = 3"),
        ("tag", "tokenizer.json", lambda c: c.update(longest="a"), "'longest' = 'a'"),
        ("translate", "config.json", lambda c: c["search"].update(beam=0), "'search.beam' = 0"),
        ("translate", "config.json", lambda c: c.update(foreign=3), "'foreign' = 3"),
        ("translate", "tokenizer.json", lambda c: c.update(target=3), "'target' in"),
        ("caption", "config.json", lambda c: c.update(longest=2**70), "'longest' = 11805"),
        ("answer", "config.json", lambda c: c.update(channels=0), "'channels' = 0"),
        ("tree", "config.json", lambda c: c["model"].update(network="tree"), "'model.network' = 'tree'"),
        ("embed", "config.json", lambda c: c["model"].update(embedding=0), "'model.embedding' = 0"),
    ],
)
def test_the_sentence_names_the_file_and_the_key(
    models: Path, tmp_path: Path, name: str, file: str, change: Any, words: str
) -> None:
    with pytest.raises(UserError) as caught:
        use(changed(models / name, tmp_path / "model", file, change))
    assert words in str(caught.value)
    assert file in str(caught.value)


@pytest.mark.parametrize("name", ["lm", "classify", "tag", "translate"])
def test_a_config_cannot_ask_for_memory(models: Path, tmp_path: Path, name: str) -> None:
    before = memory()
    for size in (14_000, 10**9, 10**30):
        folder = changed(
            models / name, tmp_path / str(size), "config.json", lambda c, size=size: c["model"].update(hidden=size)
        )
        with pytest.raises(UserError, match=r"config\.json"):
            elman.load(folder)
    assert memory() - before < 200


def test_many_tags_take_no_memory(models: Path, tmp_path: Path) -> None:
    before = memory()
    folder = changed(
        models / "tag", tmp_path / "model", "config.json", lambda c: c.update(tags=[f"B-{n}" for n in range(20_000)])
    )
    with pytest.raises(UserError, match="'tags' are 20000, and the weights are for"):
        elman.load(folder)
    assert memory() - before < 200


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json", "lexicon.json", "model.safetensors"])
def test_a_file_that_may_not_be_read_is_told_as_that(
    models: Path, tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(models / "tag", tmp_path / "model")
    whole = Path.open

    def locked(path: Path, *arguments: Any, **options: Any) -> Any:  # as for another user: root may read everything
        if path.name == file:
            raise PermissionError(13, "Permission denied", str(path))
        return whole(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", locked)
    with pytest.raises(UserError, match=rf"{file} cannot be read: permission denied; change its permissions"):
        elman.load(tmp_path / "model")


def test_weights_that_memory_has_no_room_for_are_not_damaged(
    models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Full:
        def __init__(self, *arguments: Any, **options: Any) -> None:
            pass

        def __enter__(self) -> None:
            raise RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr("elman.runtime.weights.safe_open", Full)
    with pytest.raises(UserError, match=r"not enough memory: .*lm is too large a model for this machine"):
        elman.load(models / "lm")


@pytest.mark.parametrize("backend", ["auto", "torch"])
@pytest.mark.parametrize("place", ["tag/crf.start", "tag/scores.bias", "classify/output.weight", "lm/embedding.weight"])
def test_weights_that_are_no_numbers(models: Path, tmp_path: Path, place: str, backend: Any) -> None:
    name, _, key = place.partition("/")
    shutil.copytree(models / name, tmp_path / name)
    arrays = read_arrays(tmp_path / name)
    damaged = {known: array.copy() for known, array in arrays.items()}
    damaged[key].reshape(-1)[0] = np.nan
    write_arrays(tmp_path / name, damaged)
    with pytest.raises(UserError, match=f"{name}/model.safetensors: '{key}' has numbers that are not finite"):
        elman.load(tmp_path / name, backend=backend)
