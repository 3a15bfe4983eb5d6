"""Trees with labels: brackets, tables, CoNLL-U, plain texts."""

import re
from pathlib import Path

import pytest

from elman.errors import UserError
from elman.records import BadLines
from elman.records.treebank import LabelledTree, TreeReader, cut, flattened, parse_shape
from elman.records.trees import parse_tree
from tests.tasks.tree_runs import CONLLU


def read(path: Path, text: str, **options: object) -> list[LabelledTree]:
    path.write_text(text)
    return TreeReader(**options).files(path).read()  # type: ignore[arg-type]


def test_labels_at_every_node_at_the_root_or_at_some(tmp_path: Path) -> None:
    (tree,) = read(tmp_path / "a.txt", "(3 (2 It) (_ (3 works) (2 .)))\n")
    assert tree.labels == ("2", "3", "2", None, "3") and tree.label == "3" and tree.depth == 2
    (tree,) = read(tmp_path / "a.txt", "(3 (2 It) (4 (3 works) (2 .)))\n", labels="root")
    assert tree.labels == (None, None, None, None, "3")


def test_a_tree_of_one_leaf_and_chains_of_single_children(tmp_path: Path) -> None:
    one, chain, inner = read(tmp_path / "a.txt", "(3 Fine)\n(4 (3 (2 Fine)))\n(_ (1 (2 a) (2 b)))\n")
    assert (one.parents, one.words, one.labels, one.depth) == ((-1,), (0,), ("3",), 0)
    assert chain.labels == ("4",) and chain.parents == (-1,)
    assert inner.label == "1"
    assert one.binary() is one


@pytest.mark.parametrize(
    "text", ["(3 (2 a) (2 b) (2 c) (1 d))", "(5 (3 (2 a) (2 b) (2 c)) (1 (2 x) (2 y) (0 z) (0 w)) (3 v))"]
)
def test_more_than_two_children_are_joined_from_the_left(text: str) -> None:
    tree = flattened(parse_tree(text))
    binary = tree.binary()
    assert binary.tokens == tree.tokens
    assert {len(below) for below in binary.children()} == {0, 2}
    assert [label for label in binary.labels if label] == [label for label in tree.labels if label]
    assert str(parse_tree(str(binary))) == str(binary)  # in post-order: what is written is the tree
    assert flattened(parse_tree(str(binary))).parents == binary.parents
    assert binary.labels[-1] == tree.label and binary.depth >= tree.depth


def test_tables_have_trees_of_any_brackets_and_a_label(tmp_path: Path) -> None:
    rows = "tree,label\n( ( a fine ) film ),good\n(S (NP (D a)) (VP (V ran))),bad\n"
    first, second = read(tmp_path / "a.csv", rows)
    assert first.tokens == ("a", "fine", "film") and first.label == "good" and first.parents == (2, 2, 4, 4, -1)
    assert second.labels == (None, None, "bad")
    (of_json,) = read(tmp_path / "a.jsonl", '{"tree": "(_ (_ a) (_ b))", "label": "x"}\n')
    assert of_json.label == "x"


def test_dependencies(tmp_path: Path) -> None:
    moles, owls = read(tmp_path / "a.conllu", CONLLU)
    assert moles.tokens == ("Moles", "dig", "deep", "holes") and moles.label == "good" and moles.is_dependency
    assert moles.heads() == [1, -1, 3, 1]
    assert moles.labels == (None, None, None, "good") and owls.label == "bad"
    moles, _ = read(tmp_path / "a.conllu", CONLLU, label="deprel")
    assert [(moles.tokens[word], label) for word, label in zip(moles.words, moles.labels, strict=True)] == [
        ("Moles", "nsubj"),
        ("deep", "amod"),
        ("holes", "obj"),
        ("dig", "root"),
    ]
    assert str(moles) == "(root dig (nsubj Moles) (obj holes (amod deep)))"
    asked = list(TreeReader().lines(CONLLU.replace("# label", "# text").splitlines(), Path("new.conllu")))
    assert [len(tree.parents) for tree in asked] == [4, 2]


def conllu(heads: str) -> str:
    return (
        "# label = x\n" + "".join(f"{n}\tw\tw\tX\tX\t_\t{h}\tx\t_\t_\n" for n, h in enumerate(heads.split(), 1)) + "\n"
    )


@pytest.mark.parametrize(
    ("name", "text", "options", "message"),
    [
        ("a.txt", "(2 a)\n(2 (2 a)\n", {}, r"a.txt:2 ends with 1 bracket still open"),
        ("a.txt", "(2 ((2 a) (2 b)) (2 c))\n", {}, r"a.txt:1 has \(\(...\) \(...\)\), a node without label, where"),
        ("a.txt", "(_ (2 a) (2 b))\n", {}, r"a.txt:1 has no label at its root"),
        ("a.txt", "(7 (2 a) (2 b))\n", {"classes": "binary"}, r"a.txt:1 has the label '7' where .* wants 0 to 4"),
        ("a.txt", "(3 (9 a) (2 b))\n", {"classes": "binary"}, r"a.txt:1 has the label '9' where .* wants 0 to 4"),
        ("a.txt", "no trees\n", {}, "does not show its trees"),
        ("a.csv", "tree,label\n( a b,good\n", {}, r"a.csv:2 ends with 1 bracket"),
        ("a.csv", "tree,label\n( a b ),x\na b,x\n", {}, r"a.csv:3 has a text without brackets where a tree belongs"),
        ("a.csv", "text,label\na b,x\nb,y\n", {}, r"a.csv holds plain texts and no trees .*elman train classify"),
        ("a.csv", 'tree,label\n( a b ),""\n', {}, r"a.csv:2 has an empty label"),
        ("a.jsonl", '{"tree": "(x (y a) (y b))", "label": null}\n', {}, r"a.jsonl:1 has no text in field 'label'"),
        ("a.conllu", conllu("2 1 0"), {}, r"a.conllu:2 is part of a cycle of heads"),
        ("a.conllu", conllu("2 1"), {}, r"a.conllu:2 is part of a cycle"),
        ("a.conllu", conllu("0 0"), {}, r"a.conllu:3 is a second root"),
        ("a.conllu", conllu("0 7"), {}, r"a.conllu:3 has the head '7' where a number from 0 to 2"),
        ("a.conllu", conllu("0 _"), {}, r"a.conllu:3 has the head '_'"),
        ("a.conllu", conllu("0 " + "9" * 5000), {}, r"a.conllu:3 has the head '9+' where a number from 0 to 2"),
        ("a.conllu", conllu("0 1").replace("2\tw", "7\tw"), {}, r"a.conllu:3 has the number '7' where 2 belongs"),
        ("a.conllu", conllu("0 1").replace("2\tw", "2\t"), {}, r"a.conllu:3 has no word in its second column"),
        ("a.conllu", conllu("0 1").replace("2\tw", "x\tw"), {}, r"a.conllu:3 has the number 'x' where 2 belongs"),
        ("a.conllu", "# label = x\n1\tw\n", {}, r"a.conllu:2 has 2 columns where 10 belong"),
        ("a.conllu", conllu("0").replace("label", "other"), {}, r"a.conllu:2 has no comment '# label = ...'"),
    ],
)
def test_what_is_wrong_is_one_sentence(
    tmp_path: Path, name: str, text: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as error:
        read(tmp_path / name, text, **options)
    assert len(re.findall(r"\.\s+[A-Z]", str(error.value))) == 0


def test_binary_leaves_neutral_trees_out_and_neutral_nodes_without_label(tmp_path: Path) -> None:
    (tree,) = read(tmp_path / "a.txt", "(2 (2 a) (3 b))\n(4 (2 a) (1 b))\n", classes="binary")
    assert tree.labels == (None, "negative", "positive")


def test_lines_to_predict_for_are_texts_and_trees() -> None:
    bad = BadLines("skip")
    lines = [
        "It isn't good.",
        "(2 (2 a) (3 b))",
        "( a b )",
        "(a fine film)",
        "(2 (2 a)",
        "",
        "(3 Fine)",
        "( a ( b c ) )",
    ]
    found = list(TreeReader(known=["3"]).lines(lines, Path("-"), bad))
    assert [(len(tree.tokens), len(tree.parents)) for tree in found] == [(5, 0), (2, 3), (4, 0), (5, 0), (1, 1), (3, 5)]
    assert bad.count == 2
    with pytest.raises(UserError) as error:
        list(TreeReader().lines(["(2 (2 a"], Path("-")))
    assert str(error.value) == "-:1 looks like a tree, but ends with 2 brackets still open: add the missing ))"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It's not a bad film.", ["It", "'s", "not", "a", "bad", "film", "."]),
        ("doesn't -- it won't...", ["does", "n't", "--", "it", "wo", "n't", "..."]),
        ("a 1,000.5 well-made", ["a", "1,000.5", "well-made"]),
    ],
)
def test_plain_text_is_cut_as_treebanks_are(text: str, words: list[str]) -> None:
    assert list(cut(text)) == words
    assert list(cut(" ".join(words))) == words


def test_brackets_without_labels() -> None:
    assert str(parse_shape("( a ( b c ) )")) == "(_ (_ a) (_ (_ b) (_ c)))"
    with pytest.raises(UserError, match="bracket"):
        parse_shape("( a ( b c )")
