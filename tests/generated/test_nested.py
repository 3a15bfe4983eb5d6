"""Nested list operations and formulas: what is written has the value that its label says."""

import random
from collections.abc import Callable, Iterator
from itertools import product

import pytest

from elman.generated.formulas import VARIABLES, formula, formulas
from elman.generated.listops import OPERATIONS, list_operation, list_operations
from elman.records.treebank import flattened
from elman.records.trees import Tree, parse_tree


def nodes(tree: Tree) -> Iterator[Tree]:
    yield tree
    for child in tree.children:
        yield from nodes(child)


def value(tokens: list[str]) -> int:
    """Of a list, from its words alone."""
    stack: list[list] = [[]]  # type: ignore[type-arg]
    for token in tokens:
        if token.startswith("["):
            stack.append([token])
        elif token == "]":
            name, *values = stack.pop()
            stack[-1].append(OPERATIONS[name](values))
        else:
            stack[-1].append(int(token))
    return int(stack[0][0])


def truth(tokens: list[str]) -> str:
    """Of a formula, by asking Python for every row of its truth table."""
    written = " ".join({"implies": "<="}.get(token, token) for token in tokens)
    rows = [eval(written, dict(zip(VARIABLES, row, strict=True))) for row in product((False, True), repeat=3)]
    return "always" if all(rows) else "sometimes" if any(rows) else "never"


@pytest.mark.parametrize("depth", [1, 3, 6])
def test_every_list_has_its_value(depth: int) -> None:
    tree = list_operation(depth, random.Random(depth))
    for node in nodes(tree):
        assert node.label == "_" or int(node.label) == value(node.tokens())
    assert flattened(tree).depth == depth


def test_operations() -> None:
    assert [OPERATIONS[name]([7, 1, 5, 9]) for name in ("[MAX", "[MIN", "[MED", "[SUM")] == [9, 1, 5, 2]


@pytest.mark.parametrize("seed", range(5))
def test_every_formula_has_its_truth(seed: int) -> None:
    for node in nodes(formula(3, random.Random(seed))):
        assert node.label == "_" or node.label == truth(node.tokens())


@pytest.mark.parametrize("make", [list_operation, formula])
def test_the_same_seed_gives_the_same_tree(make: Callable[[int, random.Random], Tree]) -> None:
    assert make(4, random.Random(7)) == make(4, random.Random(7)) != make(4, random.Random(8))


@pytest.mark.parametrize(("made", "least"), [(list_operations, 5), (formulas, 5)])
def test_parts_are_apart_and_deeper_in_test(made: Callable[[], dict[str, list[str]]], least: int) -> None:
    parts = made()
    assert set(parts["train"]).isdisjoint(parts["dev"]) and set(parts["train"]).isdisjoint(parts["test"])
    depths = {part: {flattened(parse_tree(line)).depth for line in parts[part][:100]} for part in parts}
    assert max(depths["train"]) == max(depths["dev"]) < least <= min(depths["test"])
