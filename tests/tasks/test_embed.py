"""Word vectors from a text to answers: runs, files, questions, scores."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elman
from elman import kernels
from elman.errors import UserError
from elman.metrics.words import analogy_scores, similarity_scores, spearman
from elman.records.word_tests import Analogies, Similarities, read_word_test
from elman.tasks.embed import VectorModel
from elman.tasks.export import export, export_vectors
from elman.text.vector_files import read_vectors, write_vectors
from elman.text.vectors import WordVectors
from tests.cli.invoke import invoke
from tests.tasks.embed_runs import GROUPS, run, trainer, write_text
from tests.tasks.resuming import assert_resumes_exactly

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
ANALOGIES = ": one\ncat dog axe saw\nCAT dog nail file\n: two\nbread rice unknown soup\n"
PAIRS = (
    "word1\tword2\tPOS\tscore\ncat\tdog\tN\t9\ncat\taxe\tN\t1\nrice\tnail\tN\t2\nrice\tsoup\tN\t8\nrice\tzebra\tN\t3\n"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("embed")
    run(write_text(place / "text.txt"), place / "run", "train.epochs=20")
    (place / "analogies.txt").write_text(ANALOGIES)
    (place / "pairs.tsv").write_text(PAIRS)
    return place


@pytest.fixture
def model(folder: Path) -> VectorModel:
    return elman.load(folder / "run", "embed")


def random_vectors(count: int = 60, size: int = 7) -> WordVectors:
    random = np.random.default_rng(4)
    return WordVectors([f"w{n}" for n in range(count)], random.standard_normal((count, size)).astype(np.float32))


# Learning


def groups_found(model: VectorModel) -> int:
    """Words whose nearest three are the others of their group."""
    parts = [set(words.split()) for words in GROUPS.values()]
    return sum({one.word for one in model.nearest(word, 3)} == part - {word} for part in parts for word in part)


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("model.kind=cbow",),
        ("model.objective=hierarchical",),
        ("model.objective=softmax",),
        ("model.kind=cbow", "model.objective=softmax"),
        ("model.ngram_max=3",),
        ("model.ngram_max=4", "model.buckets=500"),
    ],
)
def test_words_with_the_same_company_get_like_vectors(folder: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    made = run(folder / "text.txt", tmp_path / "run", "train.epochs=20", "train.lr=0.1", *settings)
    assert groups_found(made) == 12
    report = made.report
    assert report is not None
    assert report["dev"]["text_loss"] < report["baselines"]["vectors of zeros"]["dev"]["text_loss"]
    assert report["run"]["words_per_second"] > 0


def test_a_full_softmax_gives_the_vectors_of_plain_numpy(tmp_path: Path) -> None:
    """The course's own form: every pair of neighbours, one after the other, p = softmax(x y')."""
    text, epochs = "the cat sat on the mat", 3
    (tmp_path / "text.txt").write_text(text)
    settings = ("model.objective=softmax", "model.window=1", "model.dynamic=false", "train.schedule=constant")
    cut = trainer(tmp_path / "text.txt", tmp_path / "run", *settings, f"train.epochs={epochs}", "train.lr=0.5")
    network, tokenizer = cut.task.network, cut.task.model.vocabulary  # type: ignore[attr-defined]
    x, y = (part.detach().numpy().astype(np.float64)[2:] for part in (network.vectors, network.output))
    cut.run()
    ids = tokenizer.encode(text) - 2
    for _ in range(epochs):
        for at in range(len(ids)):
            around = [int(ids[near]) for near in (at - 1, at + 1) if 0 <= near < len(ids)]
            h = x[around]  # M x E
            p = np.exp(h @ y.T) / np.exp(h @ y.T).sum(axis=1, keepdims=True)
            error = np.eye(len(y))[ids[at]] - p  # M x V
            change = error @ y
            y += 0.5 * error.T @ h
            np.add.at(x, around, 0.5 * change)
    assert np.allclose(network.vectors.detach().numpy()[2:], x, atol=1e-5)
    assert np.allclose(network.output.detach().numpy()[2:], y, atol=1e-5)


def test_a_run_that_is_killed_goes_on_to_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    settings = ("train.epochs=4", "batch.size=500", "train.checkpoint_seconds=0", "model.sample=0.01")
    assert_resumes_exactly(tmp_path, lambda out: trainer(folder / "text.txt", out, *settings), (3, 9))


def test_other_text_is_no_text_to_go_on_with(folder: Path, tmp_path: Path) -> None:
    text = write_text(tmp_path / "text.txt")
    run(text, tmp_path / "run", "train.epochs=1")
    text.write_text(text.read_text().replace("cat", "dog cat"))
    with pytest.raises(UserError, match="text has changed"):
        elman.fit("embed", out=tmp_path / "run", resume=True, settings={"train.epochs": 2}, verbose=False)


def test_a_trained_model_learns_further(folder: Path, tmp_path: Path) -> None:
    more = elman.fit(
        "embed", out=tmp_path / "more", train=folder / "text.txt", start=folder / "run", verbose=False,
        settings={"train.epochs": 1, "train.threads": 1},
    )  # fmt: skip
    assert more.vocabulary.tokens == elman.load(folder / "run").vocabulary.tokens
    assert groups_found(more) == 12


def test_pairs_of_words_become_phrases(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    rows = [
        " ".join([*random.choice(list("abcdefghij"), 6), "new", "york", "city"[: 4 * (at % 2)]]) for at in range(300)
    ]
    (tmp_path / "text.txt").write_text("\n".join(rows))
    settings = ("text.phrases=2", "text.phrase_threshold=4", "train.epochs=1")
    made = run(tmp_path / "text.txt", tmp_path / "run", *settings)
    assert {word for word in made.vectors.words if "_" in word} == {"new_york", "new_york_city"}
    assert made.vocabulary.counts[made.vocabulary.tokens.index("new_york_city")] == 150
    assert np.array_equal(made.vector("new york"), made.vector("new_york"))
    assert "new_york" not in {one.word for one in made.predict("new york")}


def test_ngrams_give_words_that_were_never_seen_a_vector(folder: Path, tmp_path: Path) -> None:
    made = run(folder / "text.txt", tmp_path / "run", "model.ngram_max=3", "train.epochs=20", "train.lr=0.1")
    rows, ngrams = made.weights()["vectors"], made.ngrams
    assert ngrams is not None
    places = len(made.vocabulary.tokens) + ngrams.rows("breads")
    assert np.allclose(made.vector("breads"), rows[places].sum(axis=0) / np.sqrt(len(places)), atol=1e-6)
    assert made.nearest("breads", 1)[0].word == "bread"
    with pytest.raises(UserError, match="has no vector"):
        made.vector("xyz")  # none of its n-grams stands in a known word


def test_data_in_memory_and_the_last_model_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    made = elman.fit(
        "embed",
        train=["a b c d e f"] * 50,
        settings={"text.min_count": 1, "model.embedding": 5, "train.epochs": 2, "train.threads": 1},
    )
    assert len(made.vectors) == 6
    said = capsys.readouterr()
    assert "held out: " in said.out + said.err and "best so far" not in said.out + said.err


# Questions


def test_nearest_words_are_those_of_brute_force() -> None:
    vectors = random_vectors()
    unit = vectors.matrix / np.linalg.norm(vectors.matrix, axis=1, keepdims=True)
    order = [row for row in np.argsort(-(unit @ unit[3])) if row != 3][:5]
    assert [one.word for one in vectors.nearest("w3", 5)] == [f"w{row}" for row in order]
    target = unit[3] - unit[4] + unit[5]
    scores = unit @ (target / np.linalg.norm(target))
    order = [row for row in np.argsort(-scores) if row not in (3, 4, 5)][:4]
    assert [one.word for one in vectors.analogy(["w3", "w5"], ["w4"], 4)] == [f"w{row}" for row in order]


def test_files_and_answers_are_those_of_gensim(tmp_path: Path) -> None:
    keyed = pytest.importorskip("gensim.models").KeyedVectors
    vectors = random_vectors()
    for format, binary in (("word2vec", False), ("word2vec-binary", True), ("glove", False)):
        place = tmp_path / format
        write_vectors(place, vectors, format)  # type: ignore[arg-type]
        theirs = keyed.load_word2vec_format(place, binary=binary, no_header=format == "glove")
        assert theirs.index_to_key == list(vectors.words)
        assert np.array_equal(theirs.vectors, vectors.matrix)
        theirs.save_word2vec_format(tmp_path / "back", binary=binary)
        assert np.allclose(read_vectors(tmp_path / "back").matrix, vectors.matrix, atol=1e-6)
    asked: dict[str, Any] = {"positive": ["w1", "w2"], "negative": ["w3"], "topn": 5}
    ours = vectors.analogy(["w1", "w2"], ["w3"], 5), vectors.analogy(["w1", "w2"], ["w3"], 5, "mul")
    for mine, found in zip(ours, (theirs.most_similar(**asked), theirs.most_similar_cosmul(**asked)), strict=True):
        assert [one.word for one in mine] == [word for word, _ in found]
        assert np.allclose([one.score for one in mine], [score for _, score in found], atol=1e-4)
    assert vectors.odd_one_out(["w1", "w2", "w3", "w4"]) == theirs.doesnt_match(["w1", "w2", "w3", "w4"])
    (tmp_path / "analogies.txt").write_text(": a\n" + "".join(f"w{n} w{n + 1} w{n + 2} W{n + 3}\n" for n in range(40)))
    score, _ = theirs.evaluate_word_analogies(tmp_path / "analogies.txt")
    test = read_word_test(tmp_path / "analogies.txt")
    assert isinstance(test, Analogies)
    assert analogy_scores(vectors, test)["analogies"] == pytest.approx(score)


def test_spearman_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(2)
    one, other = random.integers(0, 5, 40).astype(float), random.standard_normal(40)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)


def test_the_command_line_answers(folder: Path, tmp_path: Path) -> None:
    place = str(folder / "run")
    code, out, error = invoke("predict", place, "cat", "--neighbours", "3")
    assert code == 0, error
    assert {part.split()[0] for part in out.strip().split("  ")} == {"dog", "cow", "hen"}
    code, out, _ = invoke("predict", place, "--json", "cat - dog + axe", "--neighbours", "2", "--method", "mul")
    assert code == 0
    assert {one["word"] for one in json.loads(out)["nearest"]} < set(GROUPS["tools"].split())
    assert invoke("predict", place, "cat dog axe hen", "--odd-one-out")[1] == "axe\n"
    code, _, error = invoke("predict", place, "breadd")
    assert code == 2 and error.endswith("'breadd' has no vector: did you mean 'bread'?\n")
    code, out, error = invoke("predict", place, "--on-error", "skip", stdin="cat\nzebra\naxe\n")
    assert code == 0 and len(out.splitlines()) == 2 and "-:2 cannot be answered: 'zebra' has no vector" in error
    code, out, _ = invoke("evaluate", place, str(folder / "pairs.tsv"), str(folder / "analogies.txt"))
    assert code == 0
    assert "4 of 5 have vectors" in out or "2 of 3 have vectors" in out
    assert "Spearman" in out and "spelling" in out and "nearest to the third word" in out
    code, _, error = invoke("explain", place, "cat", "axe", "bread", "--out", str(tmp_path / "map.svg"))
    assert code == 0, error
    assert "bread" in (tmp_path / "map.svg").read_text()


def test_scores_say_how_much_was_known(folder: Path, model: VectorModel) -> None:
    pairs, analogies = (read_word_test(folder / name) for name in ("pairs.tsv", "analogies.txt"))
    assert isinstance(pairs, Similarities) and isinstance(analogies, Analogies)
    found = similarity_scores(model.vectors, pairs)
    assert found["coverage"] == 0.8 and found["spearman"] > 0.7
    asked = analogy_scores(model.vectors, analogies)
    assert asked["coverage"] == pytest.approx(2 / 3)
    assert list(asked["sections"]) == ["one"]


def test_what_could_not_be_asked_has_no_score(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("ocean\tsea\t9\nking\tqueen\t8\n")
    (tmp_path / "analogies.txt").write_text(": one\nking queen man woman\n")
    files = [str(tmp_path / name) for name in ("pairs.tsv", "analogies.txt")]
    code, out, error = invoke("evaluate", str(folder / "run"), *files, "--json")
    assert code == 0, error
    for scores in json.loads(out).values():
        if isinstance(scores, dict) and "tests" in scores:
            assert "spearman" not in scores and "analogies" not in scores and scores["coverage"] == 0
    code, out, error = invoke("evaluate", str(folder / "run"), *files)
    assert code == 0 and "no score; 0 of 1 have vectors for all their words" in " ".join(out.split()), error
    code, out, error = invoke("evaluate", str(folder / "run"), str(folder / "pairs.tsv"), files[0], "--json")
    assert code == 0 and json.loads(out)[str(folder / "pairs.tsv")]["spearman"] > 0.7, error


def test_tests_are_scored_while_training(folder: Path, tmp_path: Path) -> None:
    settings = {"text.min_count": 1, "train.epochs": 2, "train.threads": 1}
    made = elman.fit(
        "embed", train=folder / "text.txt", dev=folder / "pairs.tsv", test=folder / "analogies.txt",
        out=tmp_path / "run", settings=settings, verbose=False,
    )  # fmt: skip
    assert set(made.report.sets) == {"dev", "test"}
    assert made.report["test"]["coverage"] == pytest.approx(2 / 3)
    assert "nearest to the third word" in (tmp_path / "run" / "README.md").read_text()


# Folders and files


def test_a_file_becomes_a_folder_and_a_folder_a_file(model: VectorModel, folder: Path, tmp_path: Path) -> None:
    for format in ("word2vec", "word2vec-binary", "glove"):
        file = export_vectors(folder / "run", tmp_path / format, format)  # type: ignore[arg-type]
        assert np.array_equal(elman.load_vectors(file).vectors.matrix, model.vectors.matrix)
    export(file, tmp_path / "folder")
    again = elman.load(tmp_path / "folder", "embed")
    assert list(again.vectors.words) == list(model.vectors.words)
    assert np.array_equal(elman.load_vectors(tmp_path / "folder").vector("cat"), model.vector("cat"))
    small = model.to_int8()
    assert np.allclose(small.vector("cat"), model.vector("cat"), atol=0.02)
    with pytest.raises(UserError, match="come from a file"):
        elman.fit("embed", train=folder / "text.txt", start=tmp_path / "folder", verbose=False)


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("2 2\na 1 2\na 3 4\n", r"vectors:3 has the word 'a' for the second time"),
        (b"2 2\na " + np.array([1, np.nan], "<f4").tobytes() + b"\n", "not finite in the vector of 'a'"),
        (b"2 2\na " + np.array([1e9, 2], "<f4").tobytes() + b"\nb " + b"\0\0\0", "ends behind 1 of 2 vectors"),
        ("this is no file of vectors\nat all\n", r"vectors:1 is not a word with 5 numbers"),
        ("", "has none of the words"),
    ],
)
def test_bad_files_are_answered_with_a_sentence(tmp_path: Path, content: str | bytes, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        elman.load_vectors(written(tmp_path / "vectors", content))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"text.min_count": 99_999}, "text.min_count=99999 leaves no known token"),
        ({"train.momentum": 0.9}, "train.momentum means nothing to word vectors"),
        ({"train.unfreeze": 1}, "train.unfreeze means nothing to word vectors"),
        ({"train.layer_factor": 2.6}, "train.layer_factor means nothing to word vectors"),
        ({"model.buckets": 10}, "model.buckets are for n-grams"),
        ({"text.phrases": 1, "text.kind": "characters"}, "text.phrases joins words"),
        ({"train.optimizer": "adam"}, "train.optimizer"),
    ],
)
def test_settings_that_make_no_sense_are_refused(folder: Path, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        elman.fit("embed", train=folder / "text.txt", settings=settings, verbose=False)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        (": a\none two three\n", ":2 has 3 words"),
        ("cat dog\naxe saw\n", ":2 is not two words and a number"),
    ],
)
def test_bad_tests_are_answered_with_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_word_test(written(tmp_path / "test.txt", content))


@pytest.mark.data
def test_the_public_tests_are_read(data_dir: Path) -> None:
    files = [
        data_dir / "word-eval" / name for name in ("questions-words.txt", "wordsim353_combined.csv", "SimLex-999.txt")
    ]
    analogies, wordsim, simlex = map(read_word_test, files)
    assert isinstance(analogies, Analogies) and isinstance(wordsim, Similarities) and isinstance(simlex, Similarities)
    assert sum(map(len, analogies.sections.values())) == 19_544
    assert len(wordsim.pairs) == 353 and len(simlex.pairs) == 999
    assert simlex.pairs[0] == ("old", "new", 1.58)
