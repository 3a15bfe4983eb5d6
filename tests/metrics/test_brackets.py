"""Brackets of trees: precision, recall and F1."""

import pytest
from hypothesis import given, settings

from elman.errors import UserError
from elman.metrics import bracket_scores
from elman.records import Tree, parse_tree
from tests.records.test_trees import TREES

RIGHT = "(S (NP (D the) (N dog)) (VP (V saw) (NP (D a) (N cat))))"


@pytest.mark.parametrize(
    ("found", "labelled", "counts"),
    [
        (RIGHT, True, (4, 4, 4)),
        ("(S (NP (D the) (N dog)) (X (V saw) (NP (D a) (N cat))))", True, (3, 4, 4)),
        ("(S (NP (D the) (N dog)) (X (V saw) (NP (D a) (N cat))))", False, (4, 4, 4)),
        ("(S (D the) (N dog) (V saw) (D a) (N cat))", True, (1, 1, 4)),
        ("(S (S (NP (D the) (N dog)) (V saw)) (NP (D a) (N cat)))", True, (3, 4, 4)),
    ],
)
def test_brackets_that_are_right(found: str, labelled: bool, counts: tuple[int, int, int]) -> None:
    score = bracket_scores([parse_tree(RIGHT)], [parse_tree(found)], labelled=labelled)
    assert (score.correct, score.predicted, score.support) == counts


@settings(deadline=None)
@given(tree=TREES)
def test_a_tree_is_all_of_itself(tree: Tree) -> None:
    score = bracket_scores([tree], [tree])
    assert score.correct == score.predicted == score.support
    assert bracket_scores([tree], [None]).correct == 0


def test_deep_trees_and_wrong_numbers() -> None:
    deep = parse_tree("(1 " * 50_000 + "(2 deep)" + ")" * 50_000)
    assert bracket_scores([deep], [deep]).f1 == 1.0
    with pytest.raises(UserError, match="1 trees and 0 predictions"):
        bracket_scores([deep], [])
