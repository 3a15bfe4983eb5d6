"""The compiled translator says what the network says, for every cell, depth, connection and size."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elman import kernels
from elman.errors import UserError
from elman.nn.attention import FixedLengthAttention
from elman.nn.translation import TranslationNetwork
from elman.ragged import Ragged
from elman.runtime import CompiledTranslator, dequantise, quantise, translator_refusal
from elman.runtime.weights import arrays_of
from elman.tasks import folder as folders
from tests.nn import translators

pytestmark = pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")

SOURCES, LENGTHS = torch.tensor([[2, 3, 4, 5, 6], [7, 8, 0, 0, 0], [9, 0, 0, 0, 0]]), torch.tensor([5, 2, 1])
READ = Ragged.of([row[:length].numpy() for row, length in zip(SOURCES, LENGTHS, strict=True)])
WRITTEN = torch.tensor([[1, 1, 1], [2, 5, 6], [3, 3, 7], [7, 2, 4]])  # T x B


def network(decoder: str = "luong", attention: str = "general", **options: object) -> TranslationNetwork:
    return translators.network(decoder, attention, **options).float()


@torch.no_grad()
def by_pytorch(net: TranslationNetwork) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The logits of every step (T x B x V), and where the last one looked."""
    memory, hidden = net.encode(SOURCES, LENGTHS)
    state, found = net.decoder.begin(hidden), []
    for ids in WRITTEN:
        logits, state = net.step(ids, state, memory)
        found.append(logits)
    return torch.stack(found), state.weights


def compiled(decoder: CompiledTranslator) -> tuple[torch.Tensor, torch.Tensor]:
    state, found = decoder.read(READ), []
    for ids in WRITTEN.numpy():
        logits, state = decoder.step(ids, state)
        found.append(torch.from_numpy(logits.copy()))
    return torch.stack(found), torch.from_numpy(state.weights)


def assert_same(net: TranslationNetwork, threads: int | None = None) -> None:
    logits, weights = by_pytorch(net)
    found, looked = compiled(CompiledTranslator.of(net, threads=threads))
    torch.testing.assert_close(found, logits, rtol=1e-5, atol=1e-5)
    if weights is not None:
        torch.testing.assert_close(looked, weights, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
@pytest.mark.parametrize("decoder", ["plain", "bahdanau", "luong", "luong-feeding"])
def test_every_cell_and_connection(cell: str, connections: str, decoder: str) -> None:
    for layers in (1, 3):
        for embedding in (6, 8):  # of 8, as many as a layer has units: a residual connection from the token
            sizes = {"cell": cell, "layers": layers, "connections": connections, "embedding": embedding}
            assert_same(network(decoder, "additive", **sizes))


@settings(max_examples=25, deadline=None)
@given(
    hidden=st.integers(1, 40).map(lambda half: 2 * half),
    embedding=st.integers(1, 40),
    threads=st.integers(1, 3),
    combination=st.sampled_from(translators.COMBINATIONS),
)
def test_any_size(hidden: int, embedding: int, threads: int, combination: tuple[str, str]) -> None:
    assert_same(network(*combination, cell="lstm", hidden=hidden, embedding=embedding), threads)


@pytest.mark.parametrize("name", kernels.instruction_sets())
@pytest.mark.parametrize("attention", ["cosine", "additive", "fixed-length"])
def test_every_instruction_set(name: str, attention: str) -> None:
    best = kernels.instruction_set()
    kernels.use(name)
    try:
        assert_same(network("bahdanau", attention, hidden=22))
    finally:
        kernels.use(best or name)


@pytest.mark.parametrize("tied", ["none", "target"])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_work(tied: str, threads: int) -> None:
    """Large enough for several; what each of them computes does not depend on how many there are."""
    net = network("luong-feeding", "additive", hidden=256, embedding=256, tied=tied)
    assert_same(net, threads)
    alone, _ = compiled(CompiledTranslator.of(net, threads=1))
    together, _ = compiled(CompiledTranslator.of(net, threads=threads))
    assert torch.equal(alone, together)


def test_several_threads_of_a_program_use_one_decoder() -> None:
    net = network("bahdanau", "additive", hidden=64)
    decoder = CompiledTranslator.of(net, threads=1)
    right, _ = compiled(decoder)
    with ThreadPoolExecutor(4) as pool:
        for found, _ in pool.map(lambda _: compiled(decoder), range(24)):
            assert torch.equal(found, right)


@pytest.mark.parametrize("combination", translators.COMBINATIONS)
def test_int8_is_close_to_the_rounded_weights(combination: tuple[str, str]) -> None:
    net = network(*combination, hidden=40, embedding=24)
    arrays = quantise(arrays_of(net))
    folders.fill(net, dequantise(arrays))
    logits, _ = by_pytorch(net)
    found, _ = compiled(CompiledTranslator.of(net, arrays=arrays))
    assert not torch.equal(found, logits)
    torch.testing.assert_close(found, logits, rtol=0.05, atol=0.02)


def test_what_it_cannot_run_is_said() -> None:
    assert translator_refusal(network()) is None
    cho = network(cell="gru-cho")
    assert "gru-cho" in str(translator_refusal(cho))
    with pytest.raises(UserError, match="gru-cho"):
        CompiledTranslator.of(cho)
    with pytest.raises(UserError, match="float32"):
        CompiledTranslator.of(network().double())


@torch.no_grad()
def test_wrong_arrays_are_refused_and_never_read() -> None:
    net = network("luong-feeding", "additive")
    decoder = CompiledTranslator.of(net)
    state = decoder.read(READ)
    ids = np.array([1, 2, 3])
    for wrong in ([1, 2, -1], [1, 2, 99], [1, 2]):
        with pytest.raises(ValueError, match=r"ids|state"):
            decoder.step(np.array(wrong), state)
    for odd in (np.array([1.0, 2.0, 3.0]), np.array([1, 2, 2**32 + 3])):
        with pytest.raises((UserError, ValueError), match="ids"):
            decoder.step(odd, state)
    with pytest.raises(UserError, match="threads"):
        CompiledTranslator.of(net, threads=0)
    sources = state.sources
    for changed in (
        state._replace(owners=np.array([0, 1, 3], np.int32)),
        state._replace(owners=np.array([0, 1], np.int32)),
        state._replace(numbers=state.numbers[:, :-1].copy()),
        state._replace(sources=sources._replace(lengths=np.array([6, 1, 1], np.int32))),
        state._replace(sources=sources._replace(lengths=np.array([5, 0, 1], np.int32))),
        state._replace(sources=sources._replace(keys=sources.keys[:, :, :-1].copy())),
        state._replace(sources=sources._replace(states=sources.states[:, :-1].copy())),
    ):
        with pytest.raises(ValueError):
            decoder.step(ids, changed)
    with pytest.raises(ValueError, match="logits"):
        decoder.step(ids, state, decoder.room(2))
    for room in (decoder.room(3).astype(np.float64), decoder.room(6)[::2]):  # whose copy would be written to
        with pytest.raises(TypeError):
            decoder.step(ids, state, room)
    assert decoder.step(ids, state)[0].shape == (3, net.softmax.vocab_size)


@pytest.mark.parametrize("cell", ["rnn", "lstm", "gru"])
@torch.no_grad()
def test_a_row_gone_wrong_leaves_nothing_behind(cell: str) -> None:
    net = network(cell=cell, hidden=6)
    decoder = CompiledTranslator.of(net)
    state = decoder.read(READ)
    ids = np.array([1, 2, 3])
    right = decoder.step(ids, state)[0].copy()
    for _ in range(2):
        wrong, _ = decoder.step(ids, state._replace(numbers=np.full_like(state.numbers, np.nan)))
        assert not np.isfinite(wrong).any()
    assert np.array_equal(decoder.step(ids, state)[0], right)


def test_a_token_that_the_decoder_ignores_is_ignored() -> None:
    net = network("luong", "general")
    net.decoder.attention = FixedLengthAttention(8, 8, longest=4)
    assert_same(net)
    assert translator_refusal(net) is None
