"""Nested list operations as trees: `[MAX 2 9 [MIN 4 7 ] 0 ]` is 9 (Nangia and Bowman 2018).

Every list has its value as a label, and so has every number. What is to be learned is short, four operations on
digits; what makes it hard is how deep they nest. Made by rule: nothing is downloaded.
"""

import random
from collections.abc import Callable, Sequence

from elman.records.trees import Tree

OPERATIONS: dict[str, Callable[[Sequence[int]], int]] = {
    "[MAX": max,
    "[MIN": min,
    "[MED": lambda values: sorted(values)[(len(values) - 1) // 2],
    "[SUM": lambda values: sum(values) % 10,
}
"""Largest, smallest, the one in the middle (of two the smaller), and the last digit of the sum."""
MOST = 4  # arguments of a list
NESTED = 0.25  # how likely an argument is a list where it need not be
DEPTH = 4  # of the lists to learn from, at most
DEEPER = (5, 6, 7, 8)  # of those to test with
SIZES = {"train": 12_000, "dev": 1_000, "test": 1_000}


def list_operation(depth: int, generator: random.Random) -> Tree:
    """A list with lists inside, of exactly that depth; 0 is a digit.

    >>> print(list_operation(2, random.Random(1)))
    (1 (_ [MIN) (9 (_ [SUM) (3 3) (6 6) (0 0) (_ ])) (4 4) (3 3) (1 1) (_ ]))
    """
    if not depth:
        digit = str(generator.randrange(10))
        return Tree(digit, digit)
    name, count = generator.choice(list(OPERATIONS)), generator.randint(2, MOST)
    deepest = generator.randrange(count)  # the argument that makes the list as deep as it is to be
    arguments = []
    for place in range(count):
        below = generator.randrange(depth) if generator.random() < NESTED else 0
        arguments.append(list_operation(depth - 1 if place == deepest else below, generator))
    value = OPERATIONS[name]([int(argument.label) for argument in arguments])
    return Tree(str(value), None, (Tree("_", name), *arguments, Tree("_", "]")))


def list_operations(seed: int = 0) -> dict[str, list[str]]:
    """Bracketed trees for "train" and "dev", of depth 1 to 4 in equal shares, and deeper ones for "test", 5 to 8.

    >>> {part: len(lines) for part, lines in list_operations().items()}
    {'train': 12000, 'dev': 1000, 'test': 1000}
    """
    return distinct(list_operation, SIZES, range(1, DEPTH + 1), DEEPER, f"listops {seed}")


def distinct(
    make: Callable[[int, random.Random], Tree],
    sizes: dict[str, int],
    depths: Sequence[int],
    deeper: Sequence[int],
    seed: str,
) -> dict[str, list[str]]:
    """Trees of each part in brackets, the depths in turn; none of dev or test stands in another part, or twice."""
    generator = random.Random(seed)
    taken: set[str] = set()
    parts: dict[str, list[str]] = {}
    for part in sorted(sizes):  # dev and test before train
        found: list[str] = []
        while len(found) < sizes[part]:
            chosen = deeper if part == "test" else depths
            line = str(make(chosen[len(found) % len(chosen)], generator))
            if line not in taken:
                found.append(line)
                taken |= {line} if part != "train" else set()
        parts[part] = found
    return {part: parts[part] for part in sizes}
