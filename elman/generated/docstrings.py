"""Functions of Python's standard library, each with the sentence that says what it does: code and words as pairs.

The first sentence of a docstring is a summary of the function that its author wrote. Nothing is downloaded: the source
is that of the Python that runs Elman.
"""

import ast
import warnings
from collections.abc import Iterator
from pathlib import Path

from elman.generated.sources import LIMIT, python_sources
from elman.records.pairs import Pair
from elman.records.places import Place
from elman.records.splits import split_by_key

SHARES = {"dev": 0.05, "test": 0.05}
SHORTEST, LONGEST = 3, 20  # words of a sentence
MOST = 400  # characters of the code


def docstring_pairs(limit: int = LIMIT) -> list[Pair]:
    """Code in one line and its sentence, each pair once, of as many files as `limit` bytes hold.

    Functions without a docstring, or with long code, are left out.

    >>> pairs = docstring_pairs(limit=100_000)
    >>> next(pair.target for pair in pairs if "_abc_registry_clear" in pair.source)
    'Clear the registry (for debugging or testing)'
    """
    found: dict[Pair, None] = {}
    for path in python_sources(limit):
        with warnings.catch_warnings():  # what its compiler thinks of old code is no matter here
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
        found |= dict.fromkeys(_pairs_of(tree, path))
    return list(found)


def docstring_parts(limit: int = LIMIT) -> dict[str, list[Pair]]:
    """The pairs as "train", "dev" and "test"; no sentence of a held-out part stands in training."""
    pairs = docstring_pairs(limit)
    rows = split_by_key([pair.target for pair in pairs], SHARES)
    return {part: [pairs[row] for row in members] for part, members in rows.items()}


def _pairs_of(tree: ast.Module, path: Path) -> Iterator[Pair]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        sentence = _first_sentence(ast.get_docstring(node) or "")
        if SHORTEST <= len(sentence.split()) <= LONGEST and len(node.body) > 1:
            node.body = node.body[1:]
            code = " ".join(ast.unparse(node).split())
            if len(code) <= MOST:
                yield Pair(code, sentence, Place(path, node.lineno))


def _first_sentence(text: str) -> str:
    """Of the first paragraph, in one line, without its full stop."""
    paragraph = " ".join(text.strip().partition("\n\n")[0].split())
    return paragraph.partition(". ")[0].removesuffix(".")
