"""Ranks of tokens: the model's own scores to the last digit, and how well they tell its texts from people's."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import elman.inspect
from elman.errors import UserError
from elman.inspect.calibration import auc, calibrate
from elman.inspect.ranks import Ranks, RanksView, ranks
from elman.tasks.language import LanguageModel
from tests.tasks.runs import prose, run, write_names

TEXT = "the cat sat on the dog"
STEPS = "train.steps=20"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "prose.txt").write_text(prose())
    (folder / "held.txt").write_text(prose(200)[-8000:])
    return folder


@pytest.fixture(scope="module")
def model(folder: Path) -> LanguageModel:
    return run(folder / "prose.txt", folder / "model", "train.steps=60", "train.lr=0.01")


def distributions(model: LanguageModel, ids: list[int], label: str | None = None) -> np.ndarray:
    """The whole distribution that each token stood in, one token read at a time (T x V)."""
    stepper = model.stepper(label)
    state, rows = stepper.start(1), []
    for token in [model.reading.start_id, *ids[:-1]]:
        row, state = stepper.step(np.array([token]), state)
        rows.append(np.asarray(row[0], np.float64))
    table = np.stack(rows)
    return table - np.log(np.exp(table).sum(axis=1, keepdims=True))


def check(model: LanguageModel, found: Ranks, text: str, label: str | None = None) -> None:
    """Everything that is said of each token, against the score and the whole distribution."""
    scores = model.score(text, label)
    assert [one.token for one in found.tokens] == [one.token for one in scores]
    assert [one.log_prob for one in found.tokens] == [one.log_prob for one in scores]  # to the last digit
    index = {token: id for id, token in enumerate(model.tokenizer.tokens)}
    ids = [index[one.token] for one in scores]
    step = -1 if model.settings.direction == "backward" else 1
    table = distributions(model, ids[::step], label)[::step]
    for one, row, id in zip(found.tokens, table, ids, strict=True):
        assert one.probability == math.exp(one.log_prob)
        assert one.rank == 1 + int((row > row[id]).sum())
        assert one.entropy == pytest.approx(-(np.exp(row) * row).sum(), abs=1e-4)
        assert one.relative == pytest.approx(math.exp(row[id] - row.max()), rel=1e-3)
        best = np.sort(np.exp(row))[::-1][:10]
        assert [other.probability for other in one.alternatives] == pytest.approx(best.tolist(), rel=1e-3)
        told = [math.exp(row[index[other.token]]) for other in one.alternatives]
        assert told == pytest.approx([other.probability for other in one.alternatives], rel=1e-3)
    assert sum(found.buckets.values()) == sum(found.relative.counts) == sum(found.entropies.counts) == len(ids)
    assert found.buckets["10"] == sum(one.rank <= 10 for one in found.tokens)


@pytest.mark.parametrize(
    "settings",
    [
        (),
        ("model.direction=backward",),
        ("model.direction=both", "model.cell=lstm"),
        ("model.kind=window", "text.kind=words"),
        ("model.kind=ngram", "model.order=3"),
        ("model.softmax=adaptive", "text.kind=words", "model.hidden=16"),
        ("text.kind=bpe", "text.size=270"),
    ],
)
def test_every_kind_of_model_ranks_as_it_scores(folder: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    found = run(folder / "prose.txt", tmp_path / "out", STEPS, *settings)
    check(found, ranks(found, TEXT), TEXT)


def test_lines_with_labels_and_int8_rank_as_they_score(tmp_path: Path) -> None:
    table = write_names(tmp_path / "names.csv")
    settings = ("data.unit=line", "data.text_column=text", "data.label_column=label", STEPS)
    found = run(table, tmp_path / "out", *settings)
    check(found, ranks(found, "abab", "north"), "abab", "north")
    rounded = found.to_int8()
    assert [one.log_prob for one in ranks(rounded, "abxy", "south").tokens] == [
        one.log_prob for one in rounded.score("abxy", "south")
    ]
    check(rounded, ranks(rounded, "abab", "north"), "abab", "north")
    for label, message in ((None, "give one of north, south"), ("east", "does not know the label 'east'")):
        with pytest.raises(UserError, match=message):
            ranks(found, "abab", label)


def test_a_long_text_ranks_as_it_scores(model: LanguageModel) -> None:
    text = prose(150)[:5000]  # read as several streams side by side
    assert [one.log_prob for one in ranks(model, text).tokens] == [one.log_prob for one in model.score(text)]


def test_explain_shows_ranks_first_and_writes_them_as_json(model: LanguageModel, tmp_path: Path) -> None:
    explanation = elman.inspect.explain(model, [TEXT, "a bird"])
    assert explanation.view.name == "ranks" and len(explanation.data) == 2
    explanation.save(tmp_path / "ranks.json")
    told = json.loads((tmp_path / "ranks.json").read_text())["texts"][0]
    first = told["tokens"][0]
    assert set(first) == {"token", "rank", "probability", "log_prob", "entropy", "relative", "alternatives"}
    assert told["buckets"].keys() == {"10", "100", "1000", "beyond"} and len(first["alternatives"]) == 10
    panels = explanation.page().columns[0].panels
    assert [panel.kind for panel in panels] == ["tokens", "bars", "bars", "bars"]
    with pytest.raises(UserError, match="knows no labels"):
        elman.inspect.explain(model, TEXT, label="x")


def test_a_text_that_the_model_would_write_is_more_predictable(model: LanguageModel) -> None:
    own, other = ranks(model, model.generate(length=100)[0]), ranks(model, "zoo"[::-1] + "dnr hgfs tttt")
    assert own.perplexity < other.perplexity


def test_calibration_is_repeatable_and_measures_on_held_out_text(model: LanguageModel, folder: Path) -> None:
    view, options = RanksView(), {"against": str(folder / "held.txt"), "lengths": [25, 50], "runs": 30}
    first, again = (view.compute(model, [TEXT * 3], view.Options(**options)) for _ in range(2))
    assert first == again
    found = first[0].calibration
    assert found is not None and [one.length for one in found.scores] == [25, 50]
    assert [one.pieces for one in found.scores] == [30, 15]  # half of the runs, each of two pieces or of one
    assert all(0 <= one.auc <= 1 and one.error < 0.25 for one in found.scores)
    assert first[0].placed is not None and first[0].placed.length == 50
    assert view.compute(model, ["the cat"], view.Options(**options))[0].placed is None
    assert len(view.panels(first[0])) == 7
    # What a model writes at a low temperature is far more predictable than what people wrote.
    cold = calibrate(model, folder / "held.txt", [50], runs=40, temperature=0.3)[0].scores[0]
    assert cold.auc > 0.9


@pytest.mark.parametrize("settings", [("model.direction=backward",), ("model.kind=ngram",), ("data.unit=line",)])
def test_every_kind_of_model_can_be_calibrated(folder: Path, tmp_path: Path, settings: tuple[str, ...]) -> None:
    found = run(folder / "prose.txt", tmp_path / "out", STEPS, *settings)
    scores = calibrate(found, folder / "held.txt", [25], runs=20)[0].scores
    assert len(scores) == 1 and 0 <= scores[0].auc <= 1


def test_a_file_that_is_too_short_is_told_with_what_is_needed(model: LanguageModel, tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("the cat sat on a mat\n" * 5)
    with pytest.raises(UserError, match=r"has 105 tokens, too few .* texts of 25 tokens need at least 1,000"):
        calibrate(model, tmp_path / "short.txt", [50, 25])
    (tmp_path / "middle.txt").write_text("the cat sat on a mat\n" * 60)
    assert calibrate(model, tmp_path / "middle.txt", [25, 200])[0].skipped == {200: 4500}
    with pytest.raises(UserError, match="missing"):
        elman.inspect.explain(model, TEXT, against=str(tmp_path / "missing.txt"))
    with pytest.raises(UserError, match="lengths"):
        elman.inspect.explain(model, TEXT, against="x.txt", lengths=[1])


def test_the_area_under_the_curve_counts_pairs() -> None:
    random = np.random.default_rng(0)
    low, high = random.integers(0, 9, 40).astype(float), random.integers(2, 12, 30).astype(float)
    pairs = (high[:, None] > low).mean() + 0.5 * (high[:, None] == low).mean()
    assert auc(low, high) == pytest.approx(pairs)
