"""Bracketed trees."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elman.errors import UserError
from elman.records import BadLines, Tree, iterate_trees, parse_tree
from elman.records.treebank import parse_shape

WORDS = st.text(alphabet="ab(/é'", min_size=1, max_size=4).filter(lambda word: word == "(" or "(" not in word)
TREES = st.recursive(
    st.builds(Tree, label=st.sampled_from("01234"), word=WORDS),
    lambda below: st.builds(
        Tree, label=st.sampled_from("01234"), children=st.lists(below, min_size=1, max_size=3).map(tuple)
    ),
    max_leaves=12,
)


@given(tree=TREES)
def test_what_is_written_is_read(tree: Tree) -> None:
    again = parse_tree(str(tree))
    assert again == tree
    assert again.tokens() == tree.tokens()


def test_words_in_order_and_without_escapes() -> None:
    tree = parse_tree("(3 (2 (2 -LRB-) (2 and\\/or)) (4 (3 8\xa01\\/2) (2 -RRB-)))")
    assert tree.tokens() == ["(", "and/or", "8\xa01/2", ")"]
    assert [child.label for child in tree.children] == ["2", "4"]


def test_depth_has_no_limit() -> None:
    depth = 200_000
    tree = parse_tree("(1 " * depth + "(2 deep)" + ")" * depth)
    assert tree.tokens() == ["deep"]
    assert len(str(tree)) == 4 * depth + 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(2 (2 a)", "a.txt:2 ends with 1 bracket still open"),
        ("((", "ends with 2 brackets still open"),
        ("(2 a))", r"goes on with '\)' where its tree is closed"),
        ("(2 a) (2 b)", "goes on with"),
        ("2 a)", "begins with '2'"),
        ("(2)", "where a node is a label"),
        ("()", "where a node is a label"),
        ("(2 a b)", r"has \(2 a b\)"),
        ("(2 a (2 b))", r"has \(2 a \(...\)\)"),
        ("((2 a) (2 b))", "where a node is a label"),
    ],
)
def test_wrong_brackets_are_one_sentence(tmp_path: Path, text: str, message: str) -> None:
    place = tmp_path / "a.txt"
    place.write_text(f"(2 fine)\n{text}\n(3 good)\n")
    with pytest.raises(UserError, match=message):
        list(iterate_trees(place))
    bad = BadLines("skip")
    assert [tree.label for tree, _ in iterate_trees(place, bad=bad)] == ["2", "3"]
    assert bad.count == 1


@pytest.mark.parametrize(
    ("text", "piece"), [("( ( a b ) c ) joy", "joy"), ("( a b ) joy ( c d )", "joy"), ("( a b ) ( c d )", r"\(")]
)
def test_what_stands_behind_a_tree_is_named_as_it_is_written(text: str, piece: str) -> None:
    with pytest.raises(UserError, match=rf"goes on with '{piece}' where its tree is closed"):
        parse_shape(text)


@pytest.mark.data
def test_every_tree_of_the_treebank_is_read(data_dir: Path) -> None:
    trees = [tree for tree, _ in iterate_trees(data_dir / "sst-trees" / "dev.txt")]
    assert len(trees) == 1101
    assert trees[0].tokens()[:4] == ["It", "'s", "a", "lovely"]
