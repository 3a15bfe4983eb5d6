"""The whole network: reading in batches, the bridge, teacher forcing, label smoothing, tied matrices."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from elman.nn.forcing import Forcing, SelfFeeding
from elman.nn.softmax import ChunkedSoftmax
from elman.nn.translation import Bridge
from tests.nn.translators import DECODERS, batch, network

CLOSE = {"rtol": 1e-10, "atol": 1e-12}


@pytest.mark.parametrize("cell", ["lstm", "gru", "rnn", "gru-cho"])
@pytest.mark.parametrize("bidirectional", [True, False])
def test_a_source_is_read_alike_alone_and_among_others(cell: str, bidirectional: bool) -> None:
    net, given = network(cell=cell, bidirectional=bidirectional, layers=2), batch()
    memory, hidden = net.encode(given.source, given.lengths)
    for row, length in enumerate(given.lengths.tolist()):
        alone, state = net.encode(given.source[row : row + 1, :length], torch.tensor([length]))
        torch.testing.assert_close(memory.states[row, :length], alone.states[0], **CLOSE)
        for part, own in zip(hidden, state, strict=True):
            torch.testing.assert_close(part[:, row], own[:, 0], **CLOSE)
        assert memory.padding[row].tolist() == [place >= length for place in range(given.source.shape[1])]


def test_bridges() -> None:
    final = (torch.randn(4, 3, 2), torch.randn(4, 3, 2))  # 2 layers x 2 directions of an LSTM
    shape = {"layers": 2, "directions": 2, "state_sizes": (2, 2), "decoder_layers": 3, "decoder_sizes": (4, 4)}
    copied = Bridge("copy", **shape)(final)
    for part, found in zip(final, copied, strict=True):
        below, top = torch.cat((part[0], part[1]), dim=1), torch.cat((part[2], part[3]), dim=1)
        assert torch.equal(found, torch.stack((below, top, top)))
    assert not any(part.any() for part in Bridge("zero", **shape)(final))
    linear = Bridge("linear", **shape)
    h, c = linear(final)
    maps = linear.maps[0]
    torch.testing.assert_close(h[0], torch.tanh(maps[0](torch.cat((final[0][0], final[0][1]), dim=1))))
    torch.testing.assert_close(c[0], torch.tanh(maps[1](torch.cat((final[1][0], final[1][1]), dim=1))))
    with pytest.raises(ValueError, match="cannot be copied"):
        Bridge("copy", **(shape | {"decoder_sizes": (5, 5)}))


@pytest.mark.parametrize("decoder", DECODERS)
def test_without_teacher_forcing_the_network_reads_what_it_said(decoder: str) -> None:
    net, given = network(decoder), batch()
    free = net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes, forcing=0.0)
    memory, hidden = net.encode(given.source[:1, : given.lengths[0]], given.lengths[:1])
    state, said, starts = net.decoder.begin(hidden), given.inputs[:1], [0, *given.batch_sizes.cumsum(0).tolist()]
    for start in starts[:-1]:  # the first row is there at every step
        logits, state = net.step(said, state, memory)
        torch.testing.assert_close(logits[0], net.softmax.logits(free)[start], **CLOSE)
        said = logits.argmax(dim=1)


def test_teacher_forcing_with_a_probability() -> None:
    net, given = network("luong"), batch()
    ids, before = torch.full((4000,), 3), torch.randn(4000, 6, dtype=torch.double)
    own = net.softmax.logits(before).argmax(dim=1)
    told = SelfFeeding(Forcing(0.7), len(ids))(ids, net._said(before))
    assert set(torch.unique(told[told != 3]).tolist()) <= set(own.tolist())
    different = own != 3
    assert abs(float((told[different] == 3).double().mean()) - 0.7) < 0.05
    always = net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes, forcing=1.0)
    nearly = net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes, forcing=1 - 1e-12)
    torch.testing.assert_close(always, nearly, **CLOSE)


def test_the_attention_weights_of_all_steps() -> None:
    net, given = network("luong-feeding"), batch()
    weights = net.attended(given.source, given.lengths, given.inputs, given.batch_sizes)
    assert weights.shape == (3, len(given.batch_sizes), given.source.shape[1])
    for row, length in enumerate(given.lengths.tolist()):
        steps = int((given.batch_sizes > row).sum())
        torch.testing.assert_close(weights[row, :steps].sum(-1), torch.ones(steps, dtype=torch.double))
        assert not weights[row, :, length:].any()


def test_dropouts_fall_only_while_training() -> None:
    net, given = network(token_dropout=0.5, input_dropout=0.5, output_dropout=0.5), batch()
    arguments = (given.source, given.lengths, given.inputs, given.batch_sizes)
    plain = network().readouts(*arguments)
    assert torch.equal(net.readouts(*arguments), plain)
    net.train()
    assert not torch.equal(net.readouts(*arguments), plain)


def test_tied_matrices_are_one() -> None:
    tied, apart = network(tied="target"), network(tied="none")
    assert tied.softmax.weight is tied.target.weight and tied.source.weight is not tied.target.weight
    assert apart.softmax.weight is not apart.target.weight


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.6])
@pytest.mark.parametrize("chunk", [None, 3])
def test_smoothing_equals_torch_in_value_and_gradients(smoothing: float, chunk: int | None) -> None:
    torch.manual_seed(1)
    softmax = ChunkedSoftmax(5, 11, chunk=chunk, smoothing=smoothing).double()
    with torch.no_grad():
        softmax.bias.normal_()
    hidden, targets = torch.randn(8, 5, dtype=torch.double, requires_grad=True), torch.randint(11, (8,))
    inputs = (hidden, softmax.weight, softmax.bias)
    loss = softmax.loss(hidden, targets)
    expected = cross_entropy(softmax.logits(hidden), targets, label_smoothing=smoothing)
    torch.testing.assert_close(loss, expected, **CLOSE)
    for found, right in zip(torch.autograd.grad(loss, inputs), torch.autograd.grad(expected, inputs), strict=True):
        torch.testing.assert_close(found, right, **CLOSE)
    with torch.no_grad():
        torch.testing.assert_close(softmax.loss(hidden, targets), expected, **CLOSE)


def test_smoothing_is_for_training_only() -> None:
    softmax = ChunkedSoftmax(5, 11, smoothing=0.3).eval()
    hidden, targets = torch.randn(8, 5, requires_grad=True), torch.randint(11, (8,))
    torch.testing.assert_close(softmax.loss(hidden, targets), cross_entropy(softmax.logits(hidden), targets))
    with pytest.raises(ValueError, match="at least 0 and less than 1"):
        ChunkedSoftmax(5, 11, smoothing=1.0)
