"""Every decoder with every attention: all steps at once, one by one, and as decoding calls them are the same."""

import pytest
import torch
from torch.nn.utils.rnn import PackedSequence

from elman.nn.attention import DotAttention
from elman.nn.decoder import Decoder
from tests.nn.translators import COMBINATIONS, batch, network

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.mark.parametrize(("decoder", "attention"), COMBINATIONS)
def test_all_at_once_equals_step_by_step(decoder: str, attention: str) -> None:
    net, given = network(decoder, attention, layers=2, cell="lstm"), batch()
    known = net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes)
    memory, hidden = net.encode(given.source, given.lengths)
    stepped = net._step_by_step(memory, hidden, given.inputs, given.batch_sizes, forcing=1)
    torch.testing.assert_close(known, stepped, **CLOSE)
    assert net.decoder.at_once == (decoder in ("plain", "luong"))


@pytest.mark.parametrize(("decoder", "attention"), COMBINATIONS)
def test_step_as_decoding_calls_it(decoder: str, attention: str) -> None:
    """One source at a time, one token at a time, without packing or padding."""
    net, given = network(decoder, attention), batch()
    known = net.softmax.logits(net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes))
    starts = [0, *given.batch_sizes.cumsum(0).tolist()]
    for row in range(len(given.source)):
        length = int(given.lengths[row])
        memory, hidden = net.encode(given.source[row : row + 1, :length], given.lengths[row : row + 1])
        state = net.decoder.begin(hidden)
        for t, size in enumerate(given.batch_sizes.tolist()):
            if row < size:
                logits, state = net.step(given.inputs[starts[t] + row].view(1), state, memory)
                torch.testing.assert_close(logits[0], known[starts[t] + row], **CLOSE)


@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "luong-feeding"])
def test_deep_networks_with_connections(decoder: str, connections: str) -> None:
    net, given = network(decoder, connections=connections, layers=3, embedding=8), batch()
    known = net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes)
    memory, hidden = net.encode(given.source, given.lengths)
    stepped = net._step_by_step(memory, hidden, given.inputs, given.batch_sizes, forcing=1)
    torch.testing.assert_close(known, stepped, **CLOSE)
    assert (
        not torch.equal(
            known,
            network(decoder, layers=3, embedding=8).readouts(
                given.source, given.lengths, given.inputs, given.batch_sizes
            ),
        )
        or connections == "plain"
    )


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "luong-feeding"])
def test_a_step_is_written_from_its_equation(decoder: str) -> None:
    net = network(decoder, "dot")
    part = net.decoder
    states = torch.randn(1, 4, 8, dtype=torch.double)
    memory, _ = net.encode(torch.tensor([[2, 3, 4, 5]]), torch.tensor([4]))
    states = memory.states[0]  # S x M
    x, h = torch.randn(1, 6, dtype=torch.double), torch.randn(1, 1, 8, dtype=torch.double)
    begin = part.begin((h,))
    readout, after = part.step(x, begin, memory)
    if decoder == "bahdanau":
        c = (states @ h[0, 0]).softmax(0) @ states
        s = part.body(torch.cat((x[0], c)).view(1, 1, -1), h)[0][0, 0]
        expected = part.to_readout(torch.cat((s, c, x[0]))).tanh()
    else:
        fed = x if decoder == "luong" else torch.cat((x, torch.zeros(1, part.output_size, dtype=torch.double)), dim=1)
        s = part.body(fed.unsqueeze(0), h)[0][0, 0]
        c = (states @ s).softmax(0) @ states
        expected = part.to_readout(torch.cat((s, c))).tanh()
    torch.testing.assert_close(readout[0], expected, **CLOSE)
    assert (after.fed is not None) == (decoder == "luong-feeding")
    if after.fed is not None:
        assert torch.equal(after.fed, readout)


def test_gradients_reach_everything_through_both_paths() -> None:
    for decoder, attention in COMBINATIONS:
        net, given = network(decoder, attention), batch()
        net.train()
        hidden = net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes)
        net.softmax.loss(hidden, given.targets).backward()
        without = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum()]
        assert not without, (decoder, attention, without)


def test_kind_and_attention_must_agree() -> None:
    with pytest.raises(ValueError, match="plain decoder has no attention"):
        Decoder("plain", "gru", 3, 4, 4, 6, attention=DotAttention(4, 4))
    with pytest.raises(ValueError, match="luong decoder needs an attention"):
        Decoder("luong", "gru", 3, 4, 4, 6)


def test_all_steps_keeps_the_order_of_the_packing() -> None:
    net, given = network("luong", "additive"), batch()
    memory, hidden = net.encode(given.source, given.lengths)
    inputs = PackedSequence(net.target(given.inputs), given.batch_sizes)
    found = net.decoder.all_steps(inputs, hidden, memory)
    alone = net.decoder.all_steps(
        PackedSequence(net.target(given.inputs[:1]), torch.tensor([1])),
        tuple(part[:, :1] for part in hidden),
        memory.select(slice(1)),
    )
    torch.testing.assert_close(found[:1], alone, **CLOSE)
