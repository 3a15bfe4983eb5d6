"""The drop-ins against `torch.nn`: outputs, final states and all gradients, in every layout and with each backend."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

import elman.nn
from elman import kernels
from tests.nn.parity import KINDS, pair, result, state_for, values

X, H, B, T = 3, 4, 3, 4
LENGTHS = {"packed": [4, 3, 1], "packed unsorted": [2, 4, 3]}
LAYOUTS = ["padded", "batch first", "unbatched", *LENGTHS]
BACKENDS = ["torch", "cells"] + ["compiled"] * kernels.available()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("bidirectional", [False, True], ids=["one way", "two ways"])
@pytest.mark.parametrize("num_layers", [1, 2, 3, 4])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_equals_torch(
    kind: str, backend: str, num_layers: int, bidirectional: bool, layout: str, dtype: torch.dtype
) -> None:
    torch.manual_seed(num_layers)
    for bias in (True, False) if dtype == torch.float64 else (True,):
        options = {"num_layers": num_layers, "bidirectional": bidirectional, "bias": bias}
        theirs, ours = pair(kind, backend, dtype, X, H, batch_first=layout == "batch first", **options)
        shape = {"batch first": (B, T, X), "unbatched": (T, X)}.get(layout, (T, B, X))
        x, state = torch.randn(shape, dtype=dtype), state_for(theirs, dtype, None if layout == "unbatched" else B)
        expected, got = (result(layer, x, state, LENGTHS.get(layout)) for layer in (theirs, ours))
        assert expected.keys() == got.keys()
        for name, value in expected.items():
            close, relative = (1e-5, 1e-4) if dtype == torch.float32 else (1e-10, 1e-10)
            rtol = relative if name.startswith("d ") else 0
            difference = (got[name] - value).abs()
            assert (difference <= close + rtol * value.abs()).all(), name


@pytest.mark.parametrize("layout", ["padded", "packed"])
@pytest.mark.parametrize("nonlinearity", ["logistic", "identity"])
@pytest.mark.skipif(not kernels.available(), reason="the kernels were not built")
def test_nonlinearities_that_torch_has_not(nonlinearity: str, layout: str) -> None:
    """The kernels against the equation, which the gradients by autograd follow, and those by differences."""
    torch.manual_seed(0)
    options = {"num_layers": 2, "bidirectional": True, "nonlinearity": nonlinearity}
    fast, plain = (elman.nn.RNN(X, 9, backend=backend, **options).double() for backend in ("compiled", "cells"))
    plain.load_state_dict(fast.state_dict())
    x, state = torch.randn(T, B, X, dtype=torch.double), state_for(fast, torch.double, B)
    expected, got = (result(layer, x, state, LENGTHS.get(layout)) for layer in (plain, fast))
    for name, value in expected.items():
        torch.testing.assert_close(got[name], value, msg=name)
    small = elman.nn.RNN(2, 3, nonlinearity=nonlinearity).double()
    assert torch.autograd.gradcheck(lambda y: small(y)[0], torch.randn(3, 2, 2, dtype=torch.double, requires_grad=True))
    auto = elman.nn.RNN(X, 5, nonlinearity=nonlinearity).to(torch.bfloat16)  # for which there is no kernel
    assert auto(torch.zeros(T, B, X, dtype=torch.bfloat16))[0].shape == (T, B, 5)
    with pytest.raises(ValueError, match="PyTorch's layer has no nonlinearity"):
        elman.nn.convert(fast, to="torch")
    with pytest.raises(ValueError, match="leave backend out"):
        elman.nn.RNN(X, H, nonlinearity=nonlinearity, backend="torch")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_zeros_are_the_state_where_none_is_given(kind: str, backend: str) -> None:
    theirs, ours = pair(kind, backend, torch.float64, X, H, num_layers=2, bidirectional=True)
    sequences = [torch.randn(length, X, dtype=torch.float64) for length in (1, 4, 2)]
    packed = pack_sequence(sequences, enforce_sorted=False)
    for input in (packed, torch.randn(T, B, X, dtype=torch.float64), sequences[1]):
        expected, got = theirs(input)[0], ours(input)[0]
        torch.testing.assert_close(values(got), values(expected), atol=1e-12, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_state_dict_goes_both_ways(kind: str) -> None:
    theirs, ours = pair(kind, "auto", torch.float32, X, H, num_layers=2, bidirectional=True)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    assert list(ours.state_dict()) == list(theirs.state_dict())


@pytest.mark.parametrize("backend", BACKENDS)
def test_copies_and_pickles_compute_the_same(backend: str) -> None:
    layer = elman.nn.LSTM(X, H, num_layers=2, backend=backend, weight_dropout=0.5).eval()
    x = torch.randn(T, B, X)
    expected = layer(x)[0]
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(twin(x)[0], expected, atol=0, rtol=0)
        assert (twin.backend, twin.weight_dropout) == (backend, 0.5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_works_without_gradients_and_inside_other_modules(backend: str) -> None:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = elman.nn.GRU(X, H, batch_first=True, bidirectional=True, backend=backend)
            self.scores = nn.Linear(2 * H, 7)

        def forward(self, x: Tensor) -> Tensor:
            return self.scores(self.encoder(x)[0])

    tagger, x = Tagger(), torch.randn(B, T, X)
    expected = tagger(x)
    for mode in (torch.no_grad(), torch.inference_mode()):
        with mode:
            scores = tagger(x)
        assert not scores.requires_grad
        torch.testing.assert_close(scores, expected.detach(), atol=1e-6, rtol=0)
    replaced = {name: torch.zeros_like(p) for name, p in tagger.named_parameters()}
    assert not torch.func.functional_call(tagger, replaced, (x,)).any()
    assert isinstance(tagger.encoder, nn.GRU)


@pytest.mark.parametrize("backend", BACKENDS)
def test_dropout_between_layers_is_torchs(backend: str) -> None:
    x = torch.randn(T, B, X, dtype=torch.float64)
    layers = pair("lstm", backend, torch.float64, X, H, num_layers=3, dropout=0.5)
    outputs = []
    for layer in layers:
        torch.manual_seed(7)
        outputs.append(layer(x)[0])
    torch.testing.assert_close(outputs[0], outputs[1], atol=1e-12, rtol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_draws_no_random_numbers(backend: str) -> None:
    layer, x = elman.nn.LSTM(X, H, backend=backend), torch.randn(T, B, X)
    before = torch.get_rng_state()
    layer(x)
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_weight_dropout(name: str, backend: str) -> None:
    options = {"num_layers": 2, "bidirectional": True, "weight_dropout": 0.5, "backend": backend}
    layer = getattr(elman.nn, name)(X, H, **options)
    before = copy.deepcopy(layer.state_dict())
    packed = pack_sequence([torch.randn(length, X) for length in (2, 5)], enforce_sorted=False)
    for input in (torch.randn(T, B, X), packed):
        first, second = values(layer(input)[0]), values(layer(input)[0])
        assert not torch.equal(first, second), "each call has a mask of its own"
        first.sum().backward()
        layer.eval()
        torch.testing.assert_close(values(layer(input)[0]), values(layer(input)[0]), atol=0, rtol=0)
        layer.train()
    assert all(torch.equal(before[key], value) for key, value in layer.state_dict().items())
    assert all(p.grad is not None for p in layer.parameters())


def test_weight_dropout_of_one_switches_the_recurrence_off() -> None:
    layer, x = elman.nn.RNN(X, H, weight_dropout=1.0), torch.randn(T, B, X)
    alone = torch.tanh(x @ layer.weight_ih_l0.T + layer.bias_ih_l0 + layer.bias_hh_l0)
    torch.testing.assert_close(layer(x)[0], alone)


@pytest.mark.parametrize("backend", BACKENDS)
def test_wrong_shapes_raise_as_in_torch(backend: str) -> None:
    layer = elman.nn.LSTM(X, H, backend=backend)
    good, h = torch.zeros(T, B, X), torch.zeros(1, B, H)
    with pytest.raises(RuntimeError, match=r"input\.size\(-1\) must be equal"):
        layer(torch.zeros(T, B, X + 1))
    with pytest.raises(RuntimeError, match="Expected hidden size"):
        layer(good, (h, torch.zeros(1, B + 1, H)))
    with pytest.raises(RuntimeError, match="3 dimensions, got 2"):
        layer(good, (h[0], h[0]))
    with pytest.raises(RuntimeError, match="2 tensors, got 1"):
        layer(good, h)
    with pytest.raises(ValueError, match="2 or 3 dimensions"):
        layer(torch.zeros(X))
    with pytest.raises(RuntimeError):
        layer(torch.zeros(0, B, X))
    with pytest.raises(ValueError, match="dtype"):
        layer(good.double())


def test_wrong_options_raise() -> None:
    with pytest.raises(ValueError, match="unknown backend 'fast', known are: auto, torch, cells, compiled"):
        elman.nn.GRU(X, H, backend="fast")
    with pytest.raises(ValueError, match="weight_dropout must be a number from 0 to 1"):
        elman.nn.GRU(X, H, weight_dropout=2)
    with pytest.raises(ValueError, match="proj_size"):
        elman.nn.GRU(X, H, proj_size=2)


def test_representation_names_the_new_options() -> None:
    assert repr(elman.nn.GRU(3, 5, weight_dropout=0.2, backend="cells")) == (
        "GRU(3, 5, weight_dropout=0.2, backend=cells)"
    )
    assert repr(elman.nn.GRU(3, 5)) == "GRU(3, 5)"
