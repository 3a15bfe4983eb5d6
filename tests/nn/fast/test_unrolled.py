"""Decoders that learn step by step against the plain step that decoding takes: values, gradients, masks."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad

from elman.nn.decoder import DecoderState, Memory
from elman.nn.fast.unrolled import UnrolledRecurrent
from elman.nn.recurrent import Recurrent
from elman.nn.translation import TranslationNetwork
from tests.nn.translators import COMBINATIONS, DECODERS, batch, network

CELLS = ("lstm", "gru", "rnn", "gru-cho", "mut1")


def plainly(net: TranslationNetwork) -> Tensor:
    """The readouts by `Decoder.step`, as search takes it."""
    given = batch()
    memory, hidden = net.encode(given.source, given.lengths)
    state, said = net.decoder.begin(hidden), []
    for ids in torch.split(given.inputs, given.batch_sizes.tolist()):
        memory, rows = memory.select(slice(len(ids))), torch.arange(len(ids))
        readout, state = net.decoder.step(net.target(ids), DecoderState.select(state, rows), memory)
        said.append(readout)
    return torch.cat(said)


def unrolled(net: TranslationNetwork, forcing: float = 1.0) -> Tensor:
    given = batch()
    memory, hidden = net.encode(given.source, given.lengths)
    return net._step_by_step(memory, hidden, given.inputs, given.batch_sizes, forcing)


def assert_same(net: TranslationNetwork, found: Tensor, right: Tensor, close: dict[str, float]) -> None:
    torch.testing.assert_close(found, right, **close)
    weight = torch.randn_like(right)
    parameters = [p for p in net.parameters() if p is not net.softmax.weight and p is not net.softmax.bias]
    gradients = [torch.autograd.grad((each * weight).sum(), parameters) for each in (found, right)]
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, **close)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("decoder", DECODERS)
def test_every_decoder_with_every_cell(decoder: str, cell: str, dtype: torch.dtype) -> None:
    net = network(decoder, "additive", cell=cell, layers=2).to(dtype)
    close = {"rtol": 1e-4, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-11}
    assert_same(net, unrolled(net), plainly(net), close)
    assert_same(net, unrolled(net, forcing=1 - 1e-12), plainly(net), close)


@pytest.mark.parametrize(("decoder", "attention"), COMBINATIONS)
@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
def test_every_attention_and_connection(decoder: str, attention: str, connections: str) -> None:
    net = network(decoder, attention, connections=connections, layers=3, embedding=8)
    assert_same(net, unrolled(net), plainly(net), {"rtol": 1e-9, "atol": 1e-11})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_residual_where_the_first_layer_has_it(dtype: torch.dtype) -> None:
    """Input and fed part together as long as the state."""
    body = Recurrent("gru", 5, 5, num_layers=2, connections="residual").to(dtype)
    unrolled_body, x = UnrolledRecurrent(body, known=3), torch.randn(6, 2, 5, dtype=dtype)
    state = unrolled_body.begin((torch.zeros(2, 2, 5, dtype=dtype),))
    for step in x:
        output, state = unrolled_body.step(step[:, :3], unrolled_body.project(step[:, :3]), step[:, 3:], state)
    torch.testing.assert_close(output, body(x)[0][-1])


def test_layers_that_go_by_their_equation() -> None:
    for options in ({"proj_size": 3}, {"nonlinearity": "logistic"}, {}):
        cell = {"proj_size": "lstm", "nonlinearity": "rnn"}.get(next(iter(options), ""), "gru")
        body = Recurrent(cell, 5, 4, num_layers=2, **options)
        if not options:
            for layer in body.layers:
                layer.backend = "cells"
        unrolled_body, x = UnrolledRecurrent(body, known=3), torch.randn(6, 2, 5)
        hidden = tuple(torch.zeros(2, 2, size) for size in body.state_sizes)
        state = unrolled_body.begin(hidden)
        for step in x:
            output, state = unrolled_body.step(step[:, :3], unrolled_body.project(step[:, :3]), step[:, 3:], state)
        torch.testing.assert_close(output, body(x)[0][-1])
    with pytest.raises(ValueError, match="two directions"):
        UnrolledRecurrent(Recurrent("gru", 3, 4, bidirectional=True), known=3)


@pytest.mark.parametrize("cell", ["gru", "lstm", "gru-cho"])
def test_one_mask_of_the_recurrent_weights_for_a_whole_sequence(cell: str) -> None:
    body = Recurrent(cell, 1, 16, weight_dropout=0.5).train()
    with torch.no_grad():
        for name, weight in body.named_parameters():
            weight.fill_(0.1 if "weight_hh" in name else 0.0)
    x, hidden = torch.zeros(2, 1), tuple(torch.ones(1, 2, size) for size in body.state_sizes)

    def outputs(own: UnrolledRecurrent, steps: int) -> list[Tensor]:
        """From the same state every time."""
        return [own.step(x, own.project(x), None, own.begin(hidden))[0] for _ in range(steps)]

    first, *others = outputs(UnrolledRecurrent(body, known=1), 8)
    assert all(torch.equal(first, other) for other in others)
    assert not torch.equal(first, outputs(UnrolledRecurrent(body, known=1), 1)[0])


def test_one_locked_mask_between_layers_for_a_whole_sequence() -> None:
    for locked in (True, False):
        body = Recurrent("gru", 3, 16, num_layers=2, dropout=0.5, locked_dropout=locked).train()
        unrolled_body, x = UnrolledRecurrent(body, known=3), torch.ones(2, 3)
        begin = unrolled_body.begin((torch.zeros(2, 2, 16),))
        first, *others = (unrolled_body.step(x, unrolled_body.project(x), None, begin)[0] for _ in range(6))
        assert all(torch.equal(first, other) for other in others) == locked


@pytest.mark.parametrize("decoder", ["bahdanau", "luong-feeding"])
def test_dropouts_while_training(decoder: str) -> None:
    net = network(decoder, "additive", layers=2, dropout=0.3, weight_dropout=0.3, input_dropout=0.3).train()
    for forcing in (1.0, 0.5):
        torch.manual_seed(1)
        found = unrolled(net, forcing)
        torch.manual_seed(1)
        assert torch.equal(found, unrolled(net, forcing))
        assert not torch.equal(found, unrolled(net, forcing))
        found.sum().backward()
        assert all(p.grad is not None for p in net.decoder.parameters())


@pytest.mark.parametrize("attention", ["additive", "general"])
@pytest.mark.parametrize("decoder", ["bahdanau", "luong-feeding"])
def test_second_derivatives(decoder: str, attention: str) -> None:
    """In double precision those of finite steps, in single precision, where there are kernels, the same."""
    double = network(decoder, attention, hidden=4, embedding=3)
    slope, inputs = slope_of_slope(double)
    assert torch.autograd.gradcheck(slope, inputs)
    right = torch.autograd.grad(slope(*inputs), inputs)
    slope, inputs = slope_of_slope(double.float())
    for single, expected in zip(torch.autograd.grad(slope(*inputs), inputs), right, strict=True):
        torch.testing.assert_close(single, expected.float(), atol=1e-4, rtol=1e-3)


def slope_of_slope(net: TranslationNetwork) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """A function whose derivative is a second one, of a memory and of the decoder's weights."""
    given = batch()
    with torch.no_grad():
        memory, hidden = net.encode(given.source, given.lengths)
    weights = (*net.decoder.body.parameters(), *net.decoder.to_readout.parameters())

    def slope(states: Tensor, keys: Tensor, *parameters: Tensor) -> Tensor:
        seen = Memory(states, keys, memory.padding)
        readouts = net._step_by_step(seen, hidden, given.inputs, given.batch_sizes, forcing=1)
        gradients = torch.autograd.grad(readouts.square().sum(), (states, keys, *parameters), create_graph=True)
        return torch.stack([each.square().sum() for each in gradients]).sum()

    return slope, (memory.states.requires_grad_(), memory.keys.requires_grad_(), *weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("decoder", ["bahdanau", "luong-feeding"])
def test_torch_func(decoder: str, dtype: torch.dtype) -> None:
    net, given = network(decoder, "additive").to(dtype), batch()
    arguments = (given.source, given.lengths, given.inputs, given.batch_sizes)
    names, parameters = zip(*net.decoder.named_parameters(prefix="decoder"), strict=True)

    def total(*own: Tensor) -> Tensor:
        return functional_call(
            _Readouts(net), {f"net.{n}": p for n, p in zip(names, own, strict=True)}, arguments
        ).sum()

    found = grad(total, argnums=tuple(range(len(names))))(*parameters)
    right = torch.autograd.grad(net.readouts(*arguments).sum(), parameters)
    for one, other in zip(found, right, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


class _Readouts(nn.Module):
    def __init__(self, net: TranslationNetwork) -> None:
        super().__init__()
        self.net = net

    def forward(self, *arguments: Tensor) -> Tensor:
        return self.net.readouts(*arguments)
