"""Places in a corpus where a model is as it is in a phrase: all of them, in memory that does not grow."""

import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import elman.inspect
from elman.errors import UserError
from elman.inspect import traces
from elman.inspect.matches import Matches, matches
from elman.inspect.phrase import find_phrase
from elman.tasks.language import LanguageModel
from elman.tasks.traces import trace_text
from tests.inspect.brackets import brackets, trained
from tests.tasks.runs import run

TEXT = "abc(abca)bc"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("matches")


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return trained(folder)


def expected(model: LanguageModel, corpus: str, found: Matches) -> list[tuple[int, int]]:
    """The runs at which all units are on, the longest first."""
    values = trace_text(model, corpus).parts["1.h"][:, found.units] * np.array(found.signs)
    on = (values >= found.threshold).all(axis=1).astype(int)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], on, [0]])))
    return sorted(zip(edges[::2], edges[1::2], strict=True), key=lambda run: (run[0] - run[1], run[0]))


@pytest.mark.parametrize("block", [1024, 7])
def test_the_same_units_are_found_wherever_they_are_on(
    model: LanguageModel, folder: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = (folder / "held.txt").read_text()
    values = trace_text(model, TEXT).parts["1.h"]
    monkeypatch.setattr(traces, "BLOCK", block)
    found = matches(model, TEXT, "(abca", folder / "held.txt", threshold=0.1, count=50)
    assert (found.start, found.stop, found.part) == (3, 8, "1.h")
    assert found.units == [
        unit
        for unit, (before, *within, behind) in enumerate((values[2:9] * np.sign(values[3])).T.tolist())
        if min(within) >= 0.1 and max(before, behind) < 0.1
    ]
    assert found.signs == np.sign(values[3, found.units]).tolist()
    assert found.units and found.looked_at == len(corpus)
    runs = expected(model, corpus, found)[:50]
    assert [(one.start, one.stop) for one in found.same_units] == runs
    first = found.same_units[0]
    assert first.text == corpus[first.start : first.stop] and first.score == len(first.text)
    assert corpus.startswith(first.before + first.text + first.behind, first.start - len(first.before))


def test_the_nearest_states_are_those_of_the_whole_corpus(model: LanguageModel, folder: Path) -> None:
    corpus = (folder / "held.txt").read_text()
    state = trace_text(model, TEXT).parts["1.c"][4]
    found = matches(model, TEXT, "1:5", folder / "held.txt", part="c", count=5)
    rows = trace_text(model, corpus).parts["1.c"]
    cosines = rows @ state / np.linalg.norm(rows, axis=1) / np.linalg.norm(state)
    np.testing.assert_allclose([one.score for one in found.nearest], np.sort(cosines)[::-1][:5], atol=1e-5)
    assert all(one.text == corpus[one.start] for one in found.nearest)
    inside = [corpus[: one.stop].count("(") > corpus[: one.stop].count(")") for one in found.nearest]
    assert all(inside)  # as the phrase is


def test_a_model_that_reads_backwards_is_looked_at_as_it_reads(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(brackets(100, 2))
    backward = run(tmp_path / "text.txt", tmp_path / "out", "train.steps=5", "model.direction=backward")
    found = matches(backward, TEXT, "(abca", tmp_path / "text.txt", threshold=0.01, count=3)
    runs = expected(backward, brackets(100, 2), found) if found.units else []
    assert [(one.start, one.stop) for one in found.same_units] == runs[:3]
    state, rows = trace_text(backward, TEXT).parts["1.h"][3], trace_text(backward, brackets(100, 2)).parts["1.h"]
    cosines = rows @ state / np.linalg.norm(rows, axis=1) / np.linalg.norm(state)
    assert found.nearest[0].start == int(cosines.argmax())


def test_memory_does_not_grow_with_the_corpus(model: LanguageModel, tmp_path: Path) -> None:
    peaks = []
    for count in (400, 4000):
        path = tmp_path / f"{count}.txt"
        path.write_text(brackets(count, 5))
        matches(model, TEXT, "(abca", path, threshold=0.1)  # encoded once, and kept on disk
        tracemalloc.start()
        found = matches(model, TEXT, "(abca", path, threshold=0.1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert found.looked_at == len(brackets(count, 5))
    assert peaks[1] < 1.2 * peaks[0] + 100_000


def test_without_a_corpus_the_text_itself_is_looked_in(model: LanguageModel) -> None:
    found = matches(model, TEXT * 3, "(abca", threshold=0.1)
    assert found.looked_at == 3 * len(TEXT)
    assert found.nearest[0].stop == found.stop and found.nearest[0].score == pytest.approx(1.0, abs=1e-4)
    assert found.same_units[0].text == (TEXT * 3)[found.same_units[0].start : found.same_units[0].stop]


def test_the_view_draws_the_places(model: LanguageModel, folder: Path) -> None:
    options = {"phrase": "(abca", "corpus": str(folder / "held.txt"), "threshold": 0.1, "count": 4}
    explanation = elman.inspect.explain(model, TEXT, view="matches", **options)
    panels = explanation.page().columns[0].panels
    assert [panel.kind for panel in panels] == ["tokens", "heatmap", "table", "table"]
    assert len(explanation.to_dict()["texts"][0]["nearest"]) == 4
    none = elman.inspect.explain(model, TEXT, view="matches", **{**options, "threshold": 50})
    assert none.data[0].units == none.data[0].same_units == []
    assert "lower it" in none.page().columns[0].panels[1].to_dict()["text"]


def test_wrong_input_is_told_in_a_sentence(model: LanguageModel, folder: Path) -> None:
    corpus = str(folder / "held.txt")
    for options, message in (
        ({"corpus": corpus}, "say which part of the text"),
        ({"phrase": "xyz", "corpus": corpus}, "'xyz' is not in the text"),
        ({"phrase": "5:99", "corpus": corpus}, "count from 1 to 11"),
        ({"phrase": "", "corpus": corpus}, "the phrase '' is not in the text"),
        ({"phrase": "ab", "corpus": str(folder / "none.txt")}, "none.txt"),
        ({"phrase": "ab", "corpus": corpus, "layer": 2}, "no layer 2"),
    ):
        with pytest.raises(UserError, match=message):
            elman.inspect.explain(model, TEXT, view="matches", **options)


def test_a_long_text_is_cut(model: LanguageModel, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elman.inspect.matches.MOST", 5)
    found = matches(model, TEXT, "1:2", folder / "held.txt")
    assert (len(found.tokens), found.cut, len(found.activations[0]) if found.units else 5) == (5, len(TEXT) - 5, 5)
    assert (found.start, found.stop) == (0, 2)
    with pytest.raises(UserError, match="count from 1 to 5"):
        matches(model, TEXT, "6:7", folder / "held.txt")


def test_numbers_of_thousands_of_digits_are_outside() -> None:
    digits = "1" * 5000
    with pytest.raises(UserError, match="the tokens count from 1 to 2"):
        find_phrase(["a", "b"], f"{digits}:{digits}", spaced=True)
