"""The compiled encoder says what the layers say, for every cell, depth, direction, connection and pooling."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

from elman import kernels
from elman.errors import UserError
from elman.nn.features import CharacterEncoder
from elman.nn.pooling import POOLINGS
from elman.nn.recurrent import Recurrent
from elman.nn.towers import Towers
from elman.runtime import CompiledCharacters, Encoder, Layers, encoder, encoder_refusal, quantise
from elman.runtime.quantise import dequantise
from elman.runtime.weights import arrays_of

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

CLOSE = 2e-6  # of outputs of about 1


class Network(nn.Module):
    """An embedding, layers, a pooling and an output layer, as tasks have them."""

    def __init__(
        self, cell: str = "lstm", hidden: int = 13, inputs: int = 7, pooling: str = "", **options: object
    ) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(30, inputs)
        self.body = Recurrent(cell, inputs, hidden, **options)  # type: ignore[arg-type]
        self.pooling = POOLINGS[pooling](self.body) if pooling else None
        self.output = nn.Linear(self.pooling.output_size if self.pooling else self.body.output_size, 5)

    @torch.no_grad()
    def expected(self, texts: Sequence[torch.Tensor]) -> np.ndarray:
        steps, state = self.body(pack_sequence(list(texts), enforce_sorted=False))
        assert isinstance(steps, PackedSequence)
        if self.pooling is not None:
            return self.output(self.pooling(steps, state)).numpy()
        padded, lengths = pad_packed_sequence(steps, batch_first=True)
        return self.output(torch.cat([row[:length] for row, length in zip(padded, lengths, strict=True)])).numpy()

    def encoder(self, **options: object) -> Encoder:
        return Encoder.of(self, self.body, pooling=self.pooling, output=self.output, **options)  # type: ignore[arg-type]


def texts_of(lengths: Sequence[int], inputs: int, seed: int = 1) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(length, inputs, generator=generator) for length in lengths]


def assert_same(network: Network, lengths: Sequence[int], **options: object) -> None:
    texts = texts_of(lengths, network.body.input_size)
    found = network.encoder(**options)(torch.cat(texts).numpy(), lengths)
    np.testing.assert_allclose(found, network.expected(texts), atol=CLOSE, rtol=1e-5)


@pytest.mark.parametrize("cell,nonlinearity", [("rnn", "tanh"), ("rnn", "relu"), ("lstm", "tanh"), ("gru", "tanh")])
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 3])
def test_every_cell_and_pooling(cell: str, nonlinearity: str, bidirectional: bool, layers: int) -> None:
    for pooling in ("", *POOLINGS):
        network = Network(
            cell, pooling=pooling, num_layers=layers, bidirectional=bidirectional, nonlinearity=nonlinearity
        )
        assert_same(network, [4, 1, 9, 4])


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_nan_at_any_step_is_not_lost(pooling: str, place: int) -> None:
    network = Network("rnn", pooling=pooling, nonlinearity="relu", bidirectional=True)
    texts = texts_of([3, 3], network.body.input_size)
    texts[0][place] = torch.nan
    found = network.encoder()(torch.cat(texts).numpy(), [3, 3])
    np.testing.assert_allclose(found, network.expected(texts), atol=CLOSE, rtol=1e-5)
    assert np.isnan(found[0]).all() and np.isfinite(found[1]).all()


@pytest.mark.parametrize("connections", ["residual", "dense"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_connections(connections: str, bidirectional: bool) -> None:
    width = 26 if bidirectional else 13
    for inputs, pooling in product((7, width), ("", "last", "max", "last-max-mean")):
        network = Network(
            "gru", 13, inputs, pooling, num_layers=2, bidirectional=bidirectional, connections=connections
        )
        assert_same(network, [3, 6, 1])


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=80),
    cell=st.sampled_from(["rnn", "lstm", "gru"]),
    layers=st.integers(1, 3),
    bidirectional=st.booleans(),
    connections=st.sampled_from(["plain", "residual", "dense"]),
    merge=st.sampled_from(["concat", "mean"]),
    threads=st.integers(1, 3),
)
def test_the_final_states_are_those_of_the_layers(
    lengths: list[int], cell: str, layers: int, bidirectional: bool, connections: str, merge: str, threads: int
) -> None:
    options = {"num_layers": layers, "bidirectional": bidirectional, "connections": connections, "merge": merge}
    network = Network(cell, 13, 13, **options)  # residual connections add the input where its size is that of h
    texts = texts_of(lengths, 13)
    found, final = network.encoder(threads=threads).with_final(torch.cat(texts).numpy(), lengths)
    np.testing.assert_allclose(found, network.expected(texts), atol=CLOSE, rtol=1e-5)
    with torch.no_grad():
        _, state = network.body(pack_sequence(texts, enforce_sorted=False))
    expected = state if isinstance(state, tuple) else (state,)
    assert len(final) == len(expected)
    for part, right in zip(final, expected, strict=True):
        np.testing.assert_allclose(part, right.numpy(), atol=CLOSE, rtol=1e-5)


@pytest.mark.parametrize("lengths", [[3, -1], [2**40], [2**62, 2**62], [[2]], [], 2, [1], "ab"])
@pytest.mark.parametrize("inputs", [np.zeros((2, 5), np.float32), np.zeros(2, np.float32)])
def test_wrong_lengths_are_refused_in_a_sentence(lengths: object, inputs: object) -> None:
    networks: list[nn.Module] = [Towers([Recurrent("lstm", 5, 5)], "backward"), Recurrent("lstm", 5, 5, proj_size=2)]
    for body in (*networks, Recurrent("lstm", 5, 5)):
        network = nn.ModuleDict({"body": body})
        compiled = Encoder(Layers.of(body, "body"), arrays_of(network))  # type: ignore[arg-type]
        with pytest.raises(UserError, match=r"length|step|vectors|texts"):
            compiled.with_final(inputs, lengths)  # type: ignore[arg-type]


@pytest.mark.parametrize("reads", ["embedding", "one_hot"])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_the_final_states_of_towers_that_read_ids(reads: str, direction: str, cell: str) -> None:
    torch.manual_seed(0)
    lengths, ids = [4, 1, 6], torch.randint(0, 9, (11,))
    towers = [Recurrent(cell, 9, 5, num_layers=2) for _ in range(2 if direction == "both" else 1)]
    network = nn.ModuleDict({"embedding": nn.Embedding(9, 9), "body": Towers(towers, direction)})  # type: ignore[arg-type]
    if reads == "one_hot":
        with torch.no_grad():
            network["embedding"].weight.copy_(torch.eye(9))
    layers = Layers.of(network["body"], "body")
    read = {"embedding": "embedding"} if reads == "embedding" else {"one_hot": True}
    compiled = Encoder(layers, arrays_of(network), **read)
    found, final = compiled.with_final(ids.numpy(), lengths)
    texts = pack_sequence(list(network["embedding"](ids).split(lengths)), enforce_sorted=False)
    with torch.no_grad():
        _, state = network["body"](texts)
    for part, right in zip(final, state if isinstance(state, tuple) else (state,), strict=True):
        np.testing.assert_allclose(part, right.detach().numpy(), atol=CLOSE, rtol=1e-5)
    np.testing.assert_array_equal(found, compiled(ids.numpy(), lengths))


@settings(max_examples=25, deadline=None)
@given(
    lengths=st.lists(st.integers(1, 12), min_size=1, max_size=120),
    hidden=st.integers(1, 40),
    threads=st.integers(1, 3),
    pooling=st.sampled_from(["", *POOLINGS]),
)
def test_texts_of_any_length_and_number(lengths: list[int], hidden: int, threads: int, pooling: str) -> None:
    assert_same(Network("lstm", hidden, 6, pooling, bidirectional=True), lengths, threads=threads)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("lengths", [[25], [25, 1, 8], [7] * 9, [3, 30] * 60])
def test_threads_share_the_work(threads: int, lengths: list[int]) -> None:
    """Large enough for several threads: teams that share units, and texts that are dealt out."""
    network = Network("lstm", 96, 64, "attention", num_layers=2, bidirectional=True)
    assert_same(network, lengths, threads=threads)
    assert_same(Network("gru", 130, 64), lengths, threads=threads)


@pytest.mark.parametrize("name", kernels.instruction_sets())
def test_every_instruction_set(name: str) -> None:
    best = kernels.instruction_set()
    kernels.use(name)
    try:
        assert_same(Network("lstm", 21, 9, "mean", num_layers=2, bidirectional=True), [5, 1, 12])
        assert_same(Network("gru", 21, 9), [5, 1, 12])
    finally:
        kernels.use(best or name)


@pytest.mark.parametrize("table", [True, False])
@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
def test_ids_of_an_embedding(table: bool, connections: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if not table:
        monkeypatch.setattr(encoder, "TABLE_BYTES", 0)
    network = Network("lstm", 13, 26, "last", bidirectional=True, connections=connections)
    ids = torch.tensor([3, 29, 0, 3, 7])
    found = network.encoder(embedding=network.embedding)(ids.numpy(), [4, 1])
    vectors = network.embedding(ids).detach()
    np.testing.assert_allclose(found, network.expected([vectors[:4], vectors[4:]]), atol=CLOSE)
    for wrong in ([3, 30], [-31, 3], [-1, 3], [1.5, 3], [2**32 + 1, 3]):
        with pytest.raises(UserError):
            network.encoder(embedding=network.embedding)(np.array(wrong), [2])


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
def test_int8_is_close_to_the_rounded_weights(cell: str) -> None:
    network = Network(cell, 40, 24, "attention", num_layers=2, bidirectional=True)
    arrays = quantise(arrays_of(network))
    texts = texts_of([8, 3, 1], 24)
    found = network.encoder(arrays=arrays)(torch.cat(texts).numpy(), [8, 3, 1])
    network.load_state_dict({name: torch.from_numpy(array) for name, array in dequantise(arrays).items()})
    expected = network.expected(texts)
    assert not np.array_equal(found, expected)  # what is multiplied is rounded too
    np.testing.assert_allclose(found, expected, atol=0.03)


def test_int8_says_the_same_whatever_stands_beside_a_text() -> None:
    network = Network("lstm", 40, 24, "max", bidirectional=True)
    arrays = quantise(arrays_of(network))
    texts, lengths = texts_of([5, 9, 2, 9, 1], 24), [5, 9, 2, 9, 1]
    compiled = network.encoder(arrays=arrays)
    together = compiled(torch.cat(texts).numpy(), lengths)
    alone = [compiled(text.numpy(), [length]) for text, length in zip(texts, lengths, strict=True)]
    assert np.array_equal(together, np.concatenate(alone))


def test_several_threads_of_a_program_may_use_one() -> None:
    network = Network("lstm", 64, 32, bidirectional=True)
    compiled = network.encoder(threads=2)
    works = [
        ([length] * (1 + length % 3), texts_of([length] * (1 + length % 3), 32, length)) for length in range(1, 25)
    ]

    def work(place: int) -> np.ndarray:
        lengths, texts = works[place % len(works)]
        return compiled(torch.cat(texts).numpy(), lengths)

    expected = [work(place) for place in range(len(works))]
    with ThreadPoolExecutor(4) as pool:
        for place, found in enumerate(pool.map(work, range(200))):
            np.testing.assert_allclose(found, expected[place % len(works)], atol=CLOSE)


def test_characters_of_words() -> None:
    torch.manual_seed(0)
    characters = CharacterEncoder(30, 4, 5).eval()
    spelled, lengths = torch.randint(30, (40, 9)), torch.randint(1, 10, (40,))
    with torch.no_grad():
        expected = characters(spelled, lengths, torch.arange(40))
    compiled = CompiledCharacters("", arrays_of(characters), Layers.of(characters.body, "body"))
    found = compiled(spelled.numpy(), lengths.numpy())
    np.testing.assert_allclose(found, expected.numpy(), atol=CLOSE)


@pytest.mark.parametrize(
    "body,reason",
    [
        (Recurrent("mut2", 3, 5), "cell is mut2"),
        (Recurrent("gru-cho", 3, 5), "cell is gru-cho"),
        (Recurrent("gru", 3, 5).double(), "float64"),
    ],
)
def test_what_it_cannot_run_is_said_in_a_sentence(body: Recurrent, reason: str) -> None:
    assert reason in (encoder_refusal(body) or "")
    with pytest.raises(UserError, match=reason):
        Encoder.of(nn.ModuleDict({"body": body}), body)


@pytest.mark.parametrize("pooling", ["", *POOLINGS])
@pytest.mark.parametrize(
    "cell,options",
    [
        ("rnn", {"nonlinearity": "logistic", "bidirectional": True, "num_layers": 2}),
        ("rnn", {"nonlinearity": "identity", "num_layers": 2}),
        ("lstm", {"proj_size": 5, "num_layers": 2, "bidirectional": True, "connections": "residual"}),
        ("gru", {"merge": "mean", "num_layers": 2, "bidirectional": True, "connections": "dense"}),
        ("lstm", {"learned_state": True, "bidirectional": True}),
    ],
)
def test_nonlinearities_projections_means_and_learned_states(
    cell: str, options: dict[str, object], pooling: str
) -> None:
    network = Network(cell, pooling=pooling, **options)
    with torch.no_grad():
        for part in network.body.initial:
            part.normal_()
    assert_same(network, [5, 1, 9, 3])
    assert_same(network, [4])


@pytest.mark.parametrize("options", [{}, {"connections": "dense", "num_layers": 2}, {"learned_state": True}])
def test_one_hot_ids_are_rows_of_the_first_matrix(options: dict[str, object]) -> None:
    network = Network("gru", 6, 7, pooling="max", **options)
    ids, lengths = np.array([3, 0, 6, 1, 1]), [2, 3]
    layers, arrays = Layers.of(network.body, "body"), arrays_of(network)
    asked = {"pooling": "max", "output": "output"}
    by_vectors = Encoder(layers, arrays, **asked)(np.eye(7, dtype=np.float32)[ids], lengths)  # type: ignore[arg-type]
    by_ids = Encoder(layers, arrays, one_hot=True, **asked)  # type: ignore[arg-type]
    np.testing.assert_allclose(by_ids(ids, lengths), by_vectors, atol=CLOSE)
    with pytest.raises(UserError, match="0 to 6"):
        by_ids(np.array([7]), [1])


def test_wrong_input_to_layers_that_are_not_packed_is_told() -> None:
    compiled = Network("gru", 6, 4, learned_state=True).encoder()
    vectors = np.zeros((5, 4), np.float32)
    for read, lengths in ((vectors, [6]), (vectors, [5, 0]), (vectors, []), (vectors[:, :3], [5]), (vectors[0], [1])):
        with pytest.raises(UserError):
            compiled(read, lengths)


def test_wrong_input_is_told_and_never_read() -> None:
    compiled = Network("gru", 6, 4).encoder()
    vectors = np.zeros((5, 4), np.float32)
    wrong = ((vectors, [6]), (vectors, [5, 0]), (vectors, []), (vectors[:, :3], [5]), (vectors[0], [1]))
    wrong += (
        (vectors, [2.5, 2.5]),
        (vectors, None),
        (vectors, [[5]]),
        (None, [5]),
        ("text", [5]),
        (vectors, [2**32 + 5]),
    )
    for inputs, lengths in wrong:
        with pytest.raises(UserError):
            compiled(inputs, lengths)
    assert compiled(vectors, [2, 3]).shape == (5, 5)


# Words


@pytest.mark.parametrize("quantised", [False, True])
@pytest.mark.parametrize(
    "options",
    [
        {"cell": "lstm", "bidirectional": True},
        {"cell": "gru", "num_layers": 2, "pooling": "last-max-mean"},
        {"cell": "rnn", "num_layers": 2, "connections": "residual"},
        {"cell": "lstm", "inputs": 26, "num_layers": 2, "bidirectional": True, "connections": "residual"},
        {"cell": "gru", "num_layers": 2, "connections": "dense"},
        {"cell": "lstm", "proj_size": 5},
    ],
    ids=str,
)
def test_words_are_read_as_their_vectors_are(options: dict, quantised: bool) -> None:
    network = Network(**options)
    arrays = quantise(arrays_of(network)) if quantised else arrays_of(network)
    body = Layers.of(network.body, "body")
    rest = {"pooling": options.get("pooling"), "output": "output"}
    table = np.random.default_rng(0).normal(size=(300, body.input_size)).astype(np.float32)
    made: list[str] = []

    def make(words: list[str]) -> np.ndarray:
        made.extend(words)
        return table[[int(word) for word in words]]

    by_words, by_vectors = Encoder(body, arrays, words=make, **rest), Encoder(body, arrays, **rest)
    generator = np.random.default_rng(1)
    for lengths in ([7], [3, 9, 1], [40] * 30):
        ids = generator.integers(0, 300, sum(lengths))
        found = by_words(ids.astype(str), lengths)
        np.testing.assert_array_equal(found, by_vectors(table[ids], lengths))
    assert len(made) == len(set(made)) > 250


@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
def test_ids_are_read_as_their_vectors_are(direction: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoder, "TABLE_BYTES", 0)  # as of many ids
    layers = Layers("body", "lstm", 7, 13, direction=direction)
    generator = np.random.default_rng(0)
    arrays = {name: generator.normal(size=shape).astype(np.float32) for name, shape in layers.shapes().items()}
    arrays["embedding.weight"] = generator.normal(size=(50, 7)).astype(np.float32)
    ids, lengths = generator.integers(0, 50, 23), [5, 11, 7]
    by_ids, by_vectors = Encoder(layers, arrays, embedding="embedding"), Encoder(layers, arrays)
    for _ in range(2):
        found, states = by_ids.with_final(ids, lengths)
        expected, final = by_vectors.with_final(arrays["embedding.weight"][ids], lengths)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(states[1], final[1])
    for wrong in ([50], [-1], [1.0], ["a"]):
        with pytest.raises(UserError, match="the ids"):
            by_ids(np.array(wrong), [1])
    np.testing.assert_array_equal(by_ids(ids, lengths), expected)
