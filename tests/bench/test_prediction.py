"""That everyone answers with the same network, and what is reported of it."""

import json

import pytest
import torch

from elman import kernels
from elman.bench import machine, prediction
from elman.bench.plain import PlainTagger, viterbi
from elman.bench.prediction import FLOAT, INT8, TORCH, PredictionCase, PredictionReport, PredictionRow, Speed, Text
from elman.errors import RunError
from elman.nn.crf import CRF
from elman.tasks.tag import TagModel

compiled = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels are not installed")
CASES = [
    PredictionCase("tag", hidden=12),
    PredictionCase("tag", crf=True, hidden=12),
    PredictionCase("classify", hidden=12),
]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prediction, "WORDS", 200)
    monkeypatch.setattr(machine, "SETTLE", 0.0)


@compiled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_row_is_whole(case: PredictionCase) -> None:
    row = prediction.measure(case, 0.0, 40)  # which compares the answers
    assert {TORCH, FLOAT, INT8} <= row.speeds.keys()
    for speed in row.speeds.values():
        assert 0 < speed.median <= speed.p99
        assert speed.tokens_per_second > speed.texts_per_second > 0


@compiled
def test_wrong_answers_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PlainTagger, "__call__", lambda self, given: [["S-LOC"] * len(row) for row in given])
    with pytest.raises(RunError, match="of the tagger"):
        prediction.measure(PredictionCase("tag", hidden=12), 0.0, 40)


def test_the_plain_search_finds_the_best_path() -> None:
    torch.manual_seed(0)
    crf = CRF(5)
    with torch.no_grad():
        for parameter in crf.parameters():
            parameter.normal_()
    scores, lengths = torch.randn(6, 9, 5), torch.tensor([9, 7, 7, 4, 2, 1])
    paths = viterbi(crf, scores, lengths)
    expected, _ = crf.best_paths(scores, lengths)
    for path, right, length in zip(paths, expected, lengths, strict=True):
        assert torch.equal(path[:length], right[:length])


def test_every_tenth_word_is_new() -> None:
    text = Text()
    first, second = ({word for row in text.sentences(200, 20, 20) for word in row} for _ in range(2))
    known = set(prediction.vocabulary())
    assert 0.07 < len(second - first - known) / (200 * 20) < 0.13
    assert Text().sentences(3, 5, 35) == Text().sentences(3, 5, 35)


def test_ratios_are_against_pytorch() -> None:
    speeds = {TORCH: Speed(4e-3, 8e-3, 100.0, 2000.0), FLOAT: Speed(1e-3, 2e-3, 300.0, 6000.0)}
    row = PredictionRow(PredictionCase("tag"), speeds)
    assert row.ratio(FLOAT) == pytest.approx((4.0, 3.0))
    assert row.ratio(INT8) is None
    record = json.loads(json.dumps(PredictionReport({}, [row], ["flair was not measured"]).record()))
    assert record["rows"][0]["ratio"][FLOAT] == pytest.approx({"single": 4.0, "batch": 3.0})
    assert record["rows"][0]["speeds"][TORCH]["p99"] == 8e-3
    assert record["skipped"] == ["flair was not measured"]


def test_the_models_are_those_that_users_have() -> None:
    assert {case.name for case in prediction.cases()} == {"tagger", "tagger, CRF", "classifier"}
    assert all(case.hidden == 256 for case in prediction.cases())
    model = PredictionCase("tag", crf=True, hidden=12).model()
    assert isinstance(model, TagModel)
    assert model.network.characters is not None and model.network.crf is not None
