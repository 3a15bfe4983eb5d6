"""How much of a tree was found: precision, recall and F1 of its brackets (PARSEVAL, Black et al. 1991)."""

from collections import Counter
from collections.abc import Sequence

from elman.errors import UserError
from elman.metrics.classification import Score
from elman.records.trees import Tree


def bracket_scores(gold: Sequence[Tree], predicted: Sequence[Tree | None], *, labelled: bool = True) -> Score:
    """Brackets around the same words, with the same label where `labelled`; None found none.

    Those around a single word are not counted, being given.

    >>> from elman.records.trees import parse_tree
    >>> right, found = parse_tree("(S (NP (D a) (N b)) (V c))"), parse_tree("(S (D a) (VP (N b) (V c)))")
    >>> bracket_scores([right], [found]).f1, bracket_scores([right], [None]).recall
    (0.5, 0.0)
    """
    if len(gold) != len(predicted):
        raise UserError(f"there are {len(gold)} trees and {len(predicted)} predictions: give one for each")
    correct = guessed = support = 0
    for right, found in zip(gold, predicted, strict=True):
        there, here = _brackets(right, labelled), Counter() if found is None else _brackets(found, labelled)
        correct += (there & here).total()
        guessed += here.total()
        support += there.total()
    return Score(correct, guessed, support)


def _brackets(tree: Tree, labelled: bool) -> Counter[tuple[str, int, int]]:
    """Label, first word and the word behind the last of each bracket; no recursion, however deep the tree is."""
    found: Counter[tuple[str, int, int]] = Counter()
    words, opened = 0, list[int]()
    waiting: list[tuple[Tree, bool]] = [(tree, False)]
    while waiting:
        node, closes = waiting.pop()
        if closes:
            found[node.label if labelled else "", opened.pop(), words] += 1
        elif node.word is not None:
            words += 1
        else:
            opened.append(words)
            waiting += [(node, True), *((child, False) for child in reversed(node.children))]
    return found
