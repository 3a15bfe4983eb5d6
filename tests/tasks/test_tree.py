"""Networks over trees: learnt, resumed, scored, asked in every way."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elman
from elman.draw.panels import Table, Tree
from elman.errors import UserError
from elman.inspect.explain import explain
from elman.inspect.phrases import LabelledPhrases, PhraseNode, PhrasesView, labelled_tree
from elman.records.treebank import TreeReader
from elman.tasks.export import export
from elman.tasks.recipes import load_recipe
from elman.tasks.tree import TreeModel, TreeRecipe, TreeTask
from tests.cli.invoke import invoke
from tests.tasks.resuming import assert_resumes_exactly
from tests.tasks.runs import task_trainer
from tests.tasks.tree_runs import CONLLU, SMALL, write_trees


def run(train: Any, *settings: str, out: Path | None = None, **options: Any) -> TreeModel:
    """Train for a second."""
    return elman.fit("tree", train=train, out=out, settings=[*SMALL, *settings], verbose=False, **options)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows what `not` does, and has learned to parse."""
    place = tmp_path_factory.mktemp("tree")
    write_trees(place / "train.txt", 200)
    write_trees(place / "dev.txt", 40, seed=2)
    run(place / "train.txt", "model.parser=shift-reduce", out=place / "model", dev=place / "dev.txt")
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> TreeModel:
    return elman.load(folder / "model", "tree")


def test_it_learns_what_words_alone_do_not_say(folder: Path) -> None:
    report = json.loads((folder / "model" / "metrics.json").read_text())
    scores, baselines = report["dev"], report["baselines"]
    assert {"most frequent class", "bag of its vectors"} <= baselines.keys()
    assert scores["accuracy"] > 0.9 and scores["nodes"]["accuracy"] > 0.9
    assert scores["binary"]["root"] > 0.9 and scores["binary"]["nodes"] > 0.9
    assert all(scores["accuracy"] > baselines[who]["dev"]["accuracy"] for who in baselines)
    assert sum(part["trees"] for part in scores["depth"].values()) == scores["trees"] == 40
    assert set(scores["negation"]) == {"with", "without"}
    assert set(scores["parsers"]) == {"right", "balanced", "shift-reduce"}
    parsed = scores["parsers"]["shift-reduce"]
    assert parsed == scores["parsed"] and parsed["f1"] > 0.9 and parsed["accuracy"] > 0.9
    card = (folder / "model" / "README.md").read_text()
    assert "binary Tree-LSTM of 16" in card and "trees by" in card and "with negation" in card


def test_texts_trees_and_tables_get_the_same_answer(folder: Path, model: TreeModel) -> None:
    tree = "(2 (2 the) (2 (2 (2 not) (2 great)) (2 film)))"
    answer = model.predict(tree)
    assert answer.label == "0" and answer.probabilities["0"] > 0.5
    assert answer.bracketed == "(0 (2 the) (0 (0 (2 not) (4 great)) (2 film)))"
    assert model.predict(["the not great film", tree])[1].label == "0"
    code, out, error = invoke("predict", str(folder / "model"), "-", stdin=f"the not great film\n{tree}\n(3 film)\n")
    assert code == 0, error
    assert [line.split("\t")[0] for line in out.splitlines()][1:] == ["0", "2"]
    (folder / "new.csv").write_text('id,tree\n7,"( the ( great film ) )"\n')
    code, out, error = invoke("predict", str(folder / "model"), str(folder / "new.csv"), "--json")
    found = json.loads(out)
    assert (code, found["label"], found["id"], found["text"]) == (0, "4", "7", "the great film")
    assert found["tree"].startswith("(4 ") and len(found["nodes"]) == 5
    assert found["nodes"][-1] == {"parent": -1, "word": -1, "probabilities": found["probabilities"]}
    guide = (Path(__file__).parents[2] / "docs" / "trees.md").read_text()
    assert all(f"`{key}`" in guide for key in found.keys() - {"id", "line"})


def test_a_broken_line_is_fatal_or_skipped_as_asked(folder: Path) -> None:
    lines = "great film\n(2 (2 a)\ndull film\n"
    code, out, error = invoke("predict", str(folder / "model"), "-", stdin=lines)
    assert code == 2 and "-:2 looks like a tree, but ends with 1 bracket still open" in error and "great" not in error
    code, out, error = invoke("predict", str(folder / "model"), "-", "--on-error", "skip", stdin=lines)
    assert len(out.splitlines()) == 2 and "-:2 looks like a tree" in error


def test_a_killed_run_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    train = write_trees(tmp_path / "train.txt", 60)
    settings = [*SMALL, f'data.train=["{train}"]', "train.steps=10", "train.checkpoint_seconds=0", "model.dropout=0.2"]
    recipe = load_recipe(TreeRecipe, None, [*settings, "model.parser=shift-reduce", "model.sparse=true"])
    assert_resumes_exactly(tmp_path, lambda out: task_trainer("tree", recipe, out))


@pytest.mark.parametrize("network", ["recursive", "rntn", "child-sum", "sequence"])
def test_every_network_learns_and_answers_alike_by_numpy_and_pytorch(network: str, folder: Path) -> None:
    other = run(folder / "train.txt", f"model.network={network}", "train.steps=60", dev=folder / "dev.txt")
    by_torch = TreeModel(other.config, other.vocabulary, other.weights(), backend="torch")
    texts = ["(2 (2 the) (2 (2 dull) (2 film)))", "not great", "film"]
    for one, two in zip(other.predict(texts), by_torch.predict(texts), strict=True):
        np.testing.assert_allclose(one.nodes, two.nodes, atol=1e-5)
    assert other.report is not None and other.report["dev"]["nodes"]["accuracy"] > 0.6


def test_int8_is_within_reach_and_is_scored(folder: Path, model: TreeModel) -> None:
    export(folder / "model", folder / "int8", int8=True)
    small = elman.load(folder / "int8")
    assert small.int8 is not None and small.refusal() is None
    text = "(2 (2 this) (2 (2 awful) (2 film)))"
    np.testing.assert_allclose(small.predict(text).nodes, model.predict(text).nodes, atol=0.1)
    scores = elman.evaluate(small, folder / "dev.txt", baselines=False)[str(folder / "dev.txt")]
    assert (
        abs(
            scores["accuracy"]
            - elman.evaluate(model, folder / "dev.txt", baselines=False)[str(folder / "dev.txt")]["accuracy"]
        )
        < 0.05
    )


def test_binary_classes_and_labels_of_the_root_alone(folder: Path) -> None:
    two = run(folder / "train.txt", "data.classes=binary", "train.steps=40", dev=folder / "dev.txt")
    assert two.labels == ["negative", "positive"] and two.report is not None
    assert two.report["dev"]["trees"] < 40 and "binary" not in two.report["dev"]
    root = run(folder / "train.txt", "data.learned=root", "train.steps=5", dev=folder / "dev.txt")
    assert root.report is not None and root.report["dev"]["nodes"]["nodes"] == 40


def test_word_vectors_begin_it_frozen_or_tuned(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("3 2\ngreat 1 0\nawful 0 1\nrare 1 1\n")
    for frozen in ("true", "false"):
        given = [f"model.vectors={tmp_path / 'v.txt'}", f"model.vectors_frozen={frozen}", "train.steps=5"]
        settings = [*(one for one in SMALL if not one.startswith(("model.embedding", "train.steps"))), *given]
        made = elman.fit("tree", train=folder / "train.txt", settings=settings, verbose=False)
        row = made.network.embedding.weight[made.vocabulary.id("great")].tolist()
        assert made.config.model.embedding == 2 and "rare" in made.vocabulary
        assert (row == [1, 0]) == (frozen == "true")


def test_dependency_trees_are_for_the_child_sum(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU * 12)
    with pytest.raises(UserError, match=r"tree-lstm reads trees in brackets.*model.network=child-sum"):
        run(tmp_path / "a.conllu")
    with pytest.raises(UserError, match="learns brackets, not dependencies"):
        run(tmp_path / "a.conllu", "model.network=child-sum", "model.parser=shift-reduce")
    model = run(tmp_path / "a.conllu", "model.network=child-sum", "train.steps=30", "data.label_column=deprel")
    assert model.config.dependency and "nsubj" in model.labels
    dev = model.report["dev"]  # the label of the root is always the same, so classes are counted at all words
    assert dev["classes"]["nsubj"]["support"] > 0
    assert sum(entry["support"] for entry in dev["classes"].values()) == dev["nodes"]["nodes"] > dev["trees"]
    assert model.predict("Moles dig.").tree.is_dependency
    with pytest.raises(UserError, match="is a bracketed tree, and this model reads dependency trees: give CoNLL-U"):
        model.predict("(x (x a) (x b))")


@pytest.mark.parametrize("column", ["deprel", "label"])
def test_the_labels_of_words_are_printed_where_they_have_some(tmp_path: Path, column: str) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU * 12)
    run(tmp_path / "a.conllu", "model.network=child-sum", f"data.label_column={column}", out=tmp_path / "model")
    (tmp_path / "new.conllu").write_text(CONLLU)
    code, out, error = invoke("predict", str(tmp_path / "model"), str(tmp_path / "new.conllu"))
    assert code == 0, error
    if column == "deprel":
        assert out.splitlines() == ["Moles/nsubj dig/root deep/amod holes/obj", "Owls/nsubj sleep/root"]
    else:
        assert [line.split("\t")[0] for line in out.splitlines()] == ["good", "bad"]


def test_where_roots_are_alike_the_baseline_is_that_of_words(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "a.conllu").write_text(CONLLU * 12)
    model = run(tmp_path / "a.conllu", "model.network=child-sum", "train.steps=1", "data.label_column=deprel")
    baselines = TreeTask().baselines(
        model, TreeReader(label="deprel").files(tmp_path / "a.conllu").read(), TreeRecipe(), said.append
    )
    assert set(baselines) == {"most frequent class", "most frequent label of each word"}
    assert said == ["no baselines of the root's label but the most frequent one: it is 'root' in all training trees"]
    assert model.report["baselines"]["most frequent label of each word"]["dev"]["nodes"]["accuracy"] == 1
    names, _ = model.report.table("dev")
    assert "their right heads" in names and "F1 of their brackets" not in names
    assert "heads" in TreeTask().details(model.report["dev"])


def test_the_first_tree_of_another_kind_is_named_and_may_be_skipped(folder: Path, tmp_path: Path) -> None:
    long, short = CONLLU.strip().split("\n\n")
    (tmp_path / "a.conllu").write_text(f"{short}\n\n{long}\n")  # the longest is predicted first
    code, _, error = invoke("predict", str(folder / "model"), str(tmp_path / "a.conllu"))
    assert code == 2 and "a.conllu:2 is a dependency tree, and this model reads bracketed trees" in error
    code, out, error = invoke("predict", str(folder / "model"), str(tmp_path / "a.conllu"), "--on-error", "skip")
    assert not out and "2 lines skipped" in error


def test_words_that_a_parser_does_not_read_have_no_right_head(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU * 12)
    settings = ("model.network=child-sum", "model.parser=balanced", "train.steps=1", "data.label_column=deprel")
    whole, cut = (run(tmp_path / "a.conllu", *settings, f"model.longest={longest}") for longest in (1000, 1))
    assert cut.report["dev"]["parsed"]["heads"] < whole.report["dev"]["parsed"]["heads"]


@pytest.mark.parametrize(
    ("lines", "settings", "message"),
    [
        (["(9 (2 a) (2 b))"], [], r"dev.txt:1 has the label '9', which no training tree has"),
        (["(3 (7 a) (2 b))"], [], r"dev.txt:1 has the label '7', which no training tree has"),
        (["(3 a"], [], r"dev.txt:1 ends with 1 bracket still open"),
        (["(3 a)"], ["model.network=tree"], "model.network"),
        (["(3 a)"], ["model.parser=left"], "model.parser"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    folder: Path, tmp_path: Path, lines: list[str], settings: list[str], message: str
) -> None:
    (tmp_path / "dev.txt").write_text("\n".join(lines) + "\n")
    with pytest.raises(UserError, match=message):
        run(folder / "train.txt", *settings, dev=tmp_path / "dev.txt")


def test_one_class_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("(3 (3 a) (3 b))\n(3 c)\n")
    with pytest.raises(UserError, match="one class only"):
        run(tmp_path / "a.txt")


def test_a_feature_that_no_word_has_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU * 12)
    with pytest.raises(UserError, match=r"no word of .*a\.conllu has feats\.Number: name another with -s"):
        run(tmp_path / "a.conllu", "model.network=child-sum", "data.label_column=feats.Number")


def test_trees_of_one_leaf_have_no_brackets_to_score() -> None:
    leaves = ["(4 great)", "(0 awful)"]
    model = run([*leaves, "(0 (2 not) (4 great))"] * 8, "train.steps=2", dev=leaves)
    assert "f1" not in model.report["dev"]["parsed"] and "F1 of their brackets" not in model.report.table("dev")[0]
    assert "F1 " not in TreeTask().details(model.report["dev"]).split("\n\n")[1]


def test_trees_by_parser_have_the_accuracy_at_words_where_these_have_labels(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text(CONLLU * 12)
    settings = ("model.network=child-sum", "train.steps=30", "data.label_column=deprel", "model.longest=1")
    dev = run(tmp_path / "a.conllu", *settings).report["dev"]
    for part in dev["parsers"].values():  # of each text the first word alone is read
        assert part["words"] <= 2 / 6 + 0.2 and part["words"] < dev["nodes"]["accuracy"]
    table = TreeTask().details(dev).split("\n\n")[1].splitlines()
    assert table[0].split() == ["trees", "by", "heads", "words"]
    assert table[1].split()[-2] == f"{100 * dev['nodes']['accuracy']:.2f}"
    assert table[2].split()[-2] == f"{100 * dev['parsers']['right']['words']:.2f}"


def test_records_in_memory_and_trees_of_one_leaf() -> None:
    records = ["(4 great)", "(0 awful)", "(0 (2 not) (4 great))", "(4 (2 not) (0 awful))"] * 8
    model = run(records, "train.steps=60")
    assert model.predict("(_ great)").label == "4" and model.predict("great").label == "4"
    pairs = [("( not ( great film ) )", "bad"), ("( great film )", "good"), ("( dull film )", "bad")] * 8
    assert run(pairs, "train.steps=5").labels == ["bad", "good"]


def test_the_view_shows_where_it_turns_and_what_decides(model: TreeModel, tmp_path: Path) -> None:
    tree = "(2 (2 the) (2 (2 (2 not) (2 great)) (2 film)))"
    found = labelled_tree(model, tree)
    assert found.label == "0" and found.nodes[-1].parent is None
    assert [node.text for node in found.nodes if node.turns] == ["not great"]
    decides = [node.text for node in found.nodes if node.decides]
    assert decides[-1] == "the not great film" and "not great film" in decides
    assert all(0 <= node.probability <= 1 for node in found.nodes)
    shown = explain(model, [tree, "film"])
    assert [data.label for data in shown.data] == ["0", "2"]
    for ending in ("html", "json", "svg"):
        shown.save(tmp_path / f"tree.{ending}")
    drawn = json.loads((tmp_path / "tree.json").read_text())["texts"][0]["nodes"]
    assert {"label", "probability", "turns", "change", "decides", "text", "parent"} <= drawn[0].keys()
    assert "turns" in (tmp_path / "tree.html").read_text()
    drawing, table = PhrasesView().panels(found)
    assert isinstance(drawing, Tree) and "on another side than one below it" in drawing.note
    assert isinstance(table, Table) and table.columns[-1] == "change of 0"
    changes = {node.text: node.change for node in found.nodes}
    assert [float(row[-1]) for row in table.rows] == [round(changes[row[0]], 3) for row in table.rows]
    assert float(table.rows[0][-1]) < 0


def test_the_table_says_how_many_phrases_it_leaves_out() -> None:
    def phrases(count: int) -> LabelledPhrases:
        made = [
            PhraseNode(place, count - 1 if place < count - 1 else None, f"w{place}", None, "joy", 0.9,
                       {"joy": 0.9, "gloom": 0.1}, False, -0.1, False)
            for place in range(count)
        ]  # fmt: skip
        return LabelledPhrases("joy", 0.9, made)

    drawing, few = PhrasesView().panels(phrases(9))
    assert isinstance(drawing, Tree) and "is none of those right below it" in drawing.note  # moods have no sides
    _, many = PhrasesView().panels(phrases(13))
    assert isinstance(few, Table) and few.title == "what each phrase is worth" and len(few.rows) == 8
    assert isinstance(many, Table) and many.title.endswith("(8 of 12)") and len(many.rows) == 8


def test_a_tree_that_takes_too_long_to_explain_is_refused(model: TreeModel) -> None:
    with pytest.raises(UserError, match=r"the tree has 801 nodes, .* at most 600"):
        labelled_tree(model, " ".join(["film"] * 401))
