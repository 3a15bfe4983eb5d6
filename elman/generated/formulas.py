"""Propositional formulas as trees: is one always true, never, or does it depend on its variables?

`( p and ( not p ) )` is never true. Every formula inside another has a label too. Whoever knows the truth table of both
sides knows that of the whole, at any depth; without the structure nothing but counting words is left (Evans et al. 2018
ask a like question of sequences). Made by rule: nothing is downloaded.
"""

import random
from itertools import product

from elman.generated.listops import distinct
from elman.records.trees import Tree

VARIABLES = ("p", "q", "r")
ROWS = list(product((False, True), repeat=len(VARIABLES)))  # of a truth table
FULL = 2 ** len(ROWS) - 1
COLUMNS = {name: sum(row[place] << at for at, row in enumerate(ROWS)) for place, name in enumerate(VARIABLES)}
"""The truth table of each variable, a bit a row."""
LABELS = {0: "never", FULL: "always"}
DEPTHS, DEEPER = (2, 3, 4), (5, 6, 7)  # of those to learn from, and to test with
SIZES = {"train": 12_000, "dev": 1_000, "test": 999}
TRIES = 100  # formulas that are drawn for one of the label that is wanted, at most


def formula(depth: int, generator: random.Random) -> Tree:
    """A formula of exactly that depth, as likely always true, never, or sometimes, as far as that depth allows.

    >>> print(formula(1, random.Random(1)))
    (always (_ -LRB-) (sometimes q) (_ implies) (sometimes q) (_ -RRB-))
    """
    wanted = generator.choice(("always", "never", "sometimes"))
    for _ in range(TRIES):
        tree, _ = _draw(depth, generator)
        if tree.label == wanted:
            break
    return tree


def _draw(depth: int, generator: random.Random) -> tuple[Tree, int]:
    """A formula and its truth table."""
    if not depth:
        name = generator.choice(VARIABLES)
        return Tree("sometimes", name), COLUMNS[name]
    opened, closed = Tree("_", "("), Tree("_", ")")
    if generator.random() < 0.25:
        inner, table = _draw(depth - 1, generator)
        table ^= FULL
        return Tree(LABELS.get(table, "sometimes"), None, (opened, Tree("_", "not"), inner, closed)), table
    depths = [depth - 1, generator.randrange(depth)]
    generator.shuffle(depths)
    (left, a), (right, b) = (_draw(below, generator) for below in depths)
    word, table = generator.choice((("and", a & b), ("or", a | b), ("implies", (a ^ FULL) | b)))
    return Tree(LABELS.get(table, "sometimes"), None, (opened, left, Tree("_", word), right, closed)), table


def formulas(seed: int = 0) -> dict[str, list[str]]:
    """Bracketed trees for "train" and "dev", of depth 2 to 4 in equal shares, and deeper ones for "test", 5 to 7.

    >>> {part: len(lines) for part, lines in formulas().items()}
    {'train': 12000, 'dev': 1000, 'test': 999}
    """
    return distinct(formula, SIZES, DEPTHS, DEEPER, f"formulas {seed}")
