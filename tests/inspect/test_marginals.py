"""Marginals of a tagger: probabilities that sum to 1, and the best paths among all."""

from itertools import product

import numpy as np
import pytest

from elman.draw.panels import HeatMap, Table
from elman.inspect import explain
from elman.inspect.marginals import marginals
from elman.inspect.subject import subject_of
from tests.inspect.small_models import tagger

TEXT = "a fine film"


@pytest.mark.parametrize("crf", ["true", "false"])
def test_they_are_those_of_all_paths(crf: str) -> None:
    model = tagger(f"model.crf={crf}")
    (found,) = marginals(model, [TEXT], paths=4)
    subject = subject_of(model)
    (output,) = subject.outputs([subject.cut(TEXT).tokens])
    chain = [part.astype(np.float64) for part in model.network.crf.chain()] if model.network.crf is not None else None

    def score(path: tuple[int, ...]) -> float:
        total = sum(float(output[step, tag]) for step, tag in enumerate(path))
        if chain is not None:
            start, moves, end = chain
            total += start[path[0]] + moves[path[0], path[1]] + moves[path[1], path[2]] + end[path[2]]
        return total

    paths = list(product(range(4), repeat=3))
    scores = np.exp(np.array([score(path) for path in paths]))
    shares = scores / scores.sum()
    for tag, column in product(range(4), range(3)):
        expected = sum(p for path, p in zip(paths, shares, strict=True) if path[column] == tag)
        assert found.probabilities[tag][column] == pytest.approx(expected, abs=1e-4)
    order = np.argsort(-shares)[:4]
    assert [one.tags for one in found.paths] == [[model.tags[tag] for tag in paths[n]] for n in order]
    np.testing.assert_allclose([one.probability for one in found.paths], shares[order], atol=1e-4)
    assert found.paths[0].tags == list(model.predict(tokens=TEXT.split()).tags) and found.crf == (crf == "true")


def test_the_best_path_is_marked() -> None:
    explanation = explain(tagger("model.crf=true"), TEXT, "marginals", paths=2)
    heat, table = explanation.page().columns[0].panels
    assert isinstance(heat, HeatMap) and isinstance(table, Table)
    best = explanation.data[0].paths[0].tags
    assert [heat.rows[row] for row, _ in heat.marked] == best and [column for _, column in heat.marked] == [0, 1, 2]
    assert len(table.rows) == 2 and "->" in table.rows[1][2]
