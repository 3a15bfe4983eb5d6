"""Every decoder with every attention against its equations, written out for one source and one token at a time."""

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from elman.nn import Attention, Decoder, DotAttention, Recurrent, TranslationNetwork
from tests.nn.translators import COMBINATIONS, DECODERS, TUTORIAL, batch, network

CLOSE = {"rtol": 1e-10, "atol": 1e-12}

SCORES: dict[str, Callable[[Attention, Tensor, Tensor, int], Tensor]] = {
    "dot": lambda a, q, m, j: q @ m,
    "scaled-dot": lambda a, q, m, j: q @ m / len(m) ** 0.5,
    "general": lambda a, q, m, j: q @ a.W.weight @ m,
    "reduced-rank": lambda a, q, m, j: (a.U.weight @ q) @ (a.V.weight @ m),
    "additive": lambda a, q, m, j: a.v.weight[0] @ torch.tanh(a.W.weight @ q + a.U.weight @ m + a.U.bias),
    "cosine": lambda a, q, m, j: a.log_beta.exp() * (q @ m) / (q.norm() * m.norm()),
    "plain-cosine": lambda a, q, m, j: (q @ m) / (q.norm() * m.norm()),
    "location": lambda a, q, m, j: a.w.weight[j] @ q,
    "fixed-length": lambda a, q, m, j: a.w.weight[j] @ q + a.w.bias[j],
}
"""The score of place j of the memory, m, for a query q."""


def context(attention: Attention, name: str, query: Tensor, states: Tensor) -> Tensor:
    """c = Σ_j a_j m_j with a_j = exp(e_j) / Σ_k exp(e_k), of states S x M."""
    e = torch.stack([SCORES[name](attention, query, m, j) for j, m in enumerate(states)]).exp()
    return sum((e_j / e.sum() * m for e_j, m in zip(e, states, strict=True)), torch.zeros_like(states[0]))


def cell(layer: nn.RNNBase, x: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """One step of an LSTM or a GRU, by the letters of `torch.nn`'s documentation."""
    h = state[0]
    of_x = (layer.weight_ih_l0 @ x + layer.bias_ih_l0).view(-1, len(h))
    of_h = (layer.weight_hh_l0 @ h + layer.bias_hh_l0).view(-1, len(h))
    if layer.mode == "GRU":
        r, z = torch.sigmoid(of_x[:2] + of_h[:2])
        return ((1 - z) * torch.tanh(of_x[2] + r * of_h[2]) + z * h,)
    i, f, g, o = of_x + of_h
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def stack(body: Recurrent, x: Tensor, states: list[tuple[Tensor, ...]]) -> tuple[Tensor, list[tuple[Tensor, ...]]]:
    """One step of all layers, with their connections."""
    below, after = x, []
    for depth, (layer, state) in enumerate(zip(body.layers, states, strict=True)):
        after.append(cell(layer, below, state))
        output = after[-1][0]
        if body.connections == "residual" and len(output) == len(below):
            output = output + below
        if depth + 1 < len(body.layers):
            below = torch.cat((below, output)) if body.connections == "dense" else output
    return output, after


def by_equations(net: TranslationNetwork, name: str, source: Tensor, inputs: Tensor) -> Iterator[Tensor]:
    """The readout after each token of one target, of one source."""
    decoder = net.decoder
    memory, hidden = net.encode(source.unsqueeze(0), torch.tensor([len(source)]))
    m, attention = memory.states[0], decoder.attention
    states = [tuple(part[depth, 0] for part in hidden) for depth in range(len(decoder.body.layers))]
    r = torch.zeros(decoder.output_size, dtype=m.dtype)
    for x in net.target(inputs):
        if decoder.kind.startswith("tutorial"):
            c, s = torch.zeros(0, dtype=m.dtype), states[-1][0]
            if attention is not None:
                c = context(attention, name, torch.cat((x, s)) if name == "fixed-length" else s, m)
                x = decoder.combine.weight @ torch.cat((x, c)) + decoder.combine.bias
            s, states = stack(decoder.body, torch.clamp(x, min=0), states)
            yield s
            continue
        if decoder.kind == "plain":
            s, states = stack(decoder.body, x, states)
            parts = [s]
        elif decoder.kind == "bahdanau":
            assert attention is not None
            s = states[-1][0]
            c = context(attention, name, torch.cat((x, s)) if name == "fixed-length" else s, m)
            s, states = stack(decoder.body, torch.cat((x, c)), states)
            parts = [s, c, x]
        else:
            assert attention is not None
            s, states = stack(decoder.body, torch.cat((x, r)) if decoder.kind == "luong-feeding" else x, states)
            parts = [s, context(attention, name, s, m)]
        r = torch.tanh(decoder.to_readout.weight @ torch.cat(parts) + decoder.to_readout.bias)
        yield r


def expected(net: TranslationNetwork, name: str) -> Tensor:
    """The readouts of the whole batch by the equations, packed (N x O)."""
    given, starts = batch(), [0]
    starts += batch().batch_sizes.cumsum(0).tolist()
    readouts: dict[int, Tensor] = {}
    for row, length in enumerate(given.lengths.tolist()):
        rows = [start + row for start, size in zip(starts, given.batch_sizes.tolist(), strict=False) if row < size]
        found = by_equations(net, name, given.source[row, :length], given.inputs[rows])
        readouts |= dict(zip(rows, found, strict=True))
    return torch.stack([readouts[row] for row in range(len(readouts))])


def known(net: TranslationNetwork) -> Tensor:
    given = batch()
    return net.readouts(given.source, given.lengths, given.inputs, given.batch_sizes)


def unrolled(net: TranslationNetwork) -> Tensor:
    given = batch()
    memory, hidden = net.encode(given.source, given.lengths)
    return net._step_by_step(memory, hidden, given.inputs, given.batch_sizes, forcing=1)


@pytest.mark.parametrize("cell", ["lstm", "gru"])
@pytest.mark.parametrize(("decoder", "attention"), [*COMBINATIONS, *TUTORIAL])
def test_readouts_are_those_of_the_equations(decoder: str, attention: str, cell: str) -> None:
    net = network(decoder, attention, layers=2, cell=cell)
    right = expected(net, attention)
    torch.testing.assert_close(known(net), right, **CLOSE)
    torch.testing.assert_close(unrolled(net), right, **CLOSE)
    assert net.decoder.at_once == (decoder in ("plain", "luong", "tutorial"))


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(("decoder", "attention"), [*COMBINATIONS, *TUTORIAL])
def test_a_step_as_decoding_takes_it(decoder: str, attention: str, grad: bool) -> None:
    net, given = network(decoder, attention), batch()
    right = net.softmax.logits(expected(net, attention))
    with torch.set_grad_enabled(grad):
        memory, hidden = net.encode(given.source, given.lengths)
        state, row = net.decoder.begin(hidden), 0
        for ids in torch.split(given.inputs, given.batch_sizes.tolist()):
            state = state.select(torch.arange(len(ids)))
            logits, state = net.step(ids, state, memory.select(slice(len(ids))))
            torch.testing.assert_close(logits, right[row : row + len(ids)], **CLOSE)
            row += len(ids)
            assert (state.fed is not None) == (decoder == "luong-feeding")
            assert (state.weights is not None) == (decoder not in ("plain", "tutorial"))


@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
@pytest.mark.parametrize("decoder", DECODERS)
def test_deep_networks_with_connections(decoder: str, connections: str) -> None:
    net = network(decoder, connections=connections, layers=3, embedding=8)
    right = expected(net, "general")
    torch.testing.assert_close(known(net), right, **CLOSE)
    torch.testing.assert_close(unrolled(net), right, **CLOSE)


def test_gradients_reach_everything_through_both_paths() -> None:
    for decoder, attention in [*COMBINATIONS, *TUTORIAL]:
        net, given = network(decoder, attention), batch()
        net.train()
        for hidden in (known(net), unrolled(net)):
            net.zero_grad()
            net.softmax.loss(hidden, given.targets).backward()
            without = [name for name, p in net.named_parameters() if p.grad is None or not p.grad.abs().sum()]
            assert not without, (decoder, attention, without)


def test_kind_and_attention_must_agree() -> None:
    with pytest.raises(ValueError, match="plain decoder has no attention"):
        Decoder("plain", "gru", 3, 4, 4, 6, attention=DotAttention(4, 4))
    with pytest.raises(ValueError, match="luong decoder needs an attention"):
        Decoder("luong", "gru", 3, 4, 4, 6)
    with pytest.raises(ValueError, match="tutorial decoder has no attention"):
        Decoder("tutorial", "gru", 3, 4, 4, 4, attention=DotAttention(4, 4))
    with pytest.raises(ValueError, match="is its state, of 4, not 6"):
        Decoder("tutorial", "gru", 3, 4, 4, 6)


def test_all_steps_keeps_the_order_of_the_packing() -> None:
    net, given = network("luong", "additive"), batch()
    memory, hidden = net.encode(given.source, given.lengths)
    inputs = PackedSequence(net.target(given.inputs), given.batch_sizes)
    readouts = net.decoder.all_steps(inputs, hidden, memory)
    alone = net.decoder.all_steps(
        PackedSequence(net.target(given.inputs[:1]), torch.tensor([1])),
        tuple(part[:, :1] for part in hidden),
        memory.select(slice(1)),
    )
    torch.testing.assert_close(readouts[:1], alone, **CLOSE)
