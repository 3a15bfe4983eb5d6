"""The network of a captioner, and what of its decoder translators do not have."""

import pytest
import torch
from torch import nn

from elman.nn.attention import ATTENTIONS
from elman.nn.caption import CaptionNetwork
from elman.nn.decoder import AttentionSums, Decoder
from elman.nn.images import ProjectedPlaces
from elman.nn.softmax import ChunkedSoftmax
from elman.tasks.writer import PairBatch, make_batch, make_grouped_batch

P, C, M, E, H, V = 6, 5, 8, 4, 8, 11


def network(image: str, kind: str = "plain", attention: str = "general", cell: str = "lstm", gate: bool = False):
    """A small one, in double precision."""
    torch.manual_seed(3)
    score = None if kind == "plain" else ATTENTIONS[attention](H, M)
    decoder = Decoder(kind, cell, E, H, M, E, attention=score, num_layers=2, gate=gate)  # type: ignore[arg-type]
    places, words = ProjectedPlaces(P, C, M), nn.Embedding(V, E)
    return CaptionNetwork(image, places, words, decoder, ChunkedSoftmax(E, V)).double().eval()  # type: ignore[arg-type]


def captions() -> tuple[torch.Tensor, list[list[torch.Tensor]]]:
    """Three images, and several captions of each."""
    torch.manual_seed(4)
    several = [[torch.randint(2, V, (length,)) for length in lengths] for lengths in ((3, 5), (2,), (4, 1, 3))]
    return torch.randn(3, P, C, dtype=torch.double), several


def readouts(net: CaptionNetwork, batch: PairBatch, sums: AttentionSums | None = None) -> torch.Tensor:
    return net.readouts(batch.source, batch.lengths, batch.inputs, batch.batch_sizes, sums=sums, owners=batch.owners)


ATTENTIVE = ("bahdanau", "luong", "luong-feeding")
KINDS = [("first", "plain", False), *(("attended", kind, gate) for kind in ATTENTIVE for gate in (False, True))]


@pytest.mark.parametrize(("image", "kind", "gate"), KINDS)
def test_an_image_is_read_once_for_all_its_captions(image: str, kind: str, gate: bool) -> None:
    net, (images, several) = network(image, kind, gate=gate), captions()
    grouped = make_grouped_batch(images.numpy(), [[one.numpy() for one in each] for each in several], 1)
    pairs = [(images[row].numpy(), one.numpy()) for row, each in enumerate(several) for one in each]
    alone = make_batch(pairs, 1)
    assert len(grouped.source) == 3 < len(alone.source) == 6
    assert torch.allclose(readouts(net, grouped), readouts(net, alone), atol=1e-12)


@pytest.mark.parametrize(("image", "kind", "gate"), KINDS)
@pytest.mark.parametrize("cell", ["lstm", "gru", "elman"])
def test_all_steps_at_once_are_those_one_by_one(image: str, kind: str, gate: bool, cell: str) -> None:
    net, (images, several) = network(image, kind, cell=cell, gate=gate), captions()
    batch = make_batch([(images[row].numpy(), each[0].numpy()) for row, each in enumerate(several)], 1)
    sums = None if kind == "plain" else AttentionSums()
    found = readouts(net, batch, sums)
    memory, hidden = net.encode(batch.source, batch.lengths)
    state, steps, seen = net.decoder.begin(hidden), [], torch.zeros(3, P, dtype=torch.double)
    for ids in torch.split(batch.inputs, batch.batch_sizes.tolist()):
        rows = torch.arange(len(ids))
        state, memory = state.select(rows), memory.select(rows)
        readout, state = net.decoder.step(net.target(ids), state, memory)
        steps.append(readout)
        if state.weights is not None:
            seen[: len(ids)] += state.weights
    assert torch.allclose(found, torch.cat(steps), atol=1e-10)
    if sums is not None:
        assert sums.total is not None and torch.allclose(sums.total, seen, atol=1e-10)


def test_a_gate_that_is_shut_lets_nothing_through() -> None:
    net, (images, _) = network("attended", "luong", gate=True), captions()
    with torch.no_grad():
        net.decoder.gate.bias.fill_(-100.0)  # type: ignore[union-attr]
    memory, hidden = net.encode(images, torch.tensor([P] * 3))
    other, _ = net.encode(images.flip(0), torch.tensor([P] * 3))
    state, words = net.decoder.begin(hidden), net.target(torch.tensor([1, 2, 3]))
    one, two = (net.decoder.step(words, state, each)[0] for each in (memory, other))
    assert torch.allclose(one, two, atol=1e-12)


def test_the_first_state_is_that_of_the_mean_place() -> None:
    net, (images, _) = network("attended", "luong"), captions()
    _, hidden = net.encode(images, torch.tensor([P] * 3))
    mean = net.places(images).mean(dim=1)
    first: nn.Linear = net.bridge.maps[1][0]  # type: ignore[union-attr, index, assignment]
    assert torch.allclose(hidden[0][1], torch.tanh(mean @ first.weight.T + first.bias))
    net = network("first")
    _, hidden = net.encode(images, torch.tensor([P] * 3))
    assert net.first is not None
    image = net.first(net.places(images).mean(dim=1))
    _, (h, c) = net.decoder.body(image.unsqueeze(0))
    assert torch.allclose(hidden[0], h) and torch.allclose(hidden[1], c)
