"""The engine against PyTorch: every kind of network, every instruction set of this machine."""

import numpy as np
import pytest

from elman import kernels
from elman.runtime import Engine, refusal
from elman.runtime import language as networks
from tests.runtime.networks import VOCABULARY, instruction_set, make, reference

KINDS = {
    "rnn": {"cell": "rnn"},
    "rnn relu": {"cell": "rnn", "nonlinearity": "relu", "layers": 2, "hidden": 33},
    "lstm": {"cell": "lstm"},
    "lstm wide": {"cell": "lstm", "hidden": 150, "embedding": 0},
    "gru": {"cell": "gru"},
    "gru deep": {"cell": "gru", "layers": 3, "hidden": 37},
    "no bias": {"cell": "gru", "bias": False},
    "projection": {"cell": "lstm", "hidden": 30, "proj_size": 11, "layers": 2},
    "residual": {"cell": "lstm", "layers": 3, "connections": "residual"},
    "residual first": {"cell": "gru", "layers": 2, "connections": "residual", "embedding": 20},
    "residual labels": {"cell": "gru", "layers": 2, "connections": "residual", "embedding": 15, "labels": 3},
    "residual one-hot": {"cell": "rnn", "layers": 2, "connections": "residual", "embedding": 0, "hidden": VOCABULARY},
    "residual projection": {"cell": "lstm", "layers": 2, "connections": "residual", "embedding": 7, "proj_size": 7},
    "dense": {"cell": "lstm", "layers": 3, "connections": "dense"},
    "dense gru": {"cell": "gru", "layers": 3, "connections": "dense", "embedding": 0, "labels": 2},
    "learned state": {"cell": "lstm", "layers": 2, "learned_state": True},
    "learned state gru": {"cell": "gru", "layers": 2, "learned_state": True},
    "labels": {"cell": "lstm", "labels": 4},
    "labels one-hot": {"cell": "lstm", "labels": 4, "embedding": 0},
    "tied": {"cell": "lstm", "tied": True, "embedding": 20},
    "bridge": {"cell": "lstm", "tied": True, "layers": 2},
    "sampled": {"cell": "lstm", "sampled": True},
    "odd sizes": {"cell": "lstm", "hidden": 1, "embedding": 3, "vocabulary": 2},
}


def assert_is_pytorchs(
    options: dict, rows: int, *, tolerance: float = 2e-5, int8: bool = False, threads: int = 1
) -> None:
    """Read a few ids a row step by step and hold every distribution against PyTorch's."""
    network = make(**options)
    vocabulary = network.softmax.vocab_size
    rng = np.random.default_rng(rows)
    ids = rng.integers(0, vocabulary, (rows, 7))
    labels = rng.integers(0, options["labels"], rows) if options.get("labels") else None
    expected = reference(network, ids, labels)  # B x T x V
    engine = Engine.of(network, int8=int8, threads=threads)
    state = engine.start(rows)
    for t in range(ids.shape[1]):
        found, state = engine.step(ids[:, t], state, labels)
        np.testing.assert_allclose(found, expected[:, t], atol=tolerance, rtol=1e-5)


@pytest.mark.parametrize("isa", kernels.instruction_sets())
@pytest.mark.parametrize("kind", KINDS)
def test_distributions_are_pytorchs(kind: str, isa: str) -> None:
    with instruction_set(isa):
        for rows in (1, 2, 5, 50):
            assert_is_pytorchs(KINDS[kind], rows)


@pytest.mark.parametrize("isa", kernels.instruction_sets())
@pytest.mark.parametrize("kind", ["lstm", "dense", "residual first", "residual labels", "labels", "bridge"])
def test_products_in_place_of_tables(kind: str, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "FOLDED_BYTES", 0)
    with instruction_set(isa):
        assert_is_pytorchs(KINDS[kind], 1)
        assert_is_pytorchs(KINDS[kind], 6)


@pytest.mark.parametrize("kind", KINDS)
def test_log_probs_of_targets(kind: str) -> None:
    network = make(**KINDS[kind])
    vocabulary = network.softmax.vocab_size
    rng = np.random.default_rng(0)
    for rows, length in ((1, 75), (3, 40), (40, 5)):
        ids = rng.integers(0, vocabulary, (rows, length + 1))
        labels = rng.integers(0, network.labels.num_embeddings, rows) if network.labels else None
        whole = reference(network, ids[:, :-1], labels)
        expected = np.take_along_axis(whole, ids[:, 1:, None], axis=2)[:, :, 0]
        engine = Engine.of(network)
        found, state = engine.log_probs(ids[:, :-1], ids[:, 1:], labels=labels)
        np.testing.assert_allclose(found, expected, atol=5e-5, rtol=1e-5)
        # In two pieces it is the same text.
        first, middle = engine.log_probs(ids[:, :2], ids[:, 1:3], labels=labels)
        second, end = engine.log_probs(ids[:, 2:-1], ids[:, 3:], middle, labels=labels)
        np.testing.assert_allclose(np.hstack([first, second]), found, atol=1e-6)
        np.testing.assert_allclose(end.numbers, state.numbers, atol=1e-6)


def test_a_tower_is_chosen() -> None:
    network = make("gru", towers=2)
    ids = np.arange(6).reshape(1, 6)
    for tower in (0, 1):
        log_probs, _ = Engine.of(network, tower=tower).step([ids[0, 0]], Engine.of(network, tower=tower).start())
        np.testing.assert_allclose(log_probs, reference(network, ids, tower=tower)[:, 0], atol=2e-5)
    assert refusal(network, 2) is not None


@pytest.mark.parametrize("int8", [False, True])
def test_threads_change_nothing(int8: bool) -> None:
    network = make("lstm", hidden=300, layers=2, embedding=30)
    ids = np.random.default_rng(1).integers(0, VOCABULARY, (1, 60))
    found = [
        Engine.of(network, int8=int8, threads=threads).log_probs(ids[:, :-1], ids[:, 1:])[0] for threads in (1, 2, 3)
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("isa", kernels.instruction_sets())
@pytest.mark.parametrize("kind", KINDS)
def test_int8_is_close(kind: str, isa: str) -> None:
    options = {"sharpness": 1.0} | KINDS[kind]
    with instruction_set(isa):
        for rows in (1, 3, 5):
            assert_is_pytorchs(options, rows, int8=True, tolerance=0.2)
