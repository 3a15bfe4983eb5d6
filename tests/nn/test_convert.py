"""Layers of PyTorch's made Elman's and back, in place: by `convert`, or by their class alone."""

import copy
import pickle
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize
from torch.nn.utils.rnn import pack_sequence

import elman.nn

LAYERS = ["RNN", "LSTM", "GRU"]
X, H, B, T = 3, 5, 4, 6


class Own(nn.LSTM):
    """A layer of someone's own."""


class Tagger(nn.Module):
    """Each layer, one of them in two places, and a subclass."""

    def __init__(self) -> None:
        super().__init__()
        self.below = nn.LSTM(X, H, num_layers=2, batch_first=True, bidirectional=True)
        self.others = nn.ModuleList([nn.GRU(2 * H, H), nn.RNN(H, H, nonlinearity="relu"), Own(H, H)])
        self.again = self.others[1]

    def forward(self, x: Tensor) -> Tensor:
        x = self.below(x)[0]
        for layer in (*self.others, self.again):
            x = layer(x)[0]
        return x


def classes(model: nn.Module) -> list[type]:
    return [type(layer) for layer in model.modules() if isinstance(layer, nn.RNNBase)]


def test_a_whole_model_there_and_back() -> None:
    model, x = Tagger(), torch.randn(B, T, X)
    expected, before = model(x), copy.deepcopy(model.state_dict())
    weights = list(model.parameters())
    assert elman.nn.convert(model) is model
    assert classes(model) == [elman.nn.LSTM, elman.nn.GRU, elman.nn.RNN, Own]
    assert model.again is model.others[1]
    torch.testing.assert_close(model(x), expected, atol=1e-6, rtol=0)
    assert all(mine is right for mine, right in zip(model.parameters(), weights, strict=True))
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert classes(twin) == classes(model)
        assert torch.equal(twin(x), model(x))
    elman.nn.convert(model, to="torch")
    assert classes(model) == [nn.LSTM, nn.GRU, nn.RNN, Own]
    assert torch.equal(model(x), expected)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    with pytest.raises(ValueError, match="to must be 'elman' or 'torch', got 'jax'"):
        elman.nn.convert(model, to="jax")


@pytest.mark.parametrize("name", LAYERS)
def test_all_that_belongs_to_a_layer_stays(name: str) -> None:
    layer = getattr(nn, name)(X, H, dtype=torch.float64).eval()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    calls: list[Any] = []
    layer.register_forward_hook(lambda *given: calls.append(given[2][0]))
    elman.nn.convert(layer)
    assert type(layer) is getattr(elman.nn, name) and not layer.training
    output = layer(torch.randn(T, B, X, dtype=torch.float64))[0]
    assert calls[0] is output
    before = copy.deepcopy(layer.state_dict())
    output.square().sum().backward()
    optimizer.step()
    assert all(not torch.equal(value, before[key]) for key, value in layer.state_dict().items())
    getattr(nn, name)(X, H, dtype=torch.float64).load_state_dict(layer.state_dict())


@pytest.mark.filterwarnings("ignore:.*weight_norm.* is deprecated:FutureWarning")
@pytest.mark.parametrize("normed", [parametrizations.weight_norm, nn.utils.weight_norm], ids=["property", "hook"])
@pytest.mark.parametrize("name", LAYERS)
def test_weights_made_of_others(name: str, normed: Any) -> None:
    model, x = nn.Sequential(getattr(nn, name)(X, H)), torch.randn(T, B, X)
    normed(model[0], "weight_hh_l0")
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1.5)
    expected, keys = model(x)[0], list(model.state_dict())
    elman.nn.convert(model)
    assert isinstance(model[0], getattr(elman.nn, name)) and list(model.state_dict()) == keys
    output = model(x)[0]
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)
    output.sum().backward()
    assert all(weight.grad is not None for weight in model.parameters())
    if parametrize.is_parametrized(model[0]):
        parametrize.remove_parametrizations(model[0], "weight_hh_l0")
        assert type(model[0]) is getattr(elman.nn, name)
        torch.testing.assert_close(model(x)[0], expected, atol=1e-6, rtol=0)
    elman.nn.convert(model, to="torch")
    torch.testing.assert_close(model(x)[0], expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("name", LAYERS)
def test_a_loaded_layer_becomes_ours_by_its_class(name: str) -> None:
    layer = pickle.loads(pickle.dumps(getattr(nn, name)(X, H, num_layers=2, bidirectional=True)))
    packed = pack_sequence([torch.randn(4, X), torch.randn(2, X)])
    expected, text = layer(packed)[0].data, repr(layer)
    layer.__class__ = getattr(elman.nn, name)
    torch.testing.assert_close(layer(packed)[0].data, expected, atol=1e-6, rtol=0)
    assert repr(layer) == text and (layer.backend, layer.weight_dropout) == ("auto", 0.0)
    assert layer.trace(packed).inside


def test_options_wait_for_the_way_back() -> None:
    model = nn.Sequential(elman.nn.GRU(X, H, weight_dropout=0.5, backend="cells"))
    with pytest.raises(ValueError, match=r"the layer '0' drops weights while training, .*: call eval\(\) first"):
        elman.nn.convert(model, to="torch")
    assert type(model[0]) is elman.nn.GRU
    elman.nn.convert(model.eval(), to="torch")
    assert type(model[0]) is nn.GRU
    elman.nn.convert(model)
    assert (model[0].weight_dropout, model[0].backend) == (0.5, "cells")


def test_what_needs_torchs_class_has_it_after_the_way_back() -> None:
    model, x = elman.nn.convert(nn.Sequential(nn.LSTM(X, H))).eval(), torch.randn(T, B, X)
    expected = model(x)[0]
    elman.nn.convert(model, to="torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = [
            torch.jit.script(model),
            torch.fx.symbolic_trace(model),
            torch.ao.quantization.quantize_dynamic(model, {nn.LSTM}, dtype=torch.qint8),
        ]
    for found in made[:2]:
        torch.testing.assert_close(found(x)[0], expected, atol=1e-6, rtol=0)
    assert type(made[2][0]) is torch.ao.nn.quantized.dynamic.LSTM


@pytest.mark.parametrize("backend", ["auto", "torch", "cells"])
@pytest.mark.parametrize("name", LAYERS)
def test_changed_flat_weights_are_used_as_in_torch(name: str, backend: str) -> None:
    theirs = getattr(nn, name)(X, H).double()  # weights as large as these magnify the rounding
    ours = getattr(elman.nn, name)(X, H, backend=backend).double()
    ours.load_state_dict(theirs.state_dict())
    x, other = torch.randn(T, B, X).double(), torch.randn_like(theirs.weight_hh_l0)
    before = ours(x)[0]
    for layer in (theirs, ours):
        layer._flat_weights[1] = other
    torch.testing.assert_close(ours(x)[0], theirs(x)[0], atol=1e-6, rtol=0)
    assert not torch.allclose(ours(x)[0], before)
    for layer in (theirs, ours):
        layer.weight_hh_l0 = nn.Parameter(2 * other)  # a weight of another name again: both go by the names
    torch.testing.assert_close(ours(x)[0], theirs(x)[0], atol=1e-6, rtol=0)
