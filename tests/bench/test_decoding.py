"""That everyone who is compared is the same network, and what is reported of them."""

import json

import numpy as np
import pytest
import torch

from elman import kernels
from elman.bench import decoding, machine
from elman.bench.course import CourseTranslator
from elman.bench.decoding import COURSE, JOEY, OURS, SAME, DecodingCase, DecodingReport, DecodingRow
from elman.bench.translators import EOS, Elman, IdPairs, Sizes
from elman.errors import RunError

compiled = pytest.mark.skipif(not kernels.available(), reason="the compiled kernels are not installed")
TINY = Sizes(vocabulary=50, embedding=6, hidden=8)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "SIZES", TINY)
    monkeypatch.setattr(decoding, "LENGTH", 4)
    monkeypatch.setattr(decoding, "TRAINED", 3)
    monkeypatch.setattr(machine, "PRODUCT_SIZE", 64)
    monkeypatch.setattr(machine, "SETTLE", 0.0)


@pytest.mark.parametrize("beam", [1, 3])
def test_the_course_finds_what_elman_finds(beam: int) -> None:
    network, pairs = TINY.network("luong-feeding"), IdPairs.of(4, TINY.vocabulary)
    ours = Elman(network).translate(pairs, beam, length=6)
    theirs = CourseTranslator(TINY, network).translate(pairs, beam, length=6)
    assert [ids[:5] for ids in ours] == [ids[:5] for ids in theirs]  # the sixth may be an end in ours
    assert all(EOS not in ids[:5] for ids in ours)


def test_training_lowers_the_same_loss() -> None:
    network, pairs = TINY.network("luong-feeding"), IdPairs.of(3, TINY.vocabulary)
    theirs = CourseTranslator(TINY, network).learning(pairs)
    ours = Elman(network).learning(pairs)
    losses = [(ours(), theirs()) for _ in range(3)]
    for own, other in losses:
        assert own == pytest.approx(other, abs=1e-3)
    assert losses[2][0] < losses[0][0]


def test_joeynmt_is_the_same_network() -> None:
    pytest.importorskip("joeynmt.search")
    from elman.bench.joey import Joey

    network, pairs = TINY.network("luong-feeding"), IdPairs.of(4, TINY.vocabulary)
    joey = Joey(TINY, network)
    assert joey.learning(pairs)() == pytest.approx(CourseTranslator(TINY, network).learning(pairs)(), abs=1e-3)
    assert [len(ids) for ids in joey.translate(pairs, beam=2, length=5)] == [5] * 4


def test_operations_of_a_step() -> None:
    pairs = IdPairs([np.zeros(5, dtype=np.int64)], [np.zeros(3, dtype=np.int64)])  # S = 5, T = 4
    E, H, V = 6, 8, 50
    encoder, keys = 5 * 2 * 3 * H * (E + H), 5 * 2 * H * H
    decoder = 4 * (3 * H * (E + H) + H * H + 3 * H * H + H * V)
    assert TINY.flops("luong", pairs) == 6 * (encoder + keys + decoder + 5 * 4 * 3 * H)
    assert TINY.flops("luong-feeding", pairs) - TINY.flops("luong", pairs) == 6 * 4 * 3 * H * H


def test_pairs_are_the_same_in_every_run() -> None:
    pairs = IdPairs.of(64, 8000)
    assert all(np.array_equal(a, b) for a, b in zip(pairs.sources, IdPairs.of(64, 8000).sources, strict=True))
    assert list(pairs.lengths) == sorted(pairs.lengths, reverse=True)
    assert [len(part.sources) for part in pairs.batches(40)] == [40, 24]


def test_ratios_are_against_one_sentence_at_a_time() -> None:
    alone = DecodingRow(DecodingCase("translating", 5, 1), {JOEY: 2.0, COURSE: 1.0, **dict.fromkeys(OURS, 10.0)}, {})
    many = DecodingRow(DecodingCase("translating", 5, 64), {JOEY: 10.0, **dict.fromkeys(OURS, 40.0)}, {})
    training = DecodingRow(DecodingCase("training", 1, 80), dict.fromkeys(OURS, 5.0), {SAME: 30.0})
    rows = DecodingReport({}, 60.0, [alone, many, training], []).record()["rows"]
    assert rows[0]["ratio"][SAME][JOEY] == 5.0
    assert rows[1]["ratio"][SAME] == {JOEY: 4.0, "course loop one by one": 40.0}
    assert rows[2]["of_peak"] == {SAME: 0.5}


@compiled
def test_a_report_is_whole() -> None:
    record = json.loads(json.dumps(decoding.run(seconds=0.0, threads=1).record()))
    assert [(row["work"], row["beam"], row["batch"]) for row in record["rows"]] == [
        ("translating", 1, 1),
        ("translating", 1, 64),
        ("translating", 5, 1),
        ("translating", 5, 64),
        ("training", 1, 3),
    ]
    for row in record["rows"]:
        assert set(OURS) <= set(row["per_second"])
        assert (JOEY in row["per_second"]) == (not record["skipped"])
        assert (COURSE in row["per_second"]) == (row["batch"] != 64)
        assert min(row["per_second"].values()) > 0
    assert record["rows"][-1]["of_peak"][SAME] > 0


@compiled
def test_networks_that_differ_are_not_compared() -> None:
    peers = decoding.peers_here()
    course = peers[COURSE]
    assert isinstance(course, CourseTranslator)
    with torch.no_grad():
        course.softmax.weight.mul_(3)
    with pytest.raises(RunError, match="course loop"):
        decoding.check(peers)
