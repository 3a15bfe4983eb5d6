"""`Recurrent`: any cell, stacked; equal to `torch.nn` where that has the same network."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pack_sequence, pad_packed_sequence

from elman.nn import CELLS, Recurrent
from elman.nn.cells import LSTMCell, State

X, H, B, T = 3, 4, 2, 6
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in CELLS},
    "relu": ("rnn", {"nonlinearity": "relu"}),
    "logistic": ("elman", {"nonlinearity": "logistic"}),
    "lstm projected": ("lstm", {"proj_size": 2}),
    "no bias": ("mut2", {"bias": False}),
}


def parts(state: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return (state,) if isinstance(state, Tensor) else state


def twin_of(layer: nn.RNNBase, cell: str, **options: Any) -> Recurrent:
    """A Recurrent with the weights of a layer of PyTorch."""
    ours = Recurrent(cell, X, H, layer.num_layers, bidirectional=layer.bidirectional, **options).to(torch.float64)
    renamed = {}
    for name, value in layer.state_dict().items():
        stem, _, end = name.rpartition("_l")
        depth, _, reverse = end.partition("_")
        renamed[f"layers.{depth}.{stem}_l0" + ("_reverse" if reverse else "")] = value
    ours.load_state_dict(renamed, strict=True)
    return ours


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize(
    ("cell", "name", "options"),
    [
        ("rnn", "RNN", {}),
        ("elman", "RNN", {"nonlinearity": "relu"}),
        ("gru", "GRU", {}),
        ("lstm", "LSTM", {}),
        ("lstm", "LSTM", {"proj_size": 2}),
    ],
)
def test_equals_torch(cell: str, name: str, options: dict[str, Any], num_layers: int, bidirectional: bool) -> None:
    theirs = getattr(nn, name)(X, H, num_layers, bidirectional=bidirectional, dtype=torch.float64, **options)
    ours = twin_of(theirs, cell, **options)
    padded = torch.randn(T, B, X, dtype=torch.float64)
    for input in (padded, padded[:, 0], pack_padded_sequence(padded, [2, T], enforce_sorted=False)):
        expected, expected_state = theirs(input)
        output, state = ours(input)
        if isinstance(output, PackedSequence):
            output, expected = output.data, expected.data
        torch.testing.assert_close(output, expected, atol=1e-12, rtol=0)
        torch.testing.assert_close(parts(state), parts(expected_state), atol=1e-12, rtol=0)
        again = ours(input, expected_state)[1]
        torch.testing.assert_close(parts(again), parts(theirs(input, expected_state)[1]), atol=1e-12, rtol=0)


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("num_layers", [1, 4])
@pytest.mark.parametrize("variant", VARIANTS)
def test_shapes(variant: str, num_layers: int, directions: int) -> None:
    cell, options = VARIANTS[variant]
    sizes = (options.get("proj_size", H), H)[: 2 if cell == "lstm" else 1]
    for batch_first in (False, True):
        layer = Recurrent(cell, X, H, num_layers, bidirectional=directions == 2, batch_first=batch_first, **options)
        assert layer.output_size == sizes[0] * directions
        output, state = layer(torch.randn(B, T, X) if batch_first else torch.randn(T, B, X))
        assert output.shape == ((B, T) if batch_first else (T, B)) + (layer.output_size,)
        assert [part.shape for part in parts(state)] == [(num_layers * directions, B, size) for size in sizes]
        output, state = layer(torch.randn(T, X))
        assert output.shape == (T, layer.output_size)
        assert [part.shape for part in parts(state)] == [(num_layers * directions, size) for size in sizes]


@pytest.mark.parametrize("connections", ["plain", "residual", "dense"])
@pytest.mark.parametrize("merge", ["concat", "mean"])
@pytest.mark.parametrize("cell", ["lstm", "gru-cho", "mut1"])
def test_packed_equals_one_by_one(cell: str, merge: Any, connections: Any) -> None:
    options: dict[str, Any] = {"merge": merge, "connections": connections, "learned_state": True}
    layer = Recurrent(cell, X, H, 2, bidirectional=True, **options)
    for start in layer.initial:
        nn.init.normal_(start)
    sequences = [torch.randn(length, X) for length in (2, 5, 1, 3)]
    output, state = layer(pack_sequence(sequences, enforce_sorted=False))
    padded, lengths = pad_packed_sequence(output)
    for i, sequence in enumerate(sequences):
        alone, alone_state = layer(sequence)
        torch.testing.assert_close(padded[: lengths[i], i], alone, atol=1e-6, rtol=0)
        for part, expected in zip(parts(state), parts(alone_state), strict=True):
            torch.testing.assert_close(part[:, i], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("variant", VARIANTS)
def test_carried_state_goes_on_where_it_stopped(variant: str) -> None:
    cell, options = VARIANTS[variant]
    layer, x = Recurrent(cell, X, H, 2, **options), torch.randn(T, B, X)
    whole, end = layer(x)
    first, state = layer(x[:2])
    second, carried_end = layer(x[2:], state)
    torch.testing.assert_close(torch.cat((first, second)), whole, atol=1e-6, rtol=0)
    torch.testing.assert_close(parts(carried_end), parts(end), atol=1e-6, rtol=0)


def test_residual_adds_the_input_where_sizes_match() -> None:
    x = torch.randn(T, B, X)
    residual = Recurrent("gru", X, H, 2, connections="residual")
    plain = [Recurrent("gru", size, H) for size in (X, H)]
    for depth, layer in enumerate(plain):
        layer.layers[0].load_state_dict(residual.layers[depth].state_dict())
    below = plain[0](x)[0]  # 3 to 4: nothing to add
    torch.testing.assert_close(residual(x)[0], below + plain[1](below)[0])


def test_dense_layers_see_all_below() -> None:
    x = torch.randn(T, B, X)
    dense = Recurrent("lstm", X, H, 3, connections="dense")
    assert [layer.input_size for layer in dense.layers] == [X, X + H, X + 2 * H]
    below = x
    for layer in dense.layers:
        output = layer(below)[0]
        below = torch.cat((below, output), dim=-1)
    torch.testing.assert_close(dense(x)[0], output)
    assert dense.output_size == H


@pytest.mark.parametrize("cell", ["gru", "mut3"])
def test_mean_merge_is_the_mean_of_the_directions(cell: str) -> None:
    mean = Recurrent(cell, X, H, bidirectional=True, merge="mean")
    both = Recurrent(cell, X, H, bidirectional=True)
    both.load_state_dict(mean.state_dict())
    x = torch.randn(T, B, X)
    forward, backward = both(x)[0].chunk(2, dim=-1)
    torch.testing.assert_close(mean(x)[0], (forward + backward) / 2)
    assert mean.output_size == H


@pytest.mark.parametrize("cell", ["lstm", "mut1"])
def test_learned_state_begins_as_zeros_and_learns(cell: str) -> None:
    layer, x = Recurrent(cell, X, H, 2, bidirectional=True, learned_state=True), torch.randn(T, B, X)
    zeros = tuple(torch.zeros(4, B, size) for size in layer.state_sizes)
    given = layer(x, zeros if len(zeros) == 2 else zeros[0])[0]
    output, _ = layer(x)
    torch.testing.assert_close(output, given)
    output.sum().backward()
    assert all(part.grad is not None and (part.grad != 0).all() for part in layer.initial)
    assert len(layer.initial) == len(layer.state_sizes)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("locked", [False, True])
def test_dropout_falls_between_layers_only(locked: bool, packed: bool) -> None:
    torch.manual_seed(0)  # two masks of so few units are the same now and then
    one = Recurrent("gru", X, H, 1, dropout=0.5, locked_dropout=locked)
    two = Recurrent("gru", X, H, 2, dropout=0.5, locked_dropout=locked)
    x: Any = torch.randn(T, B, X)
    x = pack_padded_sequence(x, [2, T], enforce_sorted=False) if packed else x

    def differ(layer: Recurrent) -> bool:
        a, b = layer(x)[0], layer(x)[0]
        return not torch.equal(a.data, b.data)

    assert not differ(one)
    assert differ(two)
    assert not differ(two.eval())


@pytest.mark.parametrize("cell", ["gru", "gru-cho"])
def test_weight_dropout_for_every_cell(cell: str) -> None:
    layer, x = Recurrent(cell, X, H, weight_dropout=0.5), torch.randn(T, B, X)
    before = {name: p.detach().clone() for name, p in layer.named_parameters()}
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer(x)[0].sum().backward()
    assert all(torch.equal(before[name], p) and p.grad is not None for name, p in layer.named_parameters())
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_wrong_options_and_shapes_raise() -> None:
    with pytest.raises(ValueError, match="unknown cell 'lstn', known are: elman, rnn, lstm"):
        Recurrent("lstn", X, H)
    with pytest.raises(ValueError, match="merge must be"):
        Recurrent("gru", X, H, merge="sum")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="connections must be"):
        Recurrent("gru", X, H, connections="all")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="proj_size is for the cell 'lstm' only"):
        Recurrent("gru", X, H, proj_size=2)
    with pytest.raises(ValueError, match="nonlinearity is for the cell 'rnn' only, got 'relu' for LSTMCell"):
        Recurrent("lstm", X, H, nonlinearity="relu")
    with pytest.raises(ValueError, match="num_layers"):
        Recurrent("gru", X, H, 0)
    layer = Recurrent("mut1", X, H)
    with pytest.raises(RuntimeError, match="expected input of size 3, got 5"):
        layer(torch.zeros(T, B, 5))
    with pytest.raises(RuntimeError, match="expected a state of"):
        layer(torch.zeros(T, B, X), torch.zeros(1, B + 1, H))


class Peephole(LSTMCell):
    """A cell of a user's own, with two parts of state: the LSTM whose output is not squashed."""

    def step(self, projected: Tensor, state: State) -> State:
        _, c = super().step(projected, state)
        return c, c


@pytest.mark.parametrize("packed", [False, True])
def test_a_cell_of_ones_own_runs_stacked_in_two_directions(packed: bool) -> None:
    layer = Recurrent(Peephole, 3, 5, num_layers=2, bidirectional=True)
    x = torch.randn(7, 2, 3)
    output, state = layer(pack_padded_sequence(x, torch.tensor([7, 4])) if packed else x)
    assert len(state) == 2
    assert state[0].shape == (4, 2, 5)
    assert torch.equal(state[0], state[1])
    data = output.data if packed else output
    data.sum().backward()
    assert all(parameter.grad is not None for parameter in layer.parameters())
