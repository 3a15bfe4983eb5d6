"""Functions and what they do, from Python's own library."""

import ast
from pathlib import Path

from elman.generated.docstrings import LONGEST, MOST, SHORTEST, docstring_pairs, docstring_parts

SMALL = 400_000


def test_code_and_its_sentence() -> None:
    pairs = docstring_pairs(limit=SMALL)
    assert len(pairs) == len(set(pairs)) > 50
    for pair in pairs:
        assert "def " in pair.source and len(pair.source) <= MOST and "\n" not in pair.source + pair.target
        assert SHORTEST <= len(pair.target.split()) <= LONGEST and not pair.target.endswith(".")
        assert pair.target not in pair.source  # the docstring is not among what is read
    where = pairs[0].where
    assert where is not None and isinstance(where.path, Path)
    text = where.path.read_text(encoding="utf-8")
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    assert any(node.lineno == where.line for node in functions)


def test_no_sentence_stands_in_two_parts() -> None:
    parts = docstring_parts(limit=SMALL)
    targets = {part: {pair.target for pair in pairs} for part, pairs in parts.items()}
    assert targets["train"].isdisjoint(targets["dev"] | targets["test"]) and targets["dev"].isdisjoint(targets["test"])
    assert all(parts.values())
